/* SPDX-License-Identifier: MIT */
#ifndef EDGE_LINES_H
#define EDGE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/err.h"

/*
 * Lines of standard input, whatever it is (a pipe, a file, a terminal): a thread
 * reads it, blocking, and the loop gets whole lines, one read's worth at a time.
 * A line over `max` bytes is told as such, and then passed over.
 */
struct lines;

struct lines_events {
	/* Without its end of line; NULL: it was too long. Valid for the call. */
	void (*line)(void *arg, const char *p, size_t n);
	/* No more will come. */
	void (*end)(void *arg);
};

struct lines_source {
	int fd;
	size_t max;
	const struct lines_events *events;
	void *arg;
};

/* *ret lives as long as the process. */
int lines_start(uv_loop_t *loop, const struct lines_source *from, struct lines **ret,
		struct err *e);

/* No line is told, nor the end, until lines_go_on(). Loop only; not after the end. */
void lines_hold(struct lines *l);
void lines_go_on(struct lines *l);

#endif
