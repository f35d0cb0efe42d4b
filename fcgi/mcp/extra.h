/* SPDX-License-Identifier: MIT */
#ifndef MCP_EXTRA_H
#define MCP_EXTRA_H

#include "mcp/call.h"

/*
 * Room for more than the product has: the conformance suite asks for tools, prompts
 * and resources of its own, and a build of the tests fills this in. In the product
 * it is empty (extra.c).
 */
struct mcp_extra {
	/* Asked before the tables. True: *ret says how it went. NULL: nothing more. */
	bool (*handle)(struct mcp_call *c, const struct mcp_reads *r, enum mcp_next *ret);
	json_t *(*tools)(void);   /* an array, added to tools/list; NULL: none */
	const char *capabilities; /* a JSON object, added to the others; NULL: none */
};
extern const struct mcp_extra mcp_extra;

#endif
