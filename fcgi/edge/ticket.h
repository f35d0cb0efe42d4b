/* SPDX-License-Identifier: MIT */
#ifndef EDGE_TICKET_H
#define EDGE_TICKET_H

#include <jansson.h>

#include "edge/core.h"
#include "edge/http.h"

/*
 * An MCP call that could not be answered at once. It waits on the loop for the
 * runner's answer or for the end of a run, step by step as mcp/mcp.h says, and
 * holds no thread.
 *
 * A ticket may outlive its client. In the modern era a client that leaves takes
 * its request back: its run is canceled. In the legacy era leaving means nothing:
 * the ticket of an awaited run stays, so that a cancel can still find it; and the
 * answer to a request of the HTTP+SSE transport goes to its session's stream.
 */
struct tickets; /* all of them, on the loop */

struct tickets *tickets_new(void);
/* Those without a client are dropped; none with one may be left. */
void tickets_free(struct tickets *all);

/*
 * Accepting thread: answers h, or parks it. `next` is what mcp_post(), mcp_get() or
 * mcp_delete() said about `call`, which is taken over; weight: bytes of its body.
 */
void ticket_go_on(struct edge *edge, struct http *h, const struct mcp_reads *reads,
		  struct mcp_call *call, enum mcp_next next, size_t weight);

/* Loop, relayed messages: the session's client takes its request back; it answers what
 * it was asked. */
void ticket_cancel(struct edge *edge, const char *session_id, const json_t *body);
void ticket_answer(struct edge *edge, const char *session_id, const json_t *body);

#endif
