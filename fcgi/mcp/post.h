/* SPDX-License-Identifier: MIT */
#ifndef MCP_POST_H
#define MCP_POST_H

#include "mcp/call.h"

/*
 * How a call begins: which era, which session. One table for all (POST):
 *
 *	_meta names a version, or the header one that is not legacy: modern
 *	?sessionId=      the HTTP+SSE transport: 202, the answer on its stream
 *	initialize       a new session, whatever id came along
 *	anything else    needs a session: 400 without, 404 with an unknown one
 *
 * The rest is for get.c. -1: answered.
 */
int post_check_version_header(struct mcp_call *c, const struct mcp_http *in);
int post_require_session(struct mcp_call *c, const struct mcp_reads *r, const char *id);
bool post_accepts_stream(const struct mcp_http *in); /* says so itself, not by a star */
bool post_is_modern_header(const struct mcp_http *in);

#endif
