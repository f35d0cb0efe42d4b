/* SPDX-License-Identifier: MIT */
#ifndef MCP_FILE_TOOLS_H
#define MCP_FILE_TOOLS_H

#include "mcp/call.h"

/* read_file, write_file, list_files, list_sandboxes: their steps (see tools.h). */
int read_file_check(struct mcp_call *c, struct err *e);
enum mcp_next read_file_accepted(struct mcp_call *c, const struct mcp_reads *r,
				 const json_t *ok);
int write_file_check(struct mcp_call *c, struct err *e);
enum mcp_next write_file_accepted(struct mcp_call *c, const struct mcp_reads *r,
				  const json_t *ok);
int list_files_check(struct mcp_call *c, struct err *e);
enum mcp_next list_files_accepted(struct mcp_call *c, const struct mcp_reads *r,
				  const json_t *ok);

int list_sandboxes_check(struct mcp_call *c, struct err *e);
enum mcp_next list_sandboxes_begin(struct mcp_call *c, const struct mcp_reads *r);

#endif
