/* SPDX-License-Identifier: MIT */
/*
 * What the official conformance suite asks of a server under test, in a build of its
 * own and never in the product. fixtures.json has it all: `calls` are the tools that
 * always answer the same, `telling` those that notify on the way, `asking` those that
 * ask the client, round by round, `running` those that are real runs (so tasks are real
 * ones), `answers` the other methods, as far as the product has none of its own.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/json.h"
#include "base/mem.h"
#include "mcp/ask.h"
#include "mcp/extra.h"
#include "mcp/methods.h"
#include "mcp/modern.h"
#include "mcp/tools.h"

enum { TEXT_MAX = 64 * 1024 };

__asm__(".section .rodata\n"
	"fixtures_text: .incbin \"tests/clients/fixtures.json\"\n"
	"fixtures_end: .byte 0\n"
	".previous\n");
extern const char fixtures_text[], fixtures_end[];

/* A document stays on one thread, so each call has its own. */
static json_t *fixtures(void)
{
	struct err e = ERR_INIT;
	json_t *v = NULL;
	int rc =
		json_parse(fixtures_text, (size_t)(fixtures_end - fixtures_text), &v, &e);

	assert(rc == 0);
	(void)rc;
	return v;
}

static const json_t *part(const json_t *all, const char *name, const char *key)
{
	return json_object_get(json_object_get(all, name), key);
}

/* A list or a read: what the modern era wants kept for a while. */
static enum mcp_next answer(struct mcp_call *c, const json_t *result)
{
	static const struct method kept = {.cache_scope = "private", .cache_ms = 1000};

	if (!c->method &&
	    (strstr(c->msg.method, "list") || strstr(c->msg.method, "read")))
		c->method = &kept;
	return call_result(c, result);
}

/* ${NAME} becomes that argument of the request. */
static json_t *filled(const json_t *result, const json_t *args)
{
	AUTO_FREE char *text = json_dumps(result, JSON_COMPACT);
	AUTO_BUF b = BUF_INIT(TEXT_MAX);
	const char *at = text, *mark;
	struct err e = ERR_INIT;
	json_t *v = NULL;

	while ((mark = strstr(at, "${"))) {
		size_t n = strcspn(mark, "}");
		AUTO_FREE char *name = xstrndup(mark + 2, n - 2);
		const char *value = json_get_string(args, name);

		buf_add(&b, at, (size_t)(mark - at));
		buf_puts(&b, value ? value : "");
		at = mark + n + 1;
	}
	buf_puts(&b, at);
	return json_parse(b.p, b.len, &v, &e) == 0 ? v : json_object();
}

/* ---- tools */

static enum mcp_next tell(struct mcp_call *c, const json_t *how)
{
	AUTO_JSON *done =
		json_pack("{s:[{s:s, s:s}]}", "content", "type", "text", "text", "Told.");
	const char *method = json_get_string(how, "method");
	json_t *params;
	size_t i;

	json_array_foreach(json_object_get(how, "params"), i, params) {
		if (c->progress.token)
			json_object_set(params, "progressToken",
					(json_t *)c->progress.token);
		/* The end of one frame, the beginning of the next. */
		rpc_add_notification(&c->reply, method, params);
		buf_puts(&c->reply, "\n\nevent: message\ndata: ");
	}
	c->is_stream = true;
	return call_result(c, done);
}

/* ---- tools and prompts that ask */

static enum mcp_next run(struct mcp_call *c, const struct mcp_reads *r,
			 const char *script);

/* All that was answered, where the suite looks for it. */
static enum mcp_next finish(struct mcp_call *c, const struct mcp_reads *r,
			    const json_t *how, const json_t *answers)
{
	AUTO_FREE char *text = json_dumps(answers, JSON_COMPACT);
	AUTO_JSON *content = json_pack("{s:s, s:s}", "type", "text", "text", text);
	AUTO_JSON *result = NULL;

	if (json_object_get(how, "runs")) {
		AUTO_JSON *quoted = json_string(text);
		AUTO_FREE char *word = json_dumps(quoted, JSON_ENCODE_ANY);
		AUTO_FREE char *script = xasprintf("echo %s", word);

		return run(c, r, script);
	}
	if (json_object_get(how, "prompt"))
		result = json_pack("{s:[{s:s, s:O}]}", "messages", "role", "user",
				   "content", content);
	else
		result = json_pack("{s:[O]}", "content", content);
	return call_result(c, result);
}

static enum mcp_next ask_round(struct mcp_call *c, const struct mcp_reads *r,
			       json_int_t round);

/* Which round it is says the state; so in the legacy era there is one. */
static enum mcp_next told(struct mcp_call *c, const struct mcp_reads *r,
			  const json_t *answers, const struct err *why)
{
	AUTO_JSON *all = fixtures();
	const json_t *how = part(all, "asking", json_get_string(c->msg.params, "name"));
	const json_t *rounds = json_object_get(how, "rounds");
	AUTO_JSON *state = NULL;
	json_int_t round = 0;

	if (!answers)
		return call_error(c, RPC_INTERNAL, "%s", why->msg);
	if (ask_state(c, r, &state) > 0)
		round = json_integer_value(json_object_get(state, "round"));
	if (c->version->era == MCP_MODERN && (size_t)round + 1 < json_array_size(rounds))
		return ask_round(c, r, round + 1);
	return finish(c, r, how, answers);
}

/* Only what the client declares, for the one tool that is about that. */
static void drop_undeclared(const struct mcp_call *c, json_t *questions)
{
	if (!(ask_client_can(c) & ASK_ELICITATION))
		json_object_del(questions, "user_name");
	if (!(ask_client_can(c) & ASK_SAMPLING))
		json_object_del(questions, "greeting");
}

static enum mcp_next ask_round(struct mcp_call *c, const struct mcp_reads *r,
			       json_int_t round)
{
	AUTO_JSON *all = fixtures();
	const json_t *how = part(all, "asking", json_get_string(c->msg.params, "name"));
	json_t *questions =
		filled(json_array_get(json_object_get(how, "rounds"), (size_t)round),
		       json_object_get(c->msg.params, "arguments"));
	AUTO_JSON *state = NULL;

	if (json_object_get(how, "state"))
		state = json_pack("{s:I}", "round", round);
	if (json_object_get(how, "declared"))
		drop_undeclared(c, questions);
	return ask_client(
		c, r,
		&(struct ask){.questions = questions, .state = state, .then = told});
}

static enum mcp_next ask(struct mcp_call *c, const struct mcp_reads *r)
{
	AUTO_JSON *state = NULL;
	int rc = ask_state(c, r, &state);

	if (rc < 0)
		return MCP_REPLY;
	return ask_round(c, r, json_integer_value(json_object_get(state, "round")));
}

/* ---- tools that are runs */

/* What the test's runtime never starts, so that a run cannot begin. */
static const char *sandbox_of(const struct mcp_call *c)
{
	const char *name = json_get_string(c->msg.params, "name");

	return name && strcmp(name, "protocol_error_job") == 0 ? "cannot-begin"
							       : "conformance";
}

/* The call becomes one of run_sandbox. */
static enum mcp_next run(struct mcp_call *c, const struct mcp_reads *r,
			 const char *script)
{
	const json_t *args = json_object_get(c->msg.params, "arguments");
	int seconds = (int)json_integer_value(json_object_get(args, "seconds"));
	char text[TEXT_MAX / 8];
	json_t *params;

	if (strcmp(script, "sleep %d") == 0)
		snprintf(text, sizeof(text), "sleep %d", seconds);
	else
		snprintf(text, sizeof(text), "%s", script);
	params = json_pack("{s:s, s:{s:s, s:[{s:s}], s:{s:b}}, s:O?}", "name",
			   "run_sandbox", "arguments", "identifier", sandbox_of(c),
			   "commands", "shell", text, "options", "await_completion", 1,
			   "_meta", json_object_get(c->msg.params, "_meta"));
	json_object_set_new(c->doc, "params", params);
	c->msg.params = params;
	c->capabilities = json_object_get(json_object_get(params, "_meta"),
					  MODERN_META "clientCapabilities");
	return tool_call(c, r);
}

static bool call_tool(struct mcp_call *c, const struct mcp_reads *r, const json_t *all,
		      enum mcp_next *ret)
{
	const char *name = json_get_string(c->msg.params, "name");
	const json_t *result = part(all, "calls", name);
	const json_t *how = part(all, "telling", name);
	const json_t *script = part(all, "running", name);

	if (part(all, "asking", name)) {
		*ret = ask(c, r);
	} else if (result) {
		AUTO_JSON *whole =
			filled(result, json_object_get(c->msg.params, "arguments"));

		*ret = call_result(c, whole);
	} else if (how && c->accepts_stream &&
		   (c->progress.token || !json_is_true(json_object_get(how, "token"))))
		*ret = tell(c, how);
	else if (script && strcmp(name, "failing_job") == 0 &&
		 c->version->era == MCP_MODERN && !modern_client_has(c, MODERN_EXT_TASKS))
		*ret = modern_demand(c, MODERN_EXT_TASKS); /* it demands a task */
	else if (script)
		*ret = run(c, r, json_string_value(script));
	else if (name && strcmp(name, "test_missing_capability") == 0)
		*ret = call_fault_data(
			c, 400, RPC_MISSING_CAPABILITY,
			json_pack("{s:{s:{}}}", "requiredCapabilities", "sampling"),
			"sampling is needed");
	else
		return false;
	return true;
}

/* ---- the other methods */

static bool same(const json_t *wanted, const json_t *params, const char *key)
{
	const json_t *v = json_object_get(wanted, key);

	return !v || json_equal((json_t *)v, json_object_get(params, key));
}

static bool is_meant(const struct mcp_call *c, const json_t *a)
{
	bool any = !json_object_get(a, "name") && !json_object_get(a, "uri");

	return strcmp(json_get_string(a, "method"), c->msg.method) == 0 &&
	       !(any && c->method) && /* the product's own list stands */
	       !(json_object_get(a, "legacy") && c->version->era == MCP_MODERN) &&
	       same(a, c->msg.params, "name") && same(a, c->msg.params, "uri");
}

static bool handle(struct mcp_call *c, const struct mcp_reads *r, enum mcp_next *ret)
{
	AUTO_JSON *all = fixtures();
	const json_t *a;
	size_t i;

	if (strcmp(c->msg.method, "tools/call") == 0)
		return call_tool(c, r, all, ret);
	if (strcmp(c->msg.method, "prompts/get") == 0 &&
	    part(all, "asking", json_get_string(c->msg.params, "name"))) {
		*ret = ask(c, r);
		return true;
	}
	json_array_foreach(json_object_get(all, "answers"), i, a) {
		AUTO_JSON *result = NULL;

		if (!is_meant(c, a))
			continue;
		result = filled(json_object_get(a, "result"),
				json_object_get(c->msg.params, "arguments"));
		*ret = answer(c, result);
		return true;
	}
	if (c->method || (strcmp(c->msg.method, "prompts/get") != 0 &&
			  strcmp(c->msg.method, "resources/read") != 0))
		return false;
	*ret = call_fault_data(
		c, 200, RPC_BAD_PARAMS,
		json_pack("{s:O?}", "uri", json_object_get(c->msg.params, "uri")),
		"none of the fixtures");
	return true;
}

static json_t *tools_of_fixtures(void)
{
	AUTO_JSON *all = fixtures();

	return json_incref(json_object_get(all, "tools"));
}

const struct mcp_extra mcp_extra = {
	.handle = handle,
	.tools = tools_of_fixtures,
	.capabilities = "{\"prompts\":{},\"resources\":{},\"completions\":{}}",
};
