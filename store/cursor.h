/* SPDX-License-Identifier: MIT */
#ifndef STORE_CURSOR_H
#define STORE_CURSOR_H

#include "store/db.h"
#include "store/types.h"

/*
 * Where a run's log stands: its newest event number and, per command and stream,
 * how many bytes are stored. Read from the events when first asked for, then kept
 * in memory by the writer, which moves it with every insert; thrown away when a
 * transaction is lost. The events stay the only truth.
 */
struct cursor_stream {
	int64_t stored;
	bool truncated;
};

struct cursor {
	char run_id[64];
	int64_t seq;
	struct cursor_stream (*commands)[STORE_STREAM_COUNT];
	size_t ncommands;
	bool ended; /* the run is: drop it at the commit */
	struct cursor *next;
};

enum { CURSOR_BUCKETS = 1024 };
struct cursors {
	struct cursor *buckets[CURSOR_BUCKETS];
	size_t nended;
};

/* ERR_NOT_FOUND: no such run. Valid until the next commit or loss. */
int cursor_get(struct cursors *all, struct db *d, const char *run_id, struct cursor **ret,
	       struct err *e);
/* A run that was inserted just now: nothing of it needs to be read. */
void cursor_begin(struct cursors *all, const char *run_id, size_t ncommands);
/* The run has ended; takes hold at cursors_sweep(). Unknown runs are fine. */
void cursor_end(struct cursors *all, const char *run_id);
void cursors_sweep(struct cursors *all);
void cursors_clear(struct cursors *all);

#endif
