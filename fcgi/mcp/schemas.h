/* SPDX-License-Identifier: MIT */
#ifndef MCP_SCHEMAS_H
#define MCP_SCHEMAS_H

#include "conf/conf.h"
#include "mcp/tools.h"

/*
 * JSON Schemas of the tools (dialect 2020-12), as text. The roots have no oneOf
 * or anyOf, which the model APIs refuse. They say what wire/runspec.h checks and
 * what run_tool.c and tools.c answer; the tests hold them together.
 */

/* With the limits in force. The caller frees. */
char *schema_input(const struct conf *c, enum tool_id id);
/* NULL: it has no structured result. */
const char *schema_output(enum tool_id id);

#endif
