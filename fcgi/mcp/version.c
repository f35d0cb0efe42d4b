/* SPDX-License-Identifier: MIT */
#include "mcp/version.h"

#include <string.h>

static const struct mcp_version versions[] = {
	{"2025-11-25", MCP_LEGACY, false, true},
	{"2025-06-18", MCP_LEGACY, false, false},
	{"2025-03-26", MCP_LEGACY, true, false},
	{"2024-11-05", MCP_LEGACY, false, false},
};

const struct mcp_version *mcp_version_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (strcmp(versions[i].name, name) == 0)
			return &versions[i];
	return NULL;
}

const struct mcp_version *mcp_version_newest(void)
{
	return &versions[0];
}
