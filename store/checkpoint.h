/* SPDX-License-Identifier: MIT */
#ifndef STORE_CHECKPOINT_H
#define STORE_CHECKPOINT_H

#include <stdint.h>

#include "base/err.h"

/*
 * Moves the write-ahead log into the database, on a thread with a connection of
 * its own, so that no commit waits for the disk. PASSIVE every 4 MB; from 16 MB on
 * RESTART, which holds new transactions off for a moment so that the log starts
 * over; TRUNCATE when nothing was committed for 5 s. While a reader of another
 * program holds a snapshot the log can only grow: counted as blocked.
 * Sleeps on a condition; without commits it never wakes up.
 */
struct checkpoint;

int checkpoint_start(const char *path, struct checkpoint **ret, struct err *e);
void checkpoint_stop(struct checkpoint *c); /* NULL is fine */

/* The writer's thread, after each commit: the log is that many frames long. */
void checkpoint_committed(struct checkpoint *c, int wal_frames);

/*
 * The writer's thread, around the start of a transaction: waits while a
 * RESTART or TRUNCATE has the lock, which no busy handler then has to poll for,
 * and from 32 MB on until the log is moved, so that a slow disk bounds the log.
 */
void checkpoint_gate_lock(struct checkpoint *c);
void checkpoint_gate_unlock(struct checkpoint *c);

struct checkpoint_stats {
	int64_t done, blocked, wal_bytes;
};
void checkpoint_stats(struct checkpoint *c,
		      struct checkpoint_stats *ret); /* any thread */

#endif
