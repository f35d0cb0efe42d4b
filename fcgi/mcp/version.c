/* SPDX-License-Identifier: MIT */
#include "mcp/version.h"

#include <stddef.h>
#include <string.h>

static const struct mcp_version versions[] = {
	{.name = "2026-07-28",
	 .era = MCP_MODERN,
	 .omits_bad_id = true,
	 .has_icons = true},
	{.name = "2025-11-25",
	 .era = MCP_LEGACY,
	 .omits_bad_id = true,
	 .resumes = true,
	 .has_icons = true,
	 .has_tasks = true},
	{.name = "2025-06-18", .era = MCP_LEGACY},
	{.name = "2025-03-26", .era = MCP_LEGACY, .batches = true},
	{.name = "2024-11-05", .era = MCP_LEGACY},
};

const struct mcp_version *mcp_version_at(int i)
{
	return (size_t)i < sizeof(versions) / sizeof(versions[0]) ? &versions[i] : NULL;
}

const struct mcp_version *mcp_version_find(const char *name)
{
	const struct mcp_version *v;

	for (int i = 0; (v = mcp_version_at(i)); i++)
		if (strcmp(v->name, name) == 0)
			return v;
	return NULL;
}

const struct mcp_version *mcp_version_newest(enum mcp_era era)
{
	const struct mcp_version *v = versions;

	while (v->era != era)
		v++;
	return v;
}
