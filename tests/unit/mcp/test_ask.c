/* SPDX-License-Identifier: MIT */
#include "fake.h"

#include "base/mem.h"
#include "mcp/ask.h"
#include "mcp/logmsg.h"

/* The client is asked before a sandbox is deleted (CONFIRM_DELETE), in both eras. */
#define P    "io.modelcontextprotocol/"
#define SSE  "application/json, text/event-stream"
#define MSGS "\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{"
#define ARGS "\"name\":\"delete_sandbox\",\"arguments\":{\"identifier\":\"%s\"}"

static struct mcp_server *server;
static struct fake_store store;
static struct mcp_reads reads;

static int set_up(void **state)
{
	struct conf c = fake_conf();
	struct err e = ERR_INIT;

	(void)state;
	c.confirm_delete = true;
	store = (struct fake_store){0};
	reads = fake_reads(&store);
	return mcp_server_new(&c, &server, &e);
}

static int tear_down(void **state)
{
	(void)state;
	mcp_server_free(server);
	return 0;
}

static json_t *reply_of(const struct mcp_call *c)
{
	struct mcp_reply r = mcp_call_reply(c);

	return parsed(r.body, r.body_len);
}

/* ---- modern */

/* caps: of the client; more: further params, each with its comma before it. */
static enum mcp_next modern(const char *identifier, const char *caps, const char *more,
			    struct mcp_call **ret)
{
	AUTO_BUF body = BUF_INIT(65536);
	struct mcp_http in = fake_http(NULL, "");

	buf_printf(&body,
		   "{" MSGS ARGS "%s,\"_meta\":{\"" P
		   "protocolVersion\":\"2026-07-28\",\"" P "clientCapabilities\":{%s}}}}",
		   identifier, more, caps);
	in.body = body.p;
	in.body_len = body.len;
	in.accept = SSE;
	in.protocol_version = "2026-07-28";
	in.method = "tools/call";
	in.name = "delete_sandbox";
	return mcp_post(server, &reads, &in, ret);
}

/* The runner is to compare it: the sandbox that the user was asked about. */
static void assert_only(const struct mcp_call *c, int64_t made_at)
{
	assert_int_equal(mcp_call_message(c).type, MSG_DELETE);
	assert_int_equal(json_integer_value(at(mcp_call_message(c).body, "only")),
			 made_at);
}

static char *state_asked_of(const char *identifier)
{
	struct mcp_call *c;
	char *text;

	assert_int_equal(modern(identifier, "\"elicitation\":{}", "", &c), MCP_REPLY);
	assert_int_equal(mcp_call_reply(c).status, 200);
	AUTO_JSON *reply = reply_of(c);
	const json_t *result = at(reply, "result");
	assert_string_equal(json_string_value(at(result, "resultType")),
			    "input_required");
	assert_string_equal(
		json_get_string(at(at(result, "inputRequests"), "consent"), "method"),
		"elicitation/create");
	text = xasprintf("%s", json_string_value(at(result, "requestState")));
	mcp_call_free(c);
	return text;
}

static enum mcp_next answered(const char *identifier, const char *action,
			      const char *state, struct mcp_call **ret)
{
	AUTO_FREE char *more = xasprintf(
		",\"inputResponses\":{\"consent\":{\"action\":\"%s\"},\"more\":{}},"
		"\"requestState\":\"%s\"",
		action, state);

	return modern(identifier, "\"elicitation\":{}", more, ret);
}

static void a_modern_client_is_asked_by_a_result(void **unused)
{
	AUTO_FREE char *state = state_asked_of("a");
	struct mcp_call *c;

	(void)unused;
	assert_int_equal(answered("a", "accept", state, &c), MCP_SEND);
	assert_int_equal(mcp_call_message(c).type, MSG_DELETE);
	mcp_call_free(c);
	assert_int_equal(answered("a", "decline", state, &c), MCP_REPLY);
	AUTO_JSON *declined = reply_of(c);
	assert_true(json_is_true(at(at(declined, "result"), "isError")));
	mcp_call_free(c);
}

static void an_answer_that_is_missing_or_none_is_asked_for_again(void **unused)
{
	static const char *const answers[] = {
		"{}", "{\"other\":{}}", "{\"consent\":1}", "7",
		"{\"consent\":{\"action\":\"accept\"}}" /* to what was not asked */};

	(void)unused;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		AUTO_FREE char *more = xasprintf(",\"inputResponses\":%s", answers[i]);
		struct mcp_call *c;

		assert_int_equal(modern("a", "\"elicitation\":{}", more, &c), MCP_REPLY);
		AUTO_JSON *reply = reply_of(c);
		assert_non_null(at(at(reply, "result"), "inputRequests"));
		mcp_call_free(c);
	}
}

static void assert_refused(const char *identifier, const char *state)
{
	struct mcp_call *c;

	assert_int_equal(answered(identifier, "accept", state, &c), MCP_REPLY);
	AUTO_JSON *reply = reply_of(c);
	assert_int_equal(json_integer_value(at(at(reply, "error"), "code")), -32602);
	mcp_call_free(c);
}

static void a_state_that_is_changed_or_of_another_request_is_refused(void **unused)
{
	AUTO_FREE char *state = state_asked_of("a");
	AUTO_FREE char *longer = xasprintf("%s-TAMPERED", state);
	AUTO_FREE char *changed = xstrdup(state);

	(void)unused;
	changed[3] = changed[3] == 'A' ? 'B' : 'A';
	assert_refused("a", longer);
	assert_refused("a", changed);
	assert_refused("b", state);
	assert_refused("a", "");
	assert_refused("a", ".");
	assert_refused("a", "e30.e30");
}

static void who_does_not_declare_it_is_not_asked(void **unused)
{
	struct mcp_call *c;

	(void)unused;
	assert_int_equal(modern("a", "\"sampling\":{}", "", &c), MCP_REPLY);
	assert_int_equal(mcp_call_reply(c).status, 400);
	AUTO_JSON *reply = reply_of(c);
	const json_t *error = at(reply, "error");
	assert_int_equal(json_integer_value(at(error, "code")), -32021);
	assert_non_null(at(at(at(error, "data"), "requiredCapabilities"), "elicitation"));
	mcp_call_free(c);
}

/* ---- legacy */

static enum mcp_next legacy(const char *can, const char *accept, struct mcp_call **ret)
{
	AUTO_FREE char *body = xasprintf("{" MSGS ARGS "}}", "a");
	struct mcp_http in = fake_http(SESSION_NEW, body);

	in.accept = accept;
	store.client_can = can;
	return mcp_post(server, &reads, &in, ret);
}

/* The question on the stream; its id is the caller's. */
static char *question_of(struct mcp_call *c)
{
	AUTO_BUF b = BUF_INIT(65536);
	static const char head[] = "event: message\ndata: ";

	assert_int_equal(mcp_call_way(c), MCP_WAY_SSE);
	mcp_call_questions(c, &b);
	assert_memory_equal(b.p, head, sizeof(head) - 1);
	AUTO_JSON *q = parsed(b.p + sizeof(head) - 1,
			      b.len - (sizeof(head) - 1) - strlen("\n\n"));
	assert_string_equal(json_get_string(q, "method"), "elicitation/create");
	assert_non_null(
		strstr(json_get_string(at(q, "params"), "message"), "sandbox \"a\""));
	return xstrdup(json_get_string(q, "id"));
}

static bool told(struct mcp_call *c, const char *session, const char *id,
		 const char *result, enum mcp_next *next)
{
	AUTO_FREE char *text =
		xasprintf("{\"jsonrpc\":\"2.0\",\"id\":\"%s\",%s}", id, result);
	AUTO_JSON *message = parsed(text, strlen(text));

	return mcp_call_told(c, &reads, session, message, next);
}

#define ACCEPT "\"result\":{\"action\":\"accept\",\"content\":{}}"

static void the_answer_is_for_the_sandbox_of_the_question(void **unused)
{
	AUTO_FREE char *none = state_asked_of("a");
	AUTO_FREE char *old = (store.made_at = 111, state_asked_of("a"));
	const struct {
		const char *state;
		int64_t made_at;
	} cases[] = {{none, 0}, {old, 111}};
	enum mcp_next next = MCP_REPLY;
	struct mcp_call *c;

	(void)unused;
	for (size_t i = 0; i < 2; i++) {
		store.made_at = 222; /* made anew meanwhile */
		assert_int_equal(answered("a", "accept", cases[i].state, &c), MCP_SEND);
		assert_only(c, cases[i].made_at);
		mcp_call_free(c);
	}
	assert_int_equal(legacy("elicitation", SSE, &c), MCP_ASK);
	AUTO_FREE char *id = question_of(c);
	store.made_at = 333;
	assert_true(told(c, SESSION_NEW, id, ACCEPT, &next));
	assert_int_equal(next, MCP_SEND);
	assert_only(c, 222);
	mcp_call_free(c);
}

static void a_legacy_client_is_asked_on_the_stream(void **unused)
{
	enum mcp_next next = MCP_REPLY;
	struct mcp_call *c;

	(void)unused;
	assert_int_equal(legacy("elicitation", SSE, &c), MCP_ASK);
	AUTO_FREE char *id = question_of(c);
	assert_true(mcp_call_is_asking(c));
	assert_false(told(c, SESSION_MID, id, ACCEPT, &next));
	assert_false(told(c, SESSION_NEW, "ask-0000000000000000-consent", ACCEPT, &next));
	assert_false(told(c, SESSION_NEW, "ask-", ACCEPT, &next));
	assert_true(told(c, SESSION_NEW, id, ACCEPT, &next));
	assert_int_equal(next, MCP_SEND);
	assert_int_equal(mcp_call_message(c).type, MSG_DELETE);
	assert_false(mcp_call_is_asking(c));
	assert_false(told(c, SESSION_NEW, id, ACCEPT, &next)); /* once */
	mcp_call_free(c);
}

static void assert_is_error(struct mcp_call *c, const char *words)
{
	AUTO_JSON *reply = reply_of(c);
	const json_t *result = at(reply, "result");

	assert_true(json_is_true(at(result, "isError")));
	assert_non_null(
		strstr(json_get_string(json_array_get(at(result, "content"), 0), "text"),
		       words));
	mcp_call_free(c);
}

static void without_consent_nothing_is_done_and_that_is_said(void **unused)
{
	static const struct {
		const char *result, *words;
	} cases[] = {
		{"\"result\":{\"action\":\"decline\"}", "did not agree"},
		{"\"result\":{\"action\":\"cancel\"}", "did not agree"},
		{"\"result\":{}", "did not agree"},
		{"\"result\":7", "did not answer"},
		{"\"error\":{\"code\":-1,\"message\":\"no user\"}", "no user"},
	};
	struct err why = ERR_INIT;
	struct mcp_call *c;
	enum mcp_next next;

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(legacy("elicitation", SSE, &c), MCP_ASK);
		AUTO_FREE char *id = question_of(c);
		assert_true(told(c, SESSION_NEW, id, cases[i].result, &next));
		assert_int_equal(next, MCP_REPLY);
		assert_is_error(c, cases[i].words);
	}
	assert_int_equal(legacy("elicitation", SSE, &c), MCP_ASK);
	err_set(&why, ERR_TIMEOUT, "silence");
	assert_int_equal(mcp_call_fail(c, &reads, &why), MCP_REPLY);
	assert_is_error(c, "silence");
}

static void who_cannot_be_asked_is_told_so(void **unused)
{
	struct mcp_call *c;

	(void)unused;
	assert_int_equal(legacy("roots,sampling", SSE, &c), MCP_REPLY);
	assert_is_error(c, "elicitation");
	assert_int_equal(legacy("elicitation", "application/json", &c), MCP_REPLY);
	assert_is_error(c, "elicitation");
}

static void an_answer_goes_to_whichever_edge_asked(void **unused)
{
	static const struct {
		const char *body;
		enum mcp_next next;
	} cases[] = {
		{"{\"jsonrpc\":\"2.0\",\"id\":\"ask-1-a\",\"result\":{}}", MCP_SEND},
		{"{\"jsonrpc\":\"2.0\",\"id\":\"ask-1-a\",\"error\":{}}", MCP_SEND},
		{"{\"jsonrpc\":\"2.0\",\"id\":\"other\",\"result\":{}}", MCP_REPLY},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", MCP_REPLY},
	};
	struct edgemsg ok = {.type = MSG_OK, .body = json_object()};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mcp_http in = fake_http(SESSION_NEW, cases[i].body);
		struct mcp_call *c;

		assert_int_equal(mcp_post(server, &reads, &in, &c), cases[i].next);
		if (cases[i].next == MCP_SEND) {
			const json_t *body = mcp_call_message(c).body;

			assert_int_equal(mcp_call_message(c).type, MSG_RELAY);
			assert_string_equal(json_get_string(body, "kind"), "answer");
			assert_string_equal(json_get_string(at(body, "message"), "id"),
					    "ask-1-a");
			assert_int_equal(mcp_call_answer(c, &reads, &ok), MCP_REPLY);
		}
		assert_int_equal(mcp_call_reply(c).status, 202);
		assert_int_equal(mcp_call_reply(c).body_len, 0);
		mcp_call_free(c);
	}
	json_decref(ok.body);
}

/* ---- log messages */

static void events_below_the_level_are_not_told(void **unused)
{
	static const struct store_event out = {.run_id = "run_1",
					       .type = STORE_EVENT_COMMAND_STDOUT,
					       .data = "line\n",
					       .n = 5},
					started = {.run_id = "run_1",
						   .type = STORE_EVENT_RUN_STARTED,
						   .data = "{}",
						   .n = 2};
	AUTO_FREE char *body = xasprintf("{" MSGS ARGS "}}", "a");
	struct mcp_http in = fake_http(SESSION_NEW, body);
	AUTO_BUF frames = BUF_INIT(1 << 20);
	struct mcp_call *c;

	(void)unused;
	in.accept = SSE;
	store.client_can = "elicitation";
	store.log_level = "info";
	assert_int_equal(mcp_post(server, &reads, &in, &c), MCP_ASK);
	assert_true(mcp_call_wants_progress(c));
	assert_false(mcp_call_note(c, &out));
	assert_true(mcp_call_note(c, &started));
	mcp_call_progress(c, &frames);
	assert_non_null(strstr(frames.p, "\"level\":\"info\""));
	assert_null(strstr(frames.p, "line"));
	mcp_call_free(c);
}

static void a_log_that_nobody_takes_is_bounded(void **unused)
{
	static char big[8000];
	struct store_event out = {.run_id = "run_1",
				  .type = STORE_EVENT_COMMAND_STDOUT,
				  .data = big,
				  .n = sizeof(big)};
	AUTO_FREE char *body = xasprintf("{" MSGS ARGS "}}", "a");
	struct mcp_http in = fake_http(SESSION_NEW, body);
	AUTO_BUF frames = BUF_INIT(1 << 24);
	struct mcp_call *c;

	(void)unused;
	memset(big, 'x', sizeof(big));
	in.accept = SSE;
	store.client_can = "elicitation";
	store.log_level = "debug";
	assert_int_equal(mcp_post(server, &reads, &in, &c), MCP_ASK);
	for (int i = 0; i < 1000; i++)
		mcp_call_note(c, &out);
	mcp_call_progress(c, &frames);
	assert_in_range(frames.len, 10000, 100000);
	assert_true(mcp_call_note(c, &out));
	mcp_call_progress(c, &frames);
	assert_non_null(strstr(frames.p, "messages_left_out"));
	mcp_call_free(c);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_modern_client_is_asked_by_a_result),
		TEST(an_answer_that_is_missing_or_none_is_asked_for_again),
		TEST(a_state_that_is_changed_or_of_another_request_is_refused),
		TEST(who_does_not_declare_it_is_not_asked),
		TEST(the_answer_is_for_the_sandbox_of_the_question),
		TEST(a_legacy_client_is_asked_on_the_stream),
		TEST(without_consent_nothing_is_done_and_that_is_said),
		TEST(who_cannot_be_asked_is_told_so),
		TEST(an_answer_goes_to_whichever_edge_asked),
		TEST(events_below_the_level_are_not_told),
		TEST(a_log_that_nobody_takes_is_bounded),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
