/* SPDX-License-Identifier: MIT */
#include "mcp/tools.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "mcp/consent.h"
#include "mcp/failure.h"
#include "mcp/file_tools.h"
#include "mcp/get_run.h"
#include "mcp/run_tool.h"
#include "wire/runspec.h"

enum { WORDS_MAX = 4096, STRUCTURED_TEXT_MAX = 64 * 1024 };

/* ---- delete_sandbox, restart_sandbox */

static int check_ref(struct mcp_call *c, bool with_ttl, struct err *e)
{
	struct sandbox_ref ref = {0};

	if (sandboxref_parse(c->args, with_ttl, &c->server->limits, &ref, e) < 0)
		return -1;
	sandboxref_release(&ref);
	return 0;
}

static int check_delete(struct mcp_call *c, struct err *e)
{
	return check_ref(c, false, e);
}

static int check_restart(struct mcp_call *c, struct err *e)
{
	return check_ref(c, true, e);
}

/* Consent was given for one sandbox. */
static void fill_only(const struct mcp_call *c, json_t *message)
{
	if (c->consent_for >= 0)
		json_put(message, "only", json_integer(c->consent_for));
}

static enum mcp_next deleted(struct mcp_call *c, const struct mcp_reads *r,
			     const json_t *ok)
{
	const char *identifier =
		json_string_value(json_object_get(c->args, "identifier"));
	bool done = json_is_true(json_object_get(ok, "deleted"));
	AUTO_JSON *result =
		json_pack("{s:b, s:s}", "deleted", done, "identifier", identifier);

	(void)r;
	return tool_answer(c, false,
			   done ? "deleted: the sandbox and its files are gone; the next "
				  "run_sandbox with this identifier begins with a new one"
				: "nothing to delete: there is no sandbox for this "
				  "identifier",
			   result);
}

static enum mcp_next restarted(struct mcp_call *c, const struct mcp_reads *r,
			       const json_t *ok)
{
	static const char *const keys[] = {"identifier", "container_id", "name",
					   "created_at", "expires_at",   "image"};
	const json_t *from = json_object_get(ok, "sandbox");
	AUTO_JSON *result = json_pack("{s:{}}", "sandbox");
	json_t *sandbox = json_object_get(result, "sandbox");
	size_t i;

	(void)r;
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		json_t *v = json_object_get(from, keys[i]);

		if (json_is_string(v))
			json_object_set(sandbox, keys[i], v);
		else
			json_object_set_new(sandbox, keys[i], json_string(""));
	}
	return tool_answer(c, false,
			   "restarted: a fresh sandbox is ready; installed packages and "
			   "files of the old one are gone",
			   result);
}

const struct tool tools[TOOL_COUNT] = {
	[TOOL_RUN] = {"run_sandbox", MSG_RUN, run_tool_check, run_tool_fill,
		      run_tool_accepted, NULL, true},
	[TOOL_DELETE] = {"delete_sandbox", MSG_DELETE, check_delete, fill_only, deleted,
			 NULL, .destroys = true},
	[TOOL_RESTART] = {"restart_sandbox", MSG_RESTART, check_restart, fill_only,
			  restarted, NULL, .destroys = true},
	[TOOL_GET] = {"get_run", 0, get_run_check, NULL, NULL, get_run_begin, false},
	[TOOL_CANCEL] = {"cancel_run", MSG_CANCEL, cancel_run_check, cancel_run_fill,
			 cancel_run_accepted, NULL, false},
	[TOOL_SANDBOXES] = {"list_sandboxes", 0, list_sandboxes_check, NULL, NULL,
			    list_sandboxes_begin, false},
	[TOOL_WRITE] = {"write_file", MSG_FILE_WRITE, write_file_check, NULL,
			write_file_accepted, NULL, false},
	[TOOL_READ] = {"read_file", MSG_FILE_READ, read_file_check, NULL,
		       read_file_accepted, NULL, false},
	[TOOL_FILES] = {"list_files", MSG_FILE_LIST, list_files_check, NULL,
			list_files_accepted, NULL, false},
};

/* ---- tools/call */

/*
 * The structured result as text, for clients that know no structuredContent. A
 * final run or a part of output is left out: the words before it tell it.
 */
static json_t *as_text(const json_t *structured)
{
	AUTO_JSON *copy = json_copy((json_t *)structured);
	AUTO_BUF b = BUF_INIT(STRUCTURED_TEXT_MAX);

	if (json_is_object(json_object_get(copy, "final")))
		json_object_del(copy, "final");
	json_object_del(copy, "output"); /* a part that the words show */
	rpc_add_json(&b, copy);
	return json_pack("{s:s, s:o}", "type", "text", "text", rpc_text(b.p, b.len));
}

json_t *tool_result(bool is_error, const char *words, const json_t *structured)
{
	json_t *result =
		json_pack("{s:[{s:s, s:o}], s:b}", "content", "type", "text", "text",
			  rpc_text(words, strlen(words)), "isError", is_error);

	if (structured) {
		json_array_append_new(json_object_get(result, "content"),
				      as_text(structured));
		json_object_set(result, "structuredContent", (json_t *)structured);
	}
	return result;
}

enum mcp_next tool_answer(struct mcp_call *c, bool is_error, const char *words,
			  const json_t *structured)
{
	AUTO_JSON *result = tool_result(is_error, words, structured);

	return call_result(c, result);
}

enum mcp_next tool_answer_briefly(struct mcp_call *c, const char *words,
				  const json_t *structured)
{
	AUTO_JSON *result = tool_result(false, words, NULL);

	json_object_set(result, "structuredContent", (json_t *)structured);
	return call_result(c, result);
}

enum mcp_next tool_failed(struct mcp_call *c, const struct err *why,
			  const json_t *structured)
{
	char words[WORDS_MAX];

	return tool_answer(c, true, failure_text(why, words, sizeof(words)), structured);
}

/* As a task it never began, and that is a protocol error (SPEC 2025-11-25, tasks). */
static enum mcp_next refused(struct mcp_call *c, const struct err *why)
{
	char words[WORDS_MAX];

	if (c->as_task)
		return call_error(c, failure_of(why->kind)->code, "%s",
				  failure_text(why, words, sizeof(words)));
	return tool_failed(c, why, NULL);
}

static enum mcp_next runner_answered(struct mcp_call *c, const struct mcp_reads *r,
				     const json_t *ok, const struct err *why)
{
	struct err lost = ERR_INIT;

	if (ok)
		return c->tool->accepted(c, r, ok);
	if (why->kind == ERR_TIMEOUT && c->run_is_ours) {
		err_set(&lost, why->kind,
			"%.100s; if the run was accepted it is %s, and "
			"get_run tells how it goes",
			why->msg, c->run_id);
		why = &lost;
	}
	c->run_is_ours = false;
	return refused(c, why);
}

bool tool_is_offered(const char *list, const char *name)
{
	return !list || !*list || str_list_has(list, name);
}

static const struct tool *find_tool(const struct mcp_call *c, const char *name)
{
	size_t i;

	for (i = 0; i < TOOL_COUNT; i++)
		if (strcmp(tools[i].name, name) == 0)
			return tool_is_offered(c->server->tools, name) ? &tools[i] : NULL;
	return NULL;
}

/* An absent or null `arguments` is what some clients send for no arguments. */
static json_t *arguments_of(struct mcp_call *c)
{
	json_t *args = json_object_get(c->msg.params, "arguments");

	if (args && !json_is_null(args))
		return args;
	c->owned_args = json_object();
	return c->owned_args;
}

static enum mcp_next ask_runner(struct mcp_call *c)
{
	json_t *message = json_pack("{s:s, s:O}", "tenant", c->tenant, "args", c->args);

	if (c->tool->fill)
		c->tool->fill(c, message);
	return call_send(c, c->tool->message, message, runner_answered);
}

enum mcp_next tool_call(struct mcp_call *c, const struct mcp_reads *r)
{
	const char *name = json_string_value(json_object_get(c->msg.params, "name"));
	struct err e = ERR_INIT;

	if (!name)
		return call_error(c, RPC_BAD_PARAMS, "params.name must be a string");
	c->tool = find_tool(c, name);
	if (!c->tool)
		return call_error(c, RPC_BAD_PARAMS,
				  "unknown tool %.100s; tools/list tells them", name);
	c->args = arguments_of(c);
	if (!json_is_object(c->args))
		return call_error(c, RPC_BAD_PARAMS,
				  "params.arguments must be an object");
	c->as_task = c->version->has_tasks &&
		     json_is_object(json_object_get(c->msg.params, "task"));
	if (c->as_task && !c->tool->may_be_task)
		return call_error(c, RPC_NO_METHOD, "%s cannot be a task", name);
	if (c->tool->check(c, &e) < 0 || (c->run_is_ours && run_tool_name(c, r, &e) < 0))
		return refused(c, &e);
	if (c->tool->begin)
		return c->tool->begin(c, r);
	if (c->tool->destroys && c->server->confirm_delete)
		return consent_ask(c, r, ask_runner);
	return ask_runner(c);
}
