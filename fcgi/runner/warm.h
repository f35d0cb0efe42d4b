/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_WARM_H
#define RUNNER_WARM_H

#include "runner/warmpool.h"

/*
 * One sandbox of the warm pool (warmpool.h): made or found, connected, greeted,
 * ready; or on its way out. It has one job at a time. What becomes of the pool by it
 * is warmpool.c's. Loop only.
 */
enum warm_state {
	WARM_FOUND,      /* of an earlier runner; not yet looked at */
	WARM_CREATING,   /* a control thread creates it and connects */
	WARM_CONNECTING, /* a control thread connects to what was found */
	WARM_GREETING,   /* its agent has not said hello yet */
	WARM_READY,
	WARM_LEAVING, /* a control thread removes it, or has tried in vain */
};

struct warm {
	struct warm *next;
	struct runner *r;
	struct warm_sandbox is;
	enum warm_state state;
	bool fits;          /* found: made with what a create would use now */
	bool job;           /* a control thread is at it */
	bool dropped;       /* forgotten: freed when its job is done */
	int64_t retry_mono; /* leaving in vain: not before */
};

struct warm *warm_new(struct runner *r, const char *name, enum warm_state state);
void warm_free(struct warm *w);

void warm_create(struct warm *w);
void warm_connect(struct warm *w);

/* It leaves: no row, no connection; removed as soon as its job is done. */
void warm_discard(struct warm *w);

/* ---- in warmpool.c */
void warm_is_ready(struct warm *w);
/* It was created: its row. */
void warm_is_made(struct warm *w);
/* In words. It must be discarded. */
void warm_failed(struct warm *w, const char *why);
/* Nothing is left of it: unlisted and freed. */
void warm_is_gone(struct warm *w);

#endif
