/* SPDX-License-Identifier: MIT */
#ifndef MCP_VERSION_H
#define MCP_VERSION_H

#include <stdbool.h>

/*
 * The protocol versions we speak, newest first, and what differs between them
 * (SPEC: each version's changelog). Legacy: a handshake and a session; modern:
 * every request tells all about itself. Pure; any thread.
 */
enum mcp_era { MCP_LEGACY = 1, MCP_MODERN = 2 }; /* a bit set, for tables */

struct mcp_version {
	const char *name;
	enum mcp_era era;
	bool batches;      /* an array of messages is a message */
	bool omits_bad_id; /* an error without a known id leaves `id` out */
	bool resumes;      /* SSE answers begin with an id to come back with */
	bool has_icons;
	bool has_tasks; /* params.task, tasks/result, execution.taskSupport */
};

/* NULL: not one of ours. */
const struct mcp_version *mcp_version_find(const char *name);
/* What we offer to a client of that era that asks for something else. */
const struct mcp_version *mcp_version_newest(enum mcp_era era);
/* The i-th of all; NULL: there are no more. */
const struct mcp_version *mcp_version_at(int i);

#endif
