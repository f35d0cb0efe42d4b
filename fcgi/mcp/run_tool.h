/* SPDX-License-Identifier: MIT */
#ifndef MCP_RUN_TOOL_H
#define MCP_RUN_TOOL_H

#include "mcp/call.h"

/*
 * run_sandbox: its steps. The run's id is made here, so that asking the runner
 * again after it was restarted starts nothing twice.
 */
int run_tool_check(struct mcp_call *c, struct err *e);
void run_tool_fill(const struct mcp_call *c, json_t *message);
enum mcp_next run_tool_accepted(struct mcp_call *c, const struct mcp_reads *r,
				const json_t *ok);

/*
 * A program that may have to send its call again gives it a key of its own
 * (params._meta[RUN_TOOL_KEY]): the run's id follows from the key and the arguments,
 * and the runner takes a run_id that it knows as that run. Nothing is kept for it
 * beside the run. The id is no less secret: it is made with the instance's key.
 */
#define RUN_TOOL_KEY "mcp-sandboxd/idempotency-key"
int run_tool_name(struct mcp_call *c, const struct mcp_reads *r, struct err *e);

/* Waits on for c->run_id, asked for by an earlier request: mcp_get(). */
enum mcp_next run_tool_resume(struct mcp_call *c, const struct mcp_reads *r,
			      int64_t left_ms);

/* The result of an ended run, from its run object. The caller owns it. */
json_t *run_tool_result(const struct mcp_call *c, const struct mcp_reads *r, json_t *run);
/* What every answer about c->run_id carries; from: the runner's answer or a run
 * object. The caller owns it. */
json_t *run_tool_handle(const struct mcp_call *c, const json_t *from);
/* How long c->await_timeout_ms may be for this client. */
int64_t run_tool_wait_ms(const struct mcp_call *c);
bool run_tool_ended(const json_t *run);

#endif
