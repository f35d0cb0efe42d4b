/* SPDX-License-Identifier: MIT */
#ifndef MCP_FAILURE_H
#define MCP_FAILURE_H

#include <stdbool.h>

#include "base/err.h"
#include "mcp/jsonrpc.h"

/*
 * The one table from the kind of a failure to what the outside is told: the
 * JSON-RPC code, the HTTP status where a request was not accepted at all, and the
 * words a tool's caller can act on. Pure; any thread.
 */
struct failure {
	enum rpc_code code;
	int http_status;
	int retry_after_s;  /* 0: trying again will not help by itself */
	bool may_show;      /* the text was written for the caller */
	const char *advice; /* what to do, a sentence; "" = the text says it */
};

const struct failure *failure_of(enum err_kind kind);

/* The text for the outside into dst: never one that was not written for it. */
const char *failure_text(const struct err *why, char *dst, size_t size);

#endif
