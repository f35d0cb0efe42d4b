/* SPDX-License-Identifier: MIT */
#ifndef MCP_RESOURCES_H
#define MCP_RESOURCES_H

#include "mcp/call.h"

/*
 * What runs left, as resources (mcp/uris.h): the runs themselves, their output and
 * their artifacts; and completion of the ids in the templates' uris.
 */
enum mcp_next resources_list(struct mcp_call *c, const struct mcp_reads *r);
enum mcp_next resources_templates(struct mcp_call *c, const struct mcp_reads *r);
enum mcp_next resources_read(struct mcp_call *c, const struct mcp_reads *r);
/* Answers that there is none at that uri. */
enum mcp_next resources_no_such(struct mcp_call *c, const char *uri);
enum mcp_next completion_complete(struct mcp_call *c, const struct mcp_reads *r);

#endif
