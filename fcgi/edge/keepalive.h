/* SPDX-License-Identifier: MIT */
#ifndef EDGE_KEEPALIVE_H
#define EDGE_KEEPALIVE_H

#include <stdint.h>
#include <uv.h>

#include "edge/client.h"

/*
 * A comment line on every stream that was silent for an interval, so that neither
 * a proxy nor a client takes it for dead; a write to a peer that is gone also
 * finds out. One timer for all: everyone waits equally long, so the list is
 * sorted by itself. Without a stream no timer runs. Loop only.
 */
struct keepalive;

enum { KEEPALIVE_MS = 15000 };

/* Embedded in what is a stream, beside its client. */
struct beat {
	struct client *client;
	/* private */
	int64_t due_ms;
	struct beat *next, **link; /* link NULL: not listed */
};

struct keepalive *keepalive_new(uv_loop_t *loop, int64_t interval_ms);
/* No beat may be listed. The memory goes with the loop's closing. */
void keepalive_free(struct keepalive *all);

/* Something is sent on b->client: the next comment is an interval away. */
void keepalive_postpone(struct keepalive *all, struct beat *b);
void keepalive_remove(struct keepalive *all, struct beat *b); /* twice is fine */

#endif
