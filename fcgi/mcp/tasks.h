/* SPDX-License-Identifier: MIT */
#ifndef MCP_TASKS_H
#define MCP_TASKS_H

#include "mcp/call.h"

/*
 * A run seen as a task: the task's id is the run's, and nothing is kept beside the
 * run, so tasks outlive every restart. Two forms that differ on the wire: the
 * experimental tasks of 2025-11-25, where the client asks for one (params.task) and
 * a run that failed is a failed task; and the extension of 2026-07-28, where the
 * server hands one out to a client that declares it, and such a task is completed,
 * with a result that says isError.
 */
enum mcp_next tasks_get(struct mcp_call *c, const struct mcp_reads *r);
enum mcp_next tasks_list(struct mcp_call *c, const struct mcp_reads *r);
enum mcp_next tasks_result(struct mcp_call *c, const struct mcp_reads *r);
enum mcp_next tasks_cancel(struct mcp_call *c, const struct mcp_reads *r);

enum mcp_next tasks_get_detailed(struct mcp_call *c, const struct mcp_reads *r);
enum mcp_next tasks_cancel_soon(struct mcp_call *c, const struct mcp_reads *r);
enum mcp_next tasks_update(struct mcp_call *c, const struct mcp_reads *r);

/* The task of that run as tasks/get of 2026-07-28 has it; NULL: it is gone. The caller
 * owns it. */
json_t *tasks_detailed(struct mcp_call *c, const struct mcp_reads *r, const char *run_id);

/* Answers tools/call with the task of c->run_id, in the form of c's version. */
enum mcp_next tasks_created(struct mcp_call *c, const json_t *run);

#endif
