/* SPDX-License-Identifier: MIT */
#ifndef MCP_SERVER_H
#define MCP_SERVER_H

#include "base/patterns.h"
#include "mcp/mcp.h"
#include "mcp/session.h"
#include "wire/runspec.h"

/*
 * What all calls of a process share, private to this folder. Made once; only
 * `sessions` changes afterwards and has its own lock.
 */
struct mcp_server {
	char *public_url; /* without a slash at its end; "" = by the request */
	char *mcp_path;
	char *instructions;
	char *tools_list; /* the result of tools/list, as JSON */
	size_t tools_list_len;
	struct runspec_limits limits;
	struct patterns *denylist; /* NULL: off */
	struct sessions *sessions;
};

#endif
