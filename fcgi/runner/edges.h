/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_EDGES_H
#define RUNNER_EDGES_H

#include <jansson.h>
#include <uv.h>

#include "base/err.h"
#include "wire/edgemsg.h"

/*
 * The runner's ends of the pairs to the edges. Says hello on each, hands every
 * request to one function, sends answers without ever blocking: what a full
 * socket refuses waits here. Loop only.
 */
struct edges;

/* Where an answer goes. */
struct replyto {
	int edge;
	uint32_t visit; /* of a guest: its place may be another's by now */
	uint64_t id;
};

typedef void edges_request_fn(void *arg, struct replyto to, const struct edgemsg *m);

struct edges_opts {
	uv_loop_t *loop;
	int n;
	const int *fds, *doorbells; /* n each; borrowed for the call */
	edges_request_fn *fn;
	void *arg;
};
int edges_new(const struct edges_opts *o, struct edges **ret, struct err *e);

/* Takes guests (wire/edgemsg.h) in from now on; the listener is borrowed. */
int edges_listen(struct edges *all, int listen_fd, struct err *e);

/* Tell the edges that this runner serves; they send again what has no answer. */
void edges_hello(struct edges *all);

/* MSG_OK with `body`; takes the reference. */
void edges_ok(struct edges *all, struct replyto to, json_t *body);
/* MSG_ERR with the kind and the words. */
void edges_err(struct edges *all, struct replyto to, const struct err *why);

/* MSG_RELAYED to every edge; borrows body. An edge that does not read misses it. */
void edges_relay(struct edges *all, json_t *body);

/* After a commit: wake everyone who shows events. */
void edges_ring(struct edges *all);

/* Closes the handles, not the descriptors. NULL is fine. */
void edges_free(struct edges *all);

#endif
