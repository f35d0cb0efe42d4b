/* SPDX-License-Identifier: MIT */
#ifndef EDGE_CALLS_H
#define EDGE_CALLS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "wire/edgemsg.h"

/*
 * Requests to the runner over this edge's packet pair. Many threads ask, the
 * loop receives. A request that has no answer is kept, in the order it was made;
 * when the pair is full it is sent later, and when a runner says MSG_HELLO
 * everything unanswered is sent again (requests are idempotent, wire/edgemsg.h).
 * So a runner that is away for a moment costs time, not an error. What waits is
 * bounded in number and bytes; how long, its asker decides: calls_forget().
 *
 * When the master is gone nobody will answer any more: what waits is told so at
 * once, as ERR_TIMEOUT, because it may have been done; what comes later is ERR_BUSY.
 *
 * Ids begin at a random number: the pair outlives an edge, and an answer to the
 * edge before must not be taken for one's own.
 */
struct calls;
struct lot;
struct client;
struct edge;

/* Embedded in whoever asks; alive until answered() or calls_forget(). */
struct request {
	enum edgemsg_type type;
	json_t *body;  /* owned from calls_ask() until the answer */
	size_t weight; /* bytes it may take, for the bound */
	/* On the loop, once, with MSG_OK or MSG_ERR (borrowed). */
	void (*answered)(struct request *r, const struct edgemsg *m);

	/* private */
	struct request *next, **link; /* link NULL: not waiting */
	uint64_t id;
	bool is_sent;
};

/* fd: non-blocking, borrowed. lot NULL: all clients live on the loop. */
struct calls *calls_new(uv_loop_t *loop, int fd, struct lot *lot);
/* Loop: who takes MSG_RELAYED. */
void calls_on_relayed(struct calls *calls,
		      void (*relayed)(struct edge *edge, const json_t *body),
		      struct edge *edge);
/*
 * Loop, for who is connected by itself and not by the master's pair: `bell` is an
 * eventfd that MSG_BELL rings; lost() is told once when the connection ended. Put
 * a new one at the same descriptor and call calls_resume(): all that has no answer
 * is then sent again.
 */
void calls_on_lost(struct calls *calls, int bell, void (*lost)(void *arg), void *arg);
void calls_resume(struct calls *calls);
/* Nothing may be unanswered. The memory goes with the loop's closing. */
void calls_free(struct calls *calls);

/*
 * Any thread. c (NULL: r lives on the loop already) is parked in the same step,
 * so that no answer can be looked at before its client is; c's start() must call
 * calls_kick(). On -1 (ERR_BUSY: too many wait) the body is still the caller's
 * and c was not parked.
 */
int calls_ask(struct calls *calls, struct request *r, struct client *c, struct err *e);

/* Loop: if the pair was full when somebody asked, wait for room in it. */
void calls_kick(struct calls *calls);

/* Loop: the asker is going; an answer will be thrown away. Twice is fine. */
void calls_forget(struct calls *calls, struct request *r);

#endif
