/* SPDX-License-Identifier: MIT */
#ifndef MCP_VERSION_H
#define MCP_VERSION_H

#include <stdbool.h>

/*
 * The protocol versions we speak, newest first, and what differs between them
 * (SPEC: each version's changelog). Pure; any thread.
 */
enum mcp_era { MCP_LEGACY = 1 }; /* a bit set, for the method table */

struct mcp_version {
	const char *name;
	enum mcp_era era;
	bool batches;      /* an array of messages is a message */
	bool omits_bad_id; /* an error without a known id leaves `id` out */
};

/* NULL: not one of ours. */
const struct mcp_version *mcp_version_find(const char *name);
/* What we offer to a client that asks for something else. */
const struct mcp_version *mcp_version_newest(void);

#endif
