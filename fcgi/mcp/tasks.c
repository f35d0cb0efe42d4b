/* SPDX-License-Identifier: MIT */
#include "mcp/tasks.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/json.h"
#include "mcp/failure.h"
#include "mcp/modern.h"
#include "mcp/run_tool.h"
#include "mcp/run_words.h"
#include "mcp/runpage.h"
#include "wire/idenc.h"

enum {
	POLL_MS = 1000,
	WORDS_MAX = 4096,
	/* TERM, grace and KILL are over by then (SANDBOX's stop of a command). */
	CANCEL_MS = 30000,
	RESULT_MS = 24 * 3600 * 1000,
	TASKS_PAGE = 50,
};

/* ---- a run as a task */

struct status {
	const char *of_run, *legacy, *modern;
};
static const struct status statuses[] = {
	{"queued", "working", "working"},        {"running", "working", "working"},
	{"completed", "completed", "completed"}, {"failed", "failed", "completed"},
	{"canceled", "cancelled", "cancelled"},
};

static const char *status_of(const struct mcp_call *c, const json_t *run)
{
	const char *state = json_get_string(run, "state");

	for (size_t i = 0; state && i < sizeof(statuses) / sizeof(statuses[0]); i++)
		if (strcmp(statuses[i].of_run, state) == 0)
			return c->version->era == MCP_MODERN ? statuses[i].modern
							     : statuses[i].legacy;
	return "failed";
}

static json_t *changed_at(const json_t *run)
{
	static const char *const keys[] = {"ended_at", "started_at", "created_at"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		json_t *v = json_object_get(run, keys[i]);

		if (json_is_string(v))
			return json_incref(v);
	}
	return json_string("");
}

static json_t *created_at(const json_t *run)
{
	json_t *v = json_object_get(run, "created_at");

	return json_is_string(v) ? json_incref(v) : json_string("");
}

/* How far it is, in a sentence. */
static json_t *message_of(const json_t *run)
{
	char words[WORDS_MAX];
	const char *error = json_get_string(run, "error");
	const json_t *commands = json_object_get(run, "commands"), *command;
	size_t i, done = 0;

	if (error)
		return rpc_text(error, strlen(error));
	if (!commands)
		return NULL; /* of a list */
	json_array_foreach(commands, i, command)
		done += json_is_string(json_object_get(command, "ended_at"));
	snprintf(words, sizeof(words), "commands that have ended: %zu of %zu", done,
		 json_array_size(commands));
	return json_string(words);
}

/* That of the run, of a list; or the one that was asked for. */
static json_t *id_of(const struct mcp_call *c, const json_t *run)
{
	json_t *id = json_object_get(run, "run_id");

	return id ? json_incref(id) : json_string(c->run_id);
}

static json_t *task_of(const struct mcp_call *c, const json_t *run)
{
	bool modern = c->version->era == MCP_MODERN;
	int64_t kept = c->server->run_kept_ms;
	json_t *task = json_must(json_pack(
		"{s:o, s:s, s:o, s:o, s:i}", "taskId", id_of(c, run), "status",
		status_of(c, run), "createdAt", created_at(run), "lastUpdatedAt",
		changed_at(run), modern ? "pollIntervalMs" : "pollInterval", POLL_MS));
	json_t *words = message_of(run);

	if (words)
		json_put(task, "statusMessage", words);

	json_object_set_new(task, modern ? "ttlMs" : "ttl",
			    kept > 0 ? json_integer(kept) : json_null());
	return task;
}

enum mcp_next tasks_created(struct mcp_call *c, const json_t *run)
{
	AUTO_JSON *task = task_of(c, run);
	AUTO_JSON *result = NULL;
	AUTO_BUF words = BUF_INIT(WORDS_MAX);

	if (c->version->era == MCP_MODERN) {
		json_object_set_new(task, "resultType", json_string("task"));
		return call_result(c, task);
	}
	run_words_accepted(&words);
	result = json_pack("{s:O, s:{s:o}}", "task", task, "_meta",
			   MODERN_META "model-immediate-response",
			   rpc_text(words.p, words.len));
	return call_result(c, result);
}

/* ---- which task */

/* 1: *ret is its run, and c->run_id its id; 0: answered. */
static int find(struct mcp_call *c, const struct mcp_reads *r, json_t **ret)
{
	const char *id = json_get_string(c->msg.params, "taskId");
	struct err e = ERR_INIT;
	int rc = 0;

	if (id && idenc_is_run_id(id)) {
		snprintf(c->run_id, sizeof(c->run_id), "%s", id);
		rc = r->run(r->arg, c->tenant, c->run_id, c->base_url, ret, &e);
	}
	if (rc < 0)
		call_failure(c, &e);
	else if (rc == 0)
		call_error(c, RPC_BAD_PARAMS, "no such task; it may have been removed");
	return rc == 1;
}

static enum mcp_next send_cancel(struct mcp_call *c, call_answer_fn *then)
{
	return call_send(c, MSG_CANCEL,
			 json_pack("{s:s, s:s, s:s}", "tenant", c->tenant, "run_id",
				   c->run_id, "reason", "its task was cancelled"),
			 then);
}

/* ---- 2025-11-25 */

enum mcp_next tasks_get(struct mcp_call *c, const struct mcp_reads *r)
{
	AUTO_JSON *run = NULL;
	AUTO_JSON *task = NULL;

	if (!find(c, r, &run))
		return MCP_REPLY;
	task = task_of(c, run);
	return call_result(c, task);
}

/*
 * All of the tenant, the newest first. Who shares a tenant shares its runs, by
 * resources/list too, so nothing is told here that is hidden elsewhere.
 */
enum mcp_next tasks_list(struct mcp_call *c, const struct mcp_reads *r)
{
	json_t *list = json_array();
	AUTO_JSON *result = json_pack("{s:o}", "tasks", list);
	AUTO_JSON *runs = NULL;
	const json_t *run;
	size_t i;

	if (runpage_read(c, r, TASKS_PAGE, result, &runs) < 0)
		return MCP_REPLY;
	json_array_foreach(runs, i, run)
		json_array_append_new(list, task_of(c, run));
	return call_result(c, result);
}

static enum mcp_next answer_result(struct mcp_call *c, const struct mcp_reads *r,
				   json_t *run)
{
	AUTO_JSON *result = run_tool_result(c, r, run);

	json_object_set_new(
		result, "_meta",
		json_pack("{s:{s:s}}", MODERN_META "related-task", "taskId", c->run_id));
	return call_result(c, result);
}

static enum mcp_next cannot_wait(struct mcp_call *c, const struct mcp_reads *r,
				 const json_t *ok, const struct err *why)
{
	(void)r;
	(void)ok;
	return call_failure(c, why);
}

static enum mcp_next result_done(struct mcp_call *c, const struct mcp_reads *r)
{
	AUTO_JSON *run = NULL;

	if (!find(c, r, &run))
		return MCP_REPLY;
	if (!run_tool_ended(run))
		return call_error(c, RPC_INTERNAL,
				  "the task is still working; ask again");
	return answer_result(c, r, run);
}

/* Blocks until the end, as the specification wants it; as a stream when it may. */
enum mcp_next tasks_result(struct mcp_call *c, const struct mcp_reads *r)
{
	AUTO_JSON *run = NULL;

	if (!find(c, r, &run))
		return MCP_REPLY;
	if (run_tool_ended(run))
		return answer_result(c, r, run);
	c->waits_streaming = true;
	return call_await(c, RESULT_MS, result_done, cannot_wait);
}

static enum mcp_next cancel_done(struct mcp_call *c, const struct mcp_reads *r)
{
	return tasks_get(c, r);
}

static enum mcp_next cancel_taken(struct mcp_call *c, const struct mcp_reads *r,
				  const json_t *ok, const struct err *why)
{
	(void)r;
	if (!ok)
		return call_failure(c, why);
	return call_await(c, CANCEL_MS, cancel_done, cannot_wait);
}

/* The answer shows it as cancelled, so it waits until it is. */
enum mcp_next tasks_cancel(struct mcp_call *c, const struct mcp_reads *r)
{
	AUTO_JSON *run = NULL;

	if (!find(c, r, &run))
		return MCP_REPLY;
	if (run_tool_ended(run))
		return call_error(c, RPC_BAD_PARAMS, "the task has ended: %s",
				  status_of(c, run));
	return send_cancel(c, cancel_taken);
}

/* ---- 2026-07-28 */

/* It could not even begin: no command was run, so there is no result. */
static bool never_began(const json_t *run)
{
	const char *state = json_get_string(run, "state");

	return state && strcmp(state, "failed") == 0 &&
	       json_is_null(json_object_get(run, "started_at"));
}

static void add_error(json_t *task, const json_t *run)
{
	const char *error = json_get_string(run, "error");

	json_object_set_new(task, "status", json_string("failed"));
	json_object_set_new(task, "error",
			    json_pack("{s:i, s:o}", "code", RPC_INTERNAL, "message",
				      error ? rpc_text(error, strlen(error))
					    : json_string("the run could not begin")));
}

static json_t *detailed(const struct mcp_call *c, const struct mcp_reads *r, json_t *run)
{
	json_t *task = task_of(c, run);

	if (never_began(run)) {
		add_error(task, run);
	} else if (strcmp(status_of(c, run), "completed") == 0) {
		AUTO_JSON *plain = run_tool_result(c, r, run);

		json_object_set_new(task, "result", modern_result(NULL, plain));
	}
	return task;
}

json_t *tasks_detailed(struct mcp_call *c, const struct mcp_reads *r, const char *run_id)
{
	AUTO_JSON *run = NULL;
	struct err e = ERR_INIT;

	snprintf(c->run_id, sizeof(c->run_id), "%s", run_id);
	if (r->run(r->arg, c->tenant, run_id, c->base_url, &run, &e) < 1)
		return NULL;
	return detailed(c, r, run);
}

enum mcp_next tasks_get_detailed(struct mcp_call *c, const struct mcp_reads *r)
{
	AUTO_JSON *run = NULL;
	AUTO_JSON *task = NULL;

	if (!modern_client_has(c, MODERN_EXT_TASKS))
		return modern_demand(c, MODERN_EXT_TASKS);
	if (!find(c, r, &run))
		return MCP_REPLY;
	task = detailed(c, r, run);
	return call_result(c, task);
}

static enum mcp_next acknowledge(struct mcp_call *c)
{
	AUTO_JSON *empty = json_object();

	return call_result(c, empty);
}

static enum mcp_next cancel_acknowledged(struct mcp_call *c, const struct mcp_reads *r,
					 const json_t *ok, const struct err *why)
{
	(void)r;
	return ok ? acknowledge(c) : call_failure(c, why);
}

enum mcp_next tasks_cancel_soon(struct mcp_call *c, const struct mcp_reads *r)
{
	AUTO_JSON *run = NULL;

	if (!modern_client_has(c, MODERN_EXT_TASKS))
		return modern_demand(c, MODERN_EXT_TASKS);
	if (!find(c, r, &run))
		return MCP_REPLY;
	return run_tool_ended(run) ? acknowledge(c) : send_cancel(c, cancel_acknowledged);
}

/* No task of ours asks for input, so whatever is answered is of no use, and fine. */
enum mcp_next tasks_update(struct mcp_call *c, const struct mcp_reads *r)
{
	AUTO_JSON *run = NULL;

	if (!modern_client_has(c, MODERN_EXT_TASKS))
		return modern_demand(c, MODERN_EXT_TASKS);
	return find(c, r, &run) ? acknowledge(c) : MCP_REPLY;
}
