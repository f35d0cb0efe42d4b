/* SPDX-License-Identifier: MIT */
#ifndef EDGE_ORIGIN_H
#define EDGE_ORIGIN_H

#include <stdbool.h>

#include "base/buf.h"
#include "conf/conf.h"

/*
 * Which Host and Origin a request may carry, against DNS rebinding and foreign
 * web pages (MCP 2025-11-25, transports: "servers MUST validate the Origin
 * header"). Pure; values are a stranger's.
 *
 * A host is known when it is a loopback name or address, the host of PUBLIC_URL,
 * or listed in ALLOWED_HOSTS ("*": all). An origin passes when it is listed in
 * CORS_ALLOW_ORIGINS ("*": all) or its host is known. Only listed origins get
 * CORS headers: a page of another port on this machine may not read answers
 * unless it was listed.
 */

/* host: "name", "name:port", "[v6]:port". NULL (HTTP/1.0): no browser, passes. */
bool host_is_allowed(const struct conf *c, const char *host);

/* origin NULL: no browser, passes. "null" passes only by "*". */
bool origin_is_allowed(const struct conf *c, const char *origin);

/* Appends the CORS header lines for an answer to this origin, or nothing. */
void cors_add_headers(const struct conf *c, const char *origin, struct buf *b);

/*
 * And those that only the answer to a preflight carries. wanted: the header names it
 * asks for (NULL: none); of them those are granted that the protocol has without
 * naming them, Mcp-Param-*, as far as they are names at all.
 */
void cors_add_preflight(const struct conf *c, const char *origin, const char *wanted,
			struct buf *b);

#endif
