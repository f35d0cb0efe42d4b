/* SPDX-License-Identifier: MIT */
#ifndef MCP_MODERN_H
#define MCP_MODERN_H

#include "mcp/call.h"

/*
 * What is different in the modern era (2026-07-28): each request says its version,
 * its capabilities and, in headers for proxies, what it is about; each result says
 * its kind and who made it. With MIRROR_IDENTIFIER the tools' `identifier` is one of
 * the headers. SPEC 2026-07-28, basic/index and streamable-http.
 */
#define MODERN_META      "io.modelcontextprotocol/"
#define MODERN_EXT_TASKS "io.modelcontextprotocol/tasks"

/* The body decides, then the header: some legacy clients send Mcp-Method too. */
bool modern_is(const json_t *doc, const struct mcp_http *in);

/* Checks headers and _meta of c->doc and takes them into c. -1: answered. */
int modern_open(struct mcp_call *c, const struct mcp_http *in);

bool modern_client_has(const struct mcp_call *c, const char *extension);
/* Answers that the client must declare that extension. */
enum mcp_next modern_demand(struct mcp_call *c, const char *extension);

/* A copy of the result with all that every result of m carries (m NULL: of any
 * method). The caller owns it. */
json_t *modern_result(const struct method *m, const json_t *result);

/* An array of the names of the modern versions. */
json_t *modern_versions(void);

#endif
