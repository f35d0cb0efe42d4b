/* SPDX-License-Identifier: MIT */
#ifndef MCP_CONSENT_H
#define MCP_CONSENT_H

#include "mcp/call.h"

/*
 * The user's word before a tool call throws files away (CONFIRM_DELETE): the client
 * is asked (mcp/ask.h), and only `then` goes on. Who declines, or cannot be asked,
 * gets a result with isError that says so; a client of the modern era that does not
 * declare elicitation gets the error for that.
 *
 * The word is for the sandbox that was there when the question was asked, known by the
 * time it was made: c->consent_for, which `then` passes on for the runner to compare.
 * So it is good once: what it ended is not there again.
 */
typedef enum mcp_next consent_fn(struct mcp_call *c);
enum mcp_next consent_ask(struct mcp_call *c, const struct mcp_reads *r,
			  consent_fn *then);

#endif
