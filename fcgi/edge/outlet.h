/* SPDX-License-Identifier: MIT */
#ifndef EDGE_OUTLET_H
#define EDGE_OUTLET_H

#include "edge/client.h"
#include "edge/core.h"
#include "edge/http.h"
#include "edge/keepalive.h"

/*
 * Where a waiting call's answer goes, by mcp_call_way(): the HTTP answer, the same
 * as an event stream, or the stream of its session, of which this request is no
 * part. Frames for a client that has left are thrown away. Loop only, but for
 * outlet_init() and outlet_reply().
 */
struct outlet {
	struct client client; /* first */
	struct beat beat;
	struct edge *edge;
	struct buf headers; /* of the answer: CORS */
	int64_t started_us;
	bool is_streaming;
};

/* Accepting thread: takes the connection out of h. */
void outlet_init(struct outlet *o, const struct client_ops *ops, struct edge *edge,
		 struct http *h);
/* After the client's free(). */
void outlet_release(struct outlet *o);

/* 202, and the end of the request: the answer will go to the session's stream. */
void outlet_take_leave(struct outlet *o);

/* 503, and the end of the request: too many go on alone. */
void outlet_refuse(struct outlet *o);

/* The call waits: begin the stream, if it is one. */
void outlet_wait(struct outlet *o, struct mcp_call *call);
/* What the client is asked. False: it cannot hear. */
bool outlet_ask(struct outlet *o, struct mcp_call *call);
/* How far it is; says nothing when the client has not read the last one. */
void outlet_progress(struct outlet *o, struct mcp_call *call);
/* All is said. client_ops.gone() may be called from within. */
void outlet_answer(struct outlet *o, struct mcp_call *call);

/* For the client's gone(). */
void outlet_gone(struct outlet *o);

/* The HTTP answer as a reply, its header lines in `headers`. */
struct reply outlet_reply(const struct mcp_reply *m, struct buf *headers);
/* The log lines of an answered call, when they are wanted. */
void outlet_log(const struct edge *edge, const struct mcp_call *call, int status,
		int64_t started_us);

#endif
