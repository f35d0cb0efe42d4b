/* SPDX-License-Identifier: MIT */
#ifndef MCP_GET_RUN_H
#define MCP_GET_RUN_H

#include "mcp/call.h"

/*
 * get_run: a run as it is now, or when it ended or the wait is over; or a part of
 * one stream of it, from an offset on. cancel_run: its commands are told to end.
 */
int get_run_check(struct mcp_call *c, struct err *e);
enum mcp_next get_run_begin(struct mcp_call *c, const struct mcp_reads *r);

int cancel_run_check(struct mcp_call *c, struct err *e);
void cancel_run_fill(const struct mcp_call *c, json_t *message);
enum mcp_next cancel_run_accepted(struct mcp_call *c, const struct mcp_reads *r,
				  const json_t *ok);

#endif
