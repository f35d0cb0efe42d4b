/* SPDX-License-Identifier: MIT */
#ifndef MCP_METHODS_H
#define MCP_METHODS_H

#include "mcp/call.h"

/*
 * The methods we know: one table, a row for each method in each era. What is not
 * in it is an unknown method (requests) or taken note of (notifications).
 */
struct method {
	const char *name;
	unsigned eras;
	enum mcp_next (*handle)(struct mcp_call *c, const struct mcp_reads *r);
	/* modern era: */
	const char *name_param;  /* the parameter that Mcp-Name repeats; NULL: none */
	const char *cache_scope; /* "public", "private"; NULL: not to be kept */
	int cache_ms;
};

/* NULL: no such method in that era. */
const struct method *method_find(enum mcp_era era, const char *name);

enum mcp_next method_handle(struct mcp_call *c, const struct mcp_reads *r);

#endif
