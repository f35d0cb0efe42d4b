/* SPDX-License-Identifier: MIT */
#ifndef EDGE_SSTREAM_H
#define EDGE_SSTREAM_H

#include <jansson.h>

#include "edge/core.h"
#include "edge/http.h"

/*
 * The streams of MCP: parked requests. Those of sessions are GETs, each waiting for
 * frames of its session and told of what the session has subscribed to. Those of the
 * modern era (subscriptions/listen) are POSTs, on their own; they end with an answer.
 * A session has one; a newer one takes its place, at whichever edge it arrives:
 * every stream is announced to all edges through the runner, which gives all
 * announcements the same order, and each one ends those announced before it.
 *
 * A frame may come from any edge. One that is not for a stream here goes through
 * the runner to all edges; without a stream anywhere it is lost, as the transport
 * has it. What a slow reader has not taken is bounded; beyond it the stream ends.
 * Idle, a stream costs its memory and a comment every KEEPALIVE_MS. Loop only,
 * but for sstream_park().
 */
struct sstreams;

struct sstreams *sstreams_new(struct edge *edge);
void sstreams_free(struct sstreams *all); /* no stream may be left */

/*
 * Accepting thread, with a place in the lot: h becomes the stream of call, which is
 * taken over. next: what mcp_get() or mcp_post() said, MCP_STREAM or MCP_SEND.
 */
void sstream_park(struct edge *edge, struct http *h, struct mcp_call *call,
		  enum mcp_next next);

/* To the session's stream, wherever it is. */
void sstream_send(struct sstreams *all, const char *session_id, const char *frame,
		  size_t n);

/* What the session has subscribed to may have changed. */
void sstream_changed(struct edge *edge, const char *session_id, const json_t *body);

/* Messages of MSG_RELAYED that are about streams. */
void sstream_frame(struct edge *edge, const char *session_id, const json_t *body);
void sstream_opened(struct edge *edge, const char *session_id, const json_t *body);
void sstream_closed(struct edge *edge, const char *session_id, const json_t *body);

#endif
