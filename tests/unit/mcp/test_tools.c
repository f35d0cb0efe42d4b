/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/mem.h"
#include "fake.h"
#include "schema.h"

#include "mcp/tools.h"

/* Of tokens the end-to-end tests take the measure: 2000; some 4.2 bytes each. */
enum { LIST_BYTES_MAX = 8300 };

#define CALL(name, args)                                                                 \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"                              \
	"call\",\"params\":{\"name\":\"" name "\",\"arguments\":" args "}}"
#define RUN(more)                                                                        \
	CALL("run_sandbox",                                                              \
	     "{\"identifier\":\"chat-1\",\"commands\":[{\"shell\":\"true\"}]" more "}")
#define LONG  ",\"options\":{\"await_completion\":true,\"await_timeout_ms\":90000}"
#define AWAIT ",\"options\":{\"await_completion\":true,\"await_timeout_ms\":5000}"

static struct mcp_server *server;
static struct fake_store store;
static struct mcp_reads reads;
static json_t *list; /* the result of tools/list */

static enum mcp_next post(const char *body, struct mcp_call **ret)
{
	struct mcp_http in = fake_http(SESSION_NEW, body);

	return mcp_post(server, &reads, &in, ret);
}

static int set_up(void **state)
{
	AUTO_JSON *reply = NULL;
	struct mcp_call *c = NULL;

	(void)state;
	store = (struct fake_store){0};
	reads = fake_reads(&store);
	server = fake_server();
	post("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", &c);
	reply = reply_json(c);
	list = json_incref(json_object_get(reply, "result"));
	mcp_call_free(c);
	return list ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	json_decref(list);
	mcp_server_free(server);
	return 0;
}

static const json_t *tool_named(const char *name)
{
	const json_t *tool;
	size_t i;

	json_array_foreach(at(list, "tools"), i, tool)
		if (strcmp(str_at(tool, "name"), name) == 0)
			return tool;
	fail_msg("no tool %s", name);
	return NULL;
}

/* The one tool result of the reply; checked against what every result must be. */
static json_t *result_of(struct mcp_call *c, const char *tool, bool is_error)
{
	AUTO_JSON *reply = reply_json(c);
	json_t *result = json_incref((json_t *)at(reply, "result"));
	const json_t *structured = json_object_get(result, "structuredContent");
	const json_t *text = json_array_get(at(result, "content"), 0);

	assert_int_equal(mcp_call_reply(c).status, 200);
	assert_string_equal(str_at(text, "type"), "text");
	assert_true(strlen(str_at(text, "text")) > 0);
	if (json_is_true(at(result, "isError")) != is_error)
		fail_msg("isError with: %s", str_at(text, "text"));
	if (structured)
		assert_true(schema_ok(at(tool_named(tool), "outputSchema"), structured));
	else
		assert_true(is_error);
	return result;
}

static const char *words(const json_t *result)
{
	return str_at(json_array_get(at(result, "content"), 0), "text");
}

static json_t *run_in(const char *state, const char *command)
{
	AUTO_JSON *c = parsed(command, strlen(command));

	return json_pack("{s:s, s:s, s:[O], s:[], s:i, s:[], s:i}", "run_id", "run_x",
			 "state", state, "commands", c, "artifacts", "artifacts_total", 0,
			 "artifacts_skipped", "artifacts_skipped_total", 0);
}

#define DONE                                                                             \
	"{\"index\":0,\"shell\":\"true\",\"state\":\"completed\",\"status\":"            \
	"\"completed\","                                                                 \
	"\"exit_code\":0,\"stdout\":\"hi\\n\",\"stderr\":\"\",\"stdout_bytes\":3}"
#define FAILED                                                                           \
	"{\"index\":0,\"shell\":\"false\",\"state\":\"failed\",\"status\":\"failed\","   \
	"\"exit_code\":3,\"stdout\":\"\",\"stderr\":\"no\\n\",\"stderr_bytes\":3}"

/* ---- tools/list */

static void the_list_is_small_and_well_formed(void **state)
{
	size_t ntools = TOOL_COUNT;
	AUTO_FREE char *text = json_dumps(list, JSON_COMPACT);
	size_t i;

	(void)state;
	if (strlen(text) > LIST_BYTES_MAX)
		fail_msg("tools/list has %zu bytes", strlen(text));
	assert_int_equal(json_array_size(at(list, "tools")), ntools);
	for (i = 0; i < ntools; i++) {
		const json_t *t = json_array_get(at(list, "tools"), i);
		const json_t *in = at(t, "inputSchema");
		const json_t *out = json_object_get(t, "outputSchema");

		assert_string_equal(str_at(t, "name"), conf_tool_names[i]);
		assert_true(strlen(str_at(t, "title")) > 0);
		assert_true(strlen(str_at(t, "description")) > 10);
		assert_string_equal(str_at(in, "type"), "object");
		if (out)
			assert_string_equal(str_at(out, "type"), "object");
		assert_null(json_object_get(in, "anyOf"));
		assert_null(json_object_get(in, "oneOf"));
		/* What only reads destroys nothing. */
		assert_true(json_is_true(at(at(t, "annotations"), "destructiveHint")) !=
			    json_is_true(at(at(t, "annotations"), "readOnlyHint")));
	}
}

static void operators_may_replace_and_extend_descriptions(void **state)
{
	static char other[] = "OTHER", more[] = "MORE", bad[] = "\xff";
	struct conf conf = fake_conf();
	struct mcp_server *s = NULL;
	struct err e = ERR_INIT;
	struct mcp_http in = fake_http(
		SESSION_NEW, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
	struct mcp_call *c = NULL;

	(void)state;
	conf.tool_desc_override[1] = other;
	conf.tool_desc_append[2] = more;
	assert_int_equal(mcp_server_new(&conf, &s, &e), 0);
	mcp_post(s, &reads, &in, &c);
	assert_non_null(strstr(mcp_call_reply(c).body, "\"description\":\"OTHER\""));
	assert_non_null(strstr(mcp_call_reply(c).body, "packages are gone.\\nMORE\""));
	mcp_call_free(c);
	mcp_server_free(s);

	conf.tool_desc_overrides_enabled = false;
	assert_int_equal(mcp_server_new(&conf, &s, &e), 0);
	mcp_post(s, &reads, &in, &c);
	assert_null(strstr(mcp_call_reply(c).body, "OTHER"));
	assert_null(strstr(mcp_call_reply(c).body, "MORE"));
	mcp_call_free(c);
	mcp_server_free(s);

	conf.tool_desc_overrides_enabled = true;
	conf.tool_desc_override[0] = bad;
	assert_int_equal(mcp_server_new(&conf, &s, &e), -1);
	assert_non_null(strstr(e.msg, "run_sandbox"));
}

/* ---- arguments */

/* The checks and the schema agree: what one takes, the other takes. */
static const struct {
	const char *args;
	bool good;
} arguments[] = {
	{"{\"identifier\":\"a\",\"commands\":[{\"shell\":\"ls\"}]}", true},
	{"{\"identifier\":\"a\",\"commands\":[{\"argv\":[\"ls\",\"-l\"],\"cwd\":\"/\","
	 "\"env\":{\"A\":\"b\"},\"timeout_ms\":1,\"allow_failure\":true}],"
	 "\"options\":{\"ttl_seconds\":60,\"default_cwd\":\"/"
	 "tmp\",\"default_env\":[\"A=b\"],"
	 "\"as_user\":\"root\",\"continue_on_error\":true,\"lock_sandbox\":true,"
	 "\"await_completion\":false,\"await_timeout_ms\":1}}",
	 true},
	{"{}", false},
	{"{\"commands\":[{\"shell\":\"ls\"}]}", false},
	{"{\"identifier\":\"\",\"commands\":[{\"shell\":\"ls\"}]}", false},
	{"{\"identifier\":5,\"commands\":[{\"shell\":\"ls\"}]}", false},
	{"{\"identifier\":\"a\",\"commands\":[]}", false},
	{"{\"identifier\":\"a\",\"commands\":[\"ls\"]}", false},
	{"{\"identifier\":\"a\",\"commands\":[{\"shell\":\"ls\",\"x\":1}]}", false},
	{"{\"identifier\":\"a\",\"commands\":[{\"shell\":\"ls\",\"timeout_ms\":0}]}",
	 false},
	{"{\"identifier\":\"a\",\"commands\":[{\"shell\":\"ls\",\"timeout_ms\":86400001}]"
	 "}",
	 false},
	{"{\"identifier\":\"a\",\"commands\":[{\"shell\":\"ls\"}],"
	 "\"options\":{\"as_user\":\"admin\"}}",
	 false},
	{"{\"identifier\":\"a\",\"commands\":[{\"shell\":\"ls\"}],"
	 "\"options\":{\"ttl_seconds\":604801}}",
	 false},
	{"{\"identifier\":\"a\",\"commands\":[{\"shell\":\"ls\"}],\"options\":{\"x\":1}}",
	 false},
};

static void the_schema_and_the_checks_agree(void **state)
{
	const json_t *schema = at(tool_named("run_sandbox"), "inputSchema");
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
		AUTO_JSON *args = parsed(arguments[i].args, strlen(arguments[i].args));
		AUTO_FREE char *body = NULL;
		struct mcp_call *c = NULL;
		enum mcp_next next;

		assert_true(asprintf(&body, CALL("run_sandbox", "%s"),
				     arguments[i].args) > 0);
		next = post(body, &c);
		if ((next == MCP_SEND) != arguments[i].good ||
		    schema_ok(schema, args) != arguments[i].good)
			fail_msg("%s", arguments[i].args);
		if (next == MCP_REPLY)
			json_decref(result_of(c, "run_sandbox", true));
		mcp_call_free(c);
	}
}

static void a_bad_argument_is_named(void **state)
{
	struct mcp_call *c = NULL;
	AUTO_JSON *result = NULL;

	(void)state;
	assert_int_equal(post(CALL("run_sandbox", "{\"identifier\":\"a\",\"commands\":"
						  "[{\"shell\":\"x\"},{\"shell\":\"x\","
						  "\"cwd\":\"y\"}]}"),
			      &c),
			 MCP_REPLY);
	result = result_of(c, "run_sandbox", true);
	assert_non_null(strstr(words(result), "commands[1].cwd"));
	assert_null(json_object_get(result, "structuredContent"));
	mcp_call_free(c);
}

static void a_denied_command_is_refused_with_the_pattern(void **state)
{
	struct mcp_call *c = NULL;
	AUTO_JSON *result = NULL;

	(void)state;
	assert_int_equal(post(CALL("run_sandbox", "{\"identifier\":\"a\",\"commands\":"
						  "[{\"shell\":\"rm -rf /\"}]}"),
			      &c),
			 MCP_REPLY);
	result = result_of(c, "run_sandbox", true);
	assert_non_null(strstr(words(result), "rm -rf /$"));
	mcp_call_free(c);
}

/* ---- run_sandbox */

static json_t *accepted(void)
{
	return json_pack("{s:s, s:s, s:s}", "run_id", "?", "identifier", "chat-1",
			 "sandbox_name", "mcp-sbx-chat-1-00000000");
}

static void an_accepted_run_is_told_at_once(void **state)
{
	struct mcp_call *c = NULL;
	AUTO_JSON *result = NULL;
	const json_t *m, *s;
	char run_id[64], url[128];

	(void)state;
	assert_int_equal(post(RUN(""), &c), MCP_SEND);
	assert_string_equal(mcp_call_method(c), "tools/call");
	assert_string_equal(mcp_call_tool(c), "run_sandbox");
	assert_int_equal(mcp_call_message(c).type, MSG_RUN);
	m = mcp_call_message(c).body;
	assert_string_equal(str_at(m, "tenant"), "default");
	assert_string_equal(str_at(at(m, "args"), "identifier"), "chat-1");
	snprintf(run_id, sizeof(run_id), "%s", str_at(m, "run_id"));
	assert_int_equal(strlen(run_id), 36);
	assert_int_equal(answer(c, &reads, MSG_OK, accepted()), MCP_REPLY);
	result = result_of(c, "run_sandbox", false);
	s = at(result, "structuredContent");
	assert_string_equal(str_at(s, "run_id"), run_id);
	assert_string_equal(str_at(s, "identifier"), "chat-1");
	assert_string_equal(str_at(s, "sandbox_name"), "mcp-sbx-chat-1-00000000");
	assert_null(json_object_get(s, "final"));
	snprintf(url, sizeof(url), "http://h:8080/mcp/events?run_id=%s", run_id);
	assert_string_equal(str_at(s, "events_url"), url);
	snprintf(url, sizeof(url), "http://h:8080/mcp/runs/%s", run_id);
	assert_string_equal(str_at(s, "status_url"), url);
	assert_true(strncmp(words(result), "accepted", 8) == 0);
	mcp_call_free(c);
}

static struct mcp_call *awaiting(void)
{
	struct mcp_call *c = NULL;

	assert_int_equal(post(RUN(AWAIT), &c), MCP_SEND);
	assert_int_equal(answer(c, &reads, MSG_OK, accepted()), MCP_AWAIT_RUN);
	assert_int_equal(mcp_call_await(c).timeout_ms, 5000);
	assert_int_equal(strlen(mcp_call_await(c).run_id), 36);
	return c;
}

static void an_awaited_run_brings_its_result(void **state)
{
	struct mcp_call *c = awaiting();
	AUTO_JSON *run = run_in("completed", DONE);
	AUTO_JSON *result = NULL;
	const json_t *final;

	(void)state;
	store.run = run;
	assert_int_equal(mcp_call_run_done(c, &reads), MCP_REPLY);
	result = result_of(c, "run_sandbox", false);
	final = at(at(result, "structuredContent"), "final");
	assert_string_equal(str_at(final, "state"), "completed");
	assert_string_equal(words(result), "completed: exit code 0\nstdout:\nhi\n");
	/* The structure is repeated as text without the long part. */
	assert_null(strstr(str_at(json_array_get(at(result, "content"), 1), "text"),
			   "final"));
	mcp_call_free(c);
}

static void a_failed_run_is_an_error_that_fits_the_schema(void **state)
{
	struct mcp_call *c = awaiting();
	AUTO_JSON *run = run_in("failed", FAILED);
	AUTO_JSON *result = NULL;

	(void)state;
	store.run = run;
	assert_int_equal(mcp_call_run_done(c, &reads), MCP_REPLY);
	result = result_of(c, "run_sandbox", true);
	assert_string_equal(words(result), "failed: exit code 3\nstderr:\nno\n");
	assert_non_null(json_object_get(result, "structuredContent"));
	mcp_call_free(c);
}

static void a_wait_that_ran_out_has_null_and_words(void **state)
{
	static const char running[] = "still running after ";
	int64_t since = clock_mono_ms(), ms;
	const char *told;
	char *end;
	struct mcp_call *c = awaiting();
	AUTO_JSON *run = run_in("running", "{\"index\":0,\"state\":\"running\","
					   "\"stdout\":\"so far\",\"stdout_bytes\":6}");
	AUTO_JSON *result = NULL;

	(void)state;
	store.run = run;
	assert_int_equal(mcp_call_run_done(c, &reads), MCP_REPLY);
	result = result_of(c, "run_sandbox", false);
	assert_true(json_is_null(at(at(result, "structuredContent"), "final")));
	/* An edge that is being replaced does not wait to the end, and claims no more. */
	told = strstr(words(result), running);
	assert_non_null(told);
	ms = strtoll(told + strlen(running), &end, 10);
	assert_memory_equal(end, " ms", 3);
	assert_in_range(ms, 0, clock_mono_ms() - since);
	assert_non_null(strstr(words(result), "so far"));
	mcp_call_free(c);
}

static void a_run_that_ends_as_the_wait_does_is_told_whole(void **state)
{
	struct mcp_call *c = awaiting();
	AUTO_JSON *run = run_in("completed", DONE);

	(void)state;
	store.run = run;
	assert_int_equal(mcp_call_run_done(c, &reads), MCP_REPLY);
	json_decref(result_of(c, "run_sandbox", false));
	mcp_call_free(c);
}

static void a_run_that_cannot_be_read_is_an_error(void **state)
{
	struct mcp_call *c = awaiting();
	AUTO_JSON *result = NULL;

	(void)state;
	store.run_broken = true;
	assert_int_equal(mcp_call_run_done(c, &reads), MCP_REPLY);
	result = result_of(c, "run_sandbox", true);
	assert_null(strstr(words(result), "secret"));
	mcp_call_free(c);
}

static void a_run_that_cannot_be_awaited_is_accepted_all_the_same(void **state)
{
	struct mcp_call *c = awaiting();
	struct err why = ERR_INIT;
	AUTO_JSON *result = NULL;

	(void)state;
	err_set(&why, ERR_LIMIT, "8192 requests are waiting");
	assert_int_equal(mcp_call_fail(c, &reads, &why), MCP_REPLY);
	result = result_of(c, "run_sandbox", false);
	assert_non_null(strstr(words(result), "8192 requests are waiting"));
	assert_true(json_is_null(at(at(result, "structuredContent"), "final")));
	mcp_call_free(c);
}

static void what_the_runner_refuses_is_told_to_the_model(void **state)
{
	static const struct {
		const char *kind, *message, *words;
	} all[] = {
		{"limit", "1000 runs are queued", "1000 runs are queued. Wait"},
		{"busy", "starting", "starting. Try again"},
		{"backend", "runc said no", "runc said no"},
		{"system", "open /secret: no", "the server failed inside"},
		{"store", "secret", "the server failed inside"},
		{"unheard-of", "secret", "the server failed inside"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct mcp_call *c = NULL;
		AUTO_JSON *result = NULL;

		assert_int_equal(post(RUN(AWAIT), &c), MCP_SEND);
		answer(c, &reads, MSG_ERR,
		       json_pack("{s:s, s:s}", "kind", all[i].kind, "message",
				 all[i].message));
		result = result_of(c, "run_sandbox", true);
		assert_non_null(strstr(words(result), all[i].words));
		assert_null(strstr(words(result), "secret"));
		mcp_call_free(c);
	}
}

/* ---- the others */

static void delete_says_whether_there_was_one(void **state)
{
	int was;

	(void)state;
	for (was = 0; was <= 1; was++) {
		struct mcp_call *c = NULL;
		AUTO_JSON *result = NULL;

		assert_int_equal(
			post(CALL("delete_sandbox", "{\"identifier\":\"a\"}"), &c),
			MCP_SEND);
		assert_int_equal(mcp_call_message(c).type, MSG_DELETE);
		answer(c, &reads, MSG_OK,
		       json_pack("{s:b, s:s}", "deleted", was, "identifier", "a"));
		result = result_of(c, "delete_sandbox", false);
		assert_int_equal(
			json_is_true(at(at(result, "structuredContent"), "deleted")),
			was);
		mcp_call_free(c);
	}
}

static void restart_shows_the_fresh_sandbox(void **state)
{
	struct mcp_call *c = NULL;
	AUTO_JSON *result = NULL;
	const json_t *sandbox;

	(void)state;
	assert_int_equal(post(CALL("restart_sandbox", "{\"identifier\":\"a\",\"options\":"
						      "{\"ttl_seconds\":9}}"),
			      &c),
			 MCP_SEND);
	assert_int_equal(mcp_call_message(c).type, MSG_RESTART);
	answer(c, &reads, MSG_OK,
	       json_pack("{s:{s:s, s:s, s:s, s:n}}", "sandbox", "identifier", "a", "name",
			 "mcp-sbx-a", "image", "default", "container_id"));
	result = result_of(c, "restart_sandbox", false);
	sandbox = at(at(result, "structuredContent"), "sandbox");
	assert_string_equal(str_at(sandbox, "name"), "mcp-sbx-a");
	assert_string_equal(str_at(sandbox, "container_id"), "");
	mcp_call_free(c);
}

static void the_members_of_a_batch_take_their_turns(void **state)
{
	struct mcp_http in = fake_http(
		SESSION_MID, "[" RUN(AWAIT) ",{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":"
					    "\"ping\"}," RUN("") "]");
	AUTO_JSON *run = run_in("completed", DONE);
	AUTO_JSON *reply = NULL;
	struct mcp_call *c = NULL;
	char first[64];

	(void)state;
	store.run = run;
	assert_int_equal(mcp_post(server, &reads, &in, &c), MCP_SEND);
	snprintf(first, sizeof(first), "%s", str_at(mcp_call_message(c).body, "run_id"));
	assert_int_equal(answer(c, &reads, MSG_OK, accepted()), MCP_AWAIT_RUN);
	assert_int_equal(mcp_call_run_done(c, &reads), MCP_SEND);
	assert_string_not_equal(first, str_at(mcp_call_message(c).body, "run_id"));
	assert_int_equal(answer(c, &reads, MSG_OK, accepted()), MCP_REPLY);
	reply = reply_json(c);
	assert_int_equal(json_array_size(reply), 3);
	assert_int_equal(json_integer_value(at(json_array_get(reply, 1), "id")), 2);
	mcp_call_free(c);
}

/* The run's id of a call with that _meta; NULL: it is refused, with isError. */
static char *run_id_of(const char *meta, const char *more)
{
	AUTO_FREE char *body = xasprintf(
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
		"\"name\":\"run_sandbox\",\"_meta\":{%s},\"arguments\":{%s"
		"\"identifier\":\"k\",\"commands\":[{\"shell\":\"true\"}]}}}",
		meta, more);
	struct mcp_call *c = NULL;
	char *id = NULL;

	if (post(body, &c) == MCP_SEND)
		id = xstrdup(str_at(mcp_call_message(c).body, "run_id"));
	else
		json_decref(result_of(c, "run_sandbox", true));
	mcp_call_free(c);
	return id;
}

#define KEY(text) "\"mcp-sandboxd/idempotency-key\":" text

static void the_same_key_and_arguments_are_the_same_run(void **state)
{
	AUTO_FREE char *a = run_id_of(KEY("\"a\""), "");
	AUTO_FREE char *again = run_id_of(KEY("\"a\",\"other\":1"), "");
	AUTO_FREE char *b = run_id_of(KEY("\"b\""), "");
	AUTO_FREE char *args = run_id_of(KEY("\"a\""), "\"options\":{},");
	AUTO_FREE char *none = run_id_of("", ""), *none2 = run_id_of("", "");

	(void)state;
	assert_true(id_is_run(a));
	assert_string_equal(a, again);
	assert_string_not_equal(a, b);
	assert_string_not_equal(a, args);
	assert_string_not_equal(none, none2);
	assert_null(run_id_of(KEY("\"\""), ""));
	assert_null(run_id_of(KEY("7"), ""));
}

/* Its client waits for all of them as for one. */
static void the_awaits_of_a_batch_share_one_wait(void **state)
{
	struct mcp_http in = fake_http(SESSION_MID, "[" RUN(LONG) "," RUN(LONG) "]");
	AUTO_JSON *run = run_in("running", DONE);
	struct mcp_call *c = NULL;
	int64_t until, first;

	(void)state;
	store.run = run;
	assert_int_equal(mcp_post(server, &reads, &in, &c), MCP_SEND);
	assert_int_equal(answer(c, &reads, MSG_OK, accepted()), MCP_AWAIT_RUN);
	first = mcp_call_await(c).timeout_ms;
	assert_in_range(first, 1, 50000);
	until = clock_mono_ms() + 5;
	while (clock_mono_ms() < until)
		; /* the first one is waited for */
	assert_int_equal(mcp_call_run_done(c, &reads), MCP_SEND);
	assert_int_equal(answer(c, &reads, MSG_OK, accepted()), MCP_AWAIT_RUN);
	assert_true(mcp_call_await(c).timeout_ms <= first - 5);
	mcp_call_free(c);
}

/* ---- the other tools */

#define SOME_RUN  "run_0123456789abcdef0123456789abcdef"
#define GET(more) CALL("get_run", "{\"run_id\":\"" SOME_RUN "\"" more "}")

/* The result of a call that needs the runner's answer `ok` (JSON) or none (NULL). */
static json_t *result_with(const char *body, const char *ok, const char *tool,
			   bool is_error)
{
	struct mcp_call *c = NULL;
	enum mcp_next next = post(body, &c);
	json_t *result;

	if (ok) {
		assert_int_equal(next, MCP_SEND);
		next = answer(c, &reads, MSG_OK, parsed(ok, strlen(ok)));
	}
	assert_int_equal(next, MCP_REPLY);
	result = result_of(c, tool, is_error);
	mcp_call_free(c);
	return result;
}

static void get_run_tells_a_run_or_a_part_of_its_output(void **state)
{
	AUTO_JSON *run = run_in("completed", DONE);
	AUTO_JSON *whole = NULL;
	AUTO_JSON *part = NULL;
	AUTO_JSON *rest = NULL;
	AUTO_JSON *none = NULL;

	(void)state;
	json_object_set_new(json_array_get(at(run, "commands"), 0), "ended_at",
			    json_string("2026"));
	store.run = run;
	store.output = "0123456789";
	whole = result_with(GET(""), NULL, "get_run", false);
	assert_string_equal(str_at(at(whole, "structuredContent"), "state"), "completed");
	assert_true(json_is_object(at(at(whole, "structuredContent"), "final")));
	part = result_with(GET(",\"offset\":2,\"max_bytes\":3"), NULL, "get_run", false);
	assert_string_equal(str_at(at(at(part, "structuredContent"), "output"), "text"),
			    "234");
	assert_true(
		json_is_false(at(at(at(part, "structuredContent"), "output"), "at_end")));
	rest = result_with(GET(",\"offset\":5"), NULL, "get_run", false);
	assert_true(
		json_is_true(at(at(at(rest, "structuredContent"), "output"), "at_end")));
	none = result_with(GET(",\"command\":7"), NULL, "get_run", true);
	assert_non_null(strstr(words(none), "less than 1"));
}

static void get_run_waits_for_what_goes_on(void **state)
{
	AUTO_JSON *run = run_in("running", DONE);
	AUTO_JSON *result = NULL;
	struct mcp_call *c = NULL;

	(void)state;
	store.run = run;
	assert_int_equal(post(GET(",\"wait_ms\":5000"), &c), MCP_AWAIT_RUN);
	assert_string_equal(mcp_call_await(c).run_id, SOME_RUN);
	assert_int_equal(mcp_call_await(c).timeout_ms, 5000);
	json_object_set_new(run, "state", json_string("failed"));
	assert_int_equal(mcp_call_run_done(c, &reads), MCP_REPLY);
	result = result_of(c, "get_run", false); /* the run failed, not the look at it */
	assert_string_equal(str_at(at(result, "structuredContent"), "state"), "failed");
	mcp_call_free(c);
	store.run = NULL;
	json_decref(result_with(GET(",\"wait_ms\":5000"), NULL, "get_run", true));
}

static void sandboxes_come_in_pages(void **state)
{
	AUTO_JSON *first = NULL;
	AUTO_JSON *second = NULL;
	char body[300];

	(void)state;
	store.nrows = 70;
	first = result_with(CALL("list_sandboxes", "{}"), NULL, "list_sandboxes", false);
	assert_int_equal(json_array_size(at(at(first, "structuredContent"), "sandboxes")),
			 50);
	snprintf(body, sizeof(body), CALL("list_sandboxes", "{\"cursor\":\"%s\"}"),
		 str_at(at(first, "structuredContent"), "next_cursor"));
	second = result_with(body, NULL, "list_sandboxes", false);
	assert_int_equal(
		json_array_size(at(at(second, "structuredContent"), "sandboxes")), 20);
	assert_null(json_object_get(at(second, "structuredContent"), "next_cursor"));
}

static void a_file_is_shown_as_what_it_is(void **state)
{
	static const struct {
		const char *ok, *type, *note;
	} cases[] = {
		{"{\"path\":\"/a\",\"size\":2,\"offset\":0,\"data\":\"aGk=\"}", "text",
		 NULL},
		{"{\"path\":\"/a\",\"size\":9,\"offset\":3,\"data\":\"aGk=\"}", "text",
		 "bytes 3 to 5 of 9; go on with offset 5"},
		{"{\"path\":\"/a\",\"size\":0,\"offset\":0,\"data\":\"\"}", "text",
		 "empty"},
		{"{\"path\":\"/a\",\"size\":3,\"offset\":9,\"data\":\"\"}", "text",
		 "only 3 bytes"},
		{"{\"path\":\"/a\",\"size\":3,\"offset\":0,\"data\":\"AAEC\"}",
		 "resource", NULL},
		{"{\"path\":\"/a\",\"size\":8,\"offset\":0,\"data\":\"iVBORw0KGgo=\"}",
		 "image", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mcp_call *c = NULL;
		AUTO_JSON *reply = NULL;
		const json_t *content, *last;

		assert_int_equal(
			post(CALL("read_file", "{\"identifier\":\"a\",\"path\":\"x\"}"),
			     &c),
			MCP_SEND);
		assert_int_equal(mcp_call_message(c).type, MSG_FILE_READ);
		assert_int_equal(answer(c, &reads, MSG_OK,
					parsed(cases[i].ok, strlen(cases[i].ok))),
				 MCP_REPLY);
		reply = reply_json(c);
		content = at(at(reply, "result"), "content");
		last = json_array_get(content, json_array_size(content) - 1);
		assert_string_equal(str_at(json_array_get(content, 0), "type"),
				    cases[i].type);
		if (cases[i].note)
			assert_non_null(strstr(str_at(last, "text"), cases[i].note));
		mcp_call_free(c);
	}
}

static void what_a_run_left_is_linked_and_pictures_are_shown(void **state)
{
	AUTO_JSON *run = run_in("completed", DONE);
	AUTO_JSON *result = NULL;
	const json_t *content;

	(void)state;
	json_object_set_new(run, "identifier", json_string("a"));
	json_object_set_new(run, "artifacts",
			    json_pack("[{s:s,s:i,s:s},{s:s,s:i,s:s},{s:s,s:i,s:s}]",
				      "path", "a.png", "size", 8, "url", "u", "path",
				      "big.png", "size", 5000, "url", "u", "path", "c",
				      "size", 1, "url", "u"));
	store.run = run;
	store.artifact = "\x89PNG\r\n\x1a\n";
	store.artifact_n = 8;
	result = result_with(GET(""), NULL, "get_run", false);
	content = at(result, "content");
	/* words, structured, a picture, and as many links as are allowed */
	assert_int_equal(json_array_size(content), 5);
	assert_string_equal(str_at(json_array_get(content, 2), "type"), "image");
	assert_string_equal(str_at(json_array_get(content, 3), "type"), "resource_link");
	assert_string_equal(str_at(json_array_get(content, 4), "name"), "big.png");
}

static void tools_that_are_not_offered_are_unknown(void **state)
{
	static char some[] = "get_run";
	struct conf conf = fake_conf();
	struct mcp_server *s = NULL;
	struct err e = ERR_INIT;
	struct mcp_http in = fake_http(SESSION_NEW, RUN(""));
	struct mcp_call *c = NULL;

	(void)state;
	conf.tools = some;
	assert_int_equal(mcp_server_new(&conf, &s, &e), 0);
	assert_int_equal(mcp_post(s, &reads, &in, &c), MCP_REPLY);
	assert_non_null(strstr(mcp_call_reply(c).body, "unknown tool"));
	mcp_call_free(c);
	mcp_server_free(s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(the_list_is_small_and_well_formed),
		TEST(operators_may_replace_and_extend_descriptions),
		TEST(the_schema_and_the_checks_agree),
		TEST(a_bad_argument_is_named),
		TEST(a_denied_command_is_refused_with_the_pattern),
		TEST(an_accepted_run_is_told_at_once),
		TEST(an_awaited_run_brings_its_result),
		TEST(a_failed_run_is_an_error_that_fits_the_schema),
		TEST(a_wait_that_ran_out_has_null_and_words),
		TEST(a_run_that_ends_as_the_wait_does_is_told_whole),
		TEST(a_run_that_cannot_be_read_is_an_error),
		TEST(a_run_that_cannot_be_awaited_is_accepted_all_the_same),
		TEST(what_the_runner_refuses_is_told_to_the_model),
		TEST(delete_says_whether_there_was_one),
		TEST(restart_shows_the_fresh_sandbox),
		TEST(the_members_of_a_batch_take_their_turns),
		TEST(the_same_key_and_arguments_are_the_same_run),
		TEST(the_awaits_of_a_batch_share_one_wait),
		TEST(get_run_tells_a_run_or_a_part_of_its_output),
		TEST(get_run_waits_for_what_goes_on),
		TEST(sandboxes_come_in_pages),
		TEST(a_file_is_shown_as_what_it_is),
		TEST(what_a_run_left_is_linked_and_pictures_are_shown),
		TEST(tools_that_are_not_offered_are_unknown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
