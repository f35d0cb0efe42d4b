/* SPDX-License-Identifier: MIT */
#ifndef MCP_SUBSCRIBE_H
#define MCP_SUBSCRIBE_H

#include "mcp/call.h"

/*
 * Hearing of resources that change. Legacy: resources/subscribe and unsubscribe; the
 * session's row in the store keeps them, and the session's stream tells. Modern:
 * subscriptions/listen is a stream of its own, and nothing is kept; with the tasks
 * extension it also tells of tasks. What is watched, and how often it is told, is the
 * edge's (edge/subs.h). There is no list_changed: the lists of resources change with
 * every run of everyone, and a client that reads them anew each time costs more than
 * it learns.
 */
enum mcp_next resources_subscribe(struct mcp_call *c, const struct mcp_reads *r);
enum mcp_next resources_unsubscribe(struct mcp_call *c, const struct mcp_reads *r);
enum mcp_next subscriptions_listen(struct mcp_call *c, const struct mcp_reads *r);

#endif
