/* SPDX-License-Identifier: MIT */
#ifndef MCP_METHODS_H
#define MCP_METHODS_H

#include "mcp/call.h"

/* The requests we know: one table, with the eras each belongs to. */
enum mcp_next method_handle(struct mcp_call *c, const struct mcp_reads *r);

#endif
