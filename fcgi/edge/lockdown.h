/* SPDX-License-Identifier: MIT */
#ifndef EDGE_LOCKDOWN_H
#define EDGE_LOCKDOWN_H

#include "base/err.h"

/*
 * What an edge gives up before it sees a stranger's byte, in this order. The
 * edge is the process that is most likely to be broken into; afterwards it can
 * answer on the connections it accepts, read the store and send bounded messages
 * to the runner, and nothing else: no other user, no capability, no program, no
 * new socket, no file opened for writing, no code mapped.
 */

/*
 * Limits; when root: become `user` and its group, for good; no io_uring, so before
 * the loop is made.
 */
int lockdown_user(const char *user, struct err *e);

/* no_new_privs, no capabilities, the system call filter for all threads to come. */
int lockdown_calls(struct err *e);

/* No further thread or process; after the last thread was started. */
int lockdown_threads(struct err *e);

#endif
