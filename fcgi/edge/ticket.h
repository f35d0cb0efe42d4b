/* SPDX-License-Identifier: MIT */
#ifndef EDGE_TICKET_H
#define EDGE_TICKET_H

#include "edge/core.h"
#include "edge/http.h"

/*
 * An MCP call that could not be answered at once. It waits on the loop for the
 * runner's answer or for the end of a run, step by step as mcp/mcp.h says, and
 * holds no thread. When its client leaves, what was asked for goes on.
 */

/*
 * Accepting thread: answers h, or parks it. `next` is what mcp_post() or
 * mcp_delete() said about `call`, which is taken over; weight: bytes of its body.
 */
void ticket_go_on(struct edge *edge, struct http *h, const struct mcp_reads *reads,
		  struct mcp_call *call, enum mcp_next next, size_t weight);

#endif
