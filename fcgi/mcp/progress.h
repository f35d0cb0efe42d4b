/* SPDX-License-Identifier: MIT */
#ifndef MCP_PROGRESS_H
#define MCP_PROGRESS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "store/types.h"

/*
 * How far an awaited run is, for progress notifications: which command, and the
 * latest line of output. `progress` is the seconds since the run began, which
 * increase whatever happens and go on where they were when the client resumes
 * at another process. Pure.
 */
enum { PROGRESS_LINE_MAX = 200 };

struct progress {
	const json_t *token;               /* borrowed; NULL: none was given */
	int64_t began_mono;                /* ms of the monotonic clock */
	int64_t last_ms;                   /* what was told last, since began_mono */
	int64_t step;                      /* -1: none has started */
	size_t steps;                      /* 0: not known */
	char line[PROGRESS_LINE_MAX + 1];  /* the latest whole line */
	char begun[PROGRESS_LINE_MAX + 1]; /* the one that is being written */
	size_t nbegun;
};

/* A member with this params object begins; its token, when it has a proper one. */
void progress_init(struct progress *p, const json_t *params);

/* False: nothing that is worth telling. */
bool progress_note(struct progress *p, const struct store_event *ev);

/* Milliseconds since the run began, more than at the last call. */
int64_t progress_elapsed(struct progress *p, int64_t mono_ms);

/* The notification, as JSON text. */
void progress_add(struct progress *p, int64_t elapsed_ms, struct buf *b);

#endif
