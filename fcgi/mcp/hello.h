/* SPDX-License-Identifier: MIT */
#ifndef MCP_HELLO_H
#define MCP_HELLO_H

#include "mcp/call.h"

/* How client and server meet: initialize (legacy), server/discover (modern). */
enum mcp_next hello_initialize(struct mcp_call *c, const struct mcp_reads *r);
enum mcp_next hello_discover(struct mcp_call *c, const struct mcp_reads *r);

/* Name, title and version of this server; the caller owns it. */
json_t *hello_server_info(void);

#endif
