/* SPDX-License-Identifier: MIT */
#ifndef MCP_RUN_TOOL_H
#define MCP_RUN_TOOL_H

#include "mcp/call.h"

/*
 * run_sandbox: its steps. The run's id is made here, so that asking the runner
 * again after it was restarted starts nothing twice.
 */
int run_tool_check(struct mcp_call *c, struct err *e);
void run_tool_fill(const struct mcp_call *c, json_t *message);
enum mcp_next run_tool_accepted(struct mcp_call *c, const json_t *ok);

#endif
