/* SPDX-License-Identifier: MIT */
#ifndef MCP_RUNPAGE_H
#define MCP_RUNPAGE_H

#include "mcp/call.h"

/*
 * One page of a list that has the tenant's runs in it, the newest first: after
 * params.cursor, at most max of them, as objects without output. *ret is the
 * caller's; result gets its nextCursor when there are more. -1: refused, and
 * answered.
 */
int runpage_read(struct mcp_call *c, const struct mcp_reads *r, size_t max,
		 json_t *result, json_t **ret);

#endif
