/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_WAITWORDS_H
#define RUNNER_WAITWORDS_H

#include "base/err.h"

/*
 * What the backend says on its way to a sandbox (backend_progress_fn): from any
 * thread into the log, and over the loop into the events of the runs that wait,
 * as `sandbox_progress`. Bounded: WAITWORDS_QUEUE_MAX lines on their way to the
 * loop and WAITWORDS_RUN_MAX events a run; what is more is in the log only.
 */
struct runner;
struct waitwords;

enum { WAITWORDS_QUEUE_MAX = 1024, WAITWORDS_RUN_MAX = 2000, WAITWORDS_LINE_MAX = 512 };

int waitwords_new(struct runner *r, struct waitwords **ret, struct err *e);

/* A backend_progress_fn; arg is the waitwords. */
void waitwords_say(void *arg, const char *who, const char *line);

/*
 * Tells what was said until now. On the loop, before it hears that a job is done: its
 * words and its end come on two ways, and the end may be the first to be looked at.
 */
void waitwords_tell(struct waitwords *w);

/* From here on it only logs. On the loop, which must run once more. */
void waitwords_close(struct waitwords *w);

/* After waitwords_close(), when nobody can say anything any more. NULL is fine. */
void waitwords_free(struct waitwords *w);

#endif
