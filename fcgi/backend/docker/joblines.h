/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_DOCKER_JOBLINES_H
#define BACKEND_DOCKER_JOBLINES_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * What an engine says while it builds or pulls: one JSON object a line, with
 * "stream" or "status" as words of progress, or "error" as the end of it. Lines
 * that are too long or no JSON are passed over. Pure but for `say`.
 */
enum { JOBLINES_LINE_MAX = 64 * 1024 };

struct joblines {
	void (*say)(void *arg, const char *line);
	void *arg;
	struct buf line;  /* as far as it has come */
	struct err error; /* the first error told */
};
#define JOBLINES_INIT(fn, a)                                                             \
	{                                                                                \
		.say = (fn), .arg = (a), .line = BUF_INIT(JOBLINES_LINE_MAX),            \
		.error = ERR_INIT                                                        \
	}

void joblines_feed(struct joblines *j, const char *p, size_t n);

/* The last line may lack its end. -1 with the error that was told. */
int joblines_end(struct joblines *j, struct err *e);
void joblines_release(struct joblines *j);

#endif
