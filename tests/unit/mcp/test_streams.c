/* SPDX-License-Identifier: MIT */
#include "fake.h"

#include "base/mem.h"

/* Which GETs are streams, where an answer goes, how long it waits, and tasks. */
#define RUN      "run_0123456789abcdef0123456789abcdef"
#define EVENT_ID RUN ".77.WyJxIiwwLDk5OTk5OTk5OTk5OTld"
#define CALL(more, options)                                                              \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{" more      \
	"\"name\":\"run_sandbox\",\"arguments\":{\"identifier\":\"a\",\"commands\":[{"   \
	"\"shell\":\"true\"}],\"options\":{\"await_completion\":true" options "}}}}"
#define TOKEN "\"_meta\":{\"progressToken\":0},"
#define SSE   "application/json, text/event-stream"

static const struct {
	const char *accept, *session, *version, *last_id;
	enum mcp_next next;
	int status; /* of a reply */
} gets[] = {
	{NULL, NULL, NULL, NULL, MCP_REPLY, 405},
	{"*/*", SESSION_NEW, "2025-11-25", NULL, MCP_REPLY, 405},
	{"application/json", SESSION_NEW, NULL, NULL, MCP_REPLY, 405},
	{"text/event-stream", NULL, "2026-07-28", NULL, MCP_REPLY, 405},
	{"text/event-stream", SESSION_NEW, "2026-07-28", NULL, MCP_REPLY, 405},
	{"text/event-stream", SESSION_NEW, "nonsense", NULL, MCP_REPLY, 400},
	{"text/event-stream", "44444444444444444444444444444444", NULL, NULL, MCP_REPLY,
	 404},
	{"text/event-stream", SESSION_NEW, NULL, NULL, MCP_STREAM, 0},
	{"application/json,Text/Event-Stream;q=1", SESSION_NEW, "2025-11-25", NULL,
	 MCP_STREAM, 0},
	{"text/event-stream", SESSION_NEW, NULL, "7", MCP_STREAM, 0},
	{"text/event-stream", NULL, NULL, NULL, MCP_SEND, 0},
};

static void a_get_is_a_stream_or_nothing(void **state)
{
	struct mcp_server *s = fake_server();
	struct fake_store f = {0};
	struct mcp_reads r = fake_reads(&f);

	(void)state;
	for (size_t i = 0; i < sizeof(gets) / sizeof(gets[0]); i++) {
		struct mcp_http in = fake_http(gets[i].session, "");
		struct mcp_call *c = NULL;
		enum mcp_next next;

		in.accept = gets[i].accept;
		in.protocol_version = gets[i].version;
		in.last_event_id = gets[i].last_id;
		next = mcp_get(s, &r, &in, &c);
		if (next != gets[i].next ||
		    (next == MCP_REPLY && mcp_call_reply(c).status != gets[i].status))
			fail_msg("case %zu gave %d %d", i, (int)next,
				 mcp_call_reply(c).status);
		mcp_call_free(c);
	}
	mcp_server_free(s);
}

static void the_old_transport_begins_with_its_endpoint(void **state)
{
	struct mcp_server *s = fake_server();
	struct fake_store f = {0};
	struct mcp_reads r = fake_reads(&f);
	struct mcp_http in = fake_http(NULL, "");
	AUTO_BUF head = BUF_INIT(4096);
	struct mcp_call *c = NULL;
	char want[128];

	(void)state;
	in.accept = "text/event-stream";
	assert_int_equal(mcp_get(s, &r, &in, &c), MCP_SEND);
	assert_int_equal(mcp_call_message(c).type, MSG_SESSION_OPEN);
	assert_int_equal(answer(c, &r, MSG_OK, json_object()), MCP_STREAM);
	mcp_call_head(c, &head);
	snprintf(want, sizeof(want), "event: endpoint\ndata: /mcp?sessionId=%s\n\n",
		 mcp_call_session(c));
	assert_string_equal(head.p, want);
	mcp_call_free(c);
	mcp_server_free(s);
}

static void a_broken_answer_goes_on_where_it_was(void **state)
{
	struct mcp_server *s = fake_server();
	AUTO_JSON *run = json_pack("{s:s, s:s, s:[]}", "state", "running", "identifier",
				   "a", "commands");
	struct fake_store f = {.run = run};
	struct mcp_reads r = fake_reads(&f);
	struct mcp_http in = fake_http(SESSION_NEW, "");
	AUTO_JSON *id = json_string("q");
	struct mcp_call *c = NULL;

	(void)state;
	in.accept = "text/event-stream";
	in.last_event_id = EVENT_ID;
	assert_int_equal(mcp_get(s, &r, &in, &c), MCP_AWAIT_RUN);
	assert_string_equal(mcp_call_await(c).run_id, RUN);
	assert_true(mcp_call_is_stream(c));
	assert_true(mcp_call_is(c, SESSION_NEW, id));
	json_object_set_new(run, "state", json_string("completed"));
	assert_int_equal(mcp_call_run_done(c, &r), MCP_REPLY);
	AUTO_JSON *reply = reply_json(c);
	assert_string_equal(str_at(reply, "id"), "q");
	mcp_call_free(c);
	/* A run that is gone is told on the stream, too. */
	f.run = NULL;
	assert_int_equal(mcp_get(s, &r, &in, &c), MCP_REPLY);
	assert_true(mcp_call_is_stream(c));
	assert_int_equal(mcp_call_way(c), MCP_WAY_SSE);
	mcp_call_free(c);
	mcp_server_free(s);
}

static const struct {
	const char *body, *accept, *stream_session;
	enum mcp_way way;
	int64_t waits;
} waits[] = {
	{CALL("", ""), SSE, NULL, MCP_WAY_HTTP, 30000},
	{CALL("", ",\"await_timeout_ms\":600000"), SSE, NULL, MCP_WAY_HTTP, 50000},
	{CALL(TOKEN, ",\"await_timeout_ms\":600000"), SSE, NULL, MCP_WAY_SSE, 600000},
	{CALL(TOKEN, ",\"await_timeout_ms\":600000"), "*/*", NULL, MCP_WAY_HTTP, 50000},
	{CALL(TOKEN, ",\"await_timeout_ms\":600000"), NULL, NULL, MCP_WAY_HTTP, 50000},
	{CALL("", ",\"await_timeout_ms\":600000"), NULL, SESSION_NEW, MCP_WAY_SESSION,
	 50000},
	{CALL(TOKEN, ",\"await_timeout_ms\":600000"), NULL, SESSION_NEW, MCP_WAY_SESSION,
	 600000},
};

static void who_shows_no_progress_answers_in_time(void **state)
{
	struct mcp_server *s = fake_server();
	struct fake_store f = {0};
	struct mcp_reads r = fake_reads(&f);

	(void)state;
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		struct mcp_http in = fake_http(
			waits[i].stream_session ? NULL : SESSION_NEW, waits[i].body);
		struct mcp_call *c = NULL;

		in.accept = waits[i].accept;
		in.stream_session = waits[i].stream_session;
		assert_int_equal(mcp_post(s, &r, &in, &c), MCP_SEND);
		assert_true(mcp_call_has_run(c));
		assert_int_equal(answer(c, &r, MSG_OK, json_object()), MCP_AWAIT_RUN);
		if (mcp_call_way(c) != waits[i].way ||
		    mcp_call_await(c).timeout_ms != waits[i].waits)
			fail_msg("case %zu: way %d, %lld ms", i, (int)mcp_call_way(c),
				 (long long)mcp_call_await(c).timeout_ms);
		mcp_call_free(c);
	}
	mcp_server_free(s);
}

static void a_canceled_request_is_not_answered(void **state)
{
	struct mcp_server *s = fake_server();
	struct fake_store f = {0};
	struct mcp_reads r = fake_reads(&f);
	struct mcp_http in = fake_http(SESSION_NEW, CALL("", ""));
	AUTO_JSON *id = json_integer(1), *other = json_string("1");
	struct mcp_call *c = NULL;

	(void)state;
	assert_int_equal(mcp_post(s, &r, &in, &c), MCP_SEND);
	assert_int_equal(answer(c, &r, MSG_OK, json_object()), MCP_AWAIT_RUN);
	assert_true(mcp_call_is(c, SESSION_NEW, id));
	assert_false(mcp_call_is(c, SESSION_MID, id));
	assert_false(mcp_call_is(c, SESSION_NEW, other)); /* "1" is not 1 */
	AUTO_JSON *cancel = mcp_call_cancel_run(c, "why");
	assert_string_equal(str_at(cancel, "reason"), "why");
	assert_int_equal(mcp_call_canceled(c, &r), MCP_REPLY);
	assert_int_equal(mcp_call_reply(c).status, 202);
	assert_int_equal(mcp_call_reply(c).body_len, 0);
	assert_null(mcp_call_cancel_run(c, "why"));
	mcp_call_free(c);
	mcp_server_free(s);
}

static void a_runs_state_is_its_tasks(void **state)
{
	static const struct {
		const char *run, *task;
	} all[] = {{"queued", "working"},
		   {"running", "working"},
		   {"completed", "completed"},
		   {"failed", "failed"},
		   {"canceled", "cancelled"}};
	struct mcp_server *s = fake_server();

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		AUTO_JSON *run =
			json_pack("{s:s, s:s, s:[]}", "state", all[i].run, "created_at",
				  "2026-01-01T00:00:00.000Z", "commands");
		struct fake_store f = {.run = run};
		struct mcp_reads r = fake_reads(&f);
		struct mcp_http in =
			fake_http(SESSION_NEW,
				  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
				  "\"tasks/get\",\"params\":{\"taskId\":\"" RUN "\"}}");
		struct mcp_call *c = NULL;

		assert_int_equal(mcp_post(s, &r, &in, &c), MCP_REPLY);
		AUTO_JSON *reply = reply_json(c);
		assert_string_equal(str_at(at(reply, "result"), "status"), all[i].task);
		assert_int_equal(json_integer_value(at(at(reply, "result"), "ttl")),
				 604800000);
		mcp_call_free(c);
	}
	mcp_server_free(s);
}

#define META                                                                             \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","         \
	"\"io.modelcontextprotocol/clientCapabilities\":{\"extensions\":{"               \
	"\"io.modelcontextprotocol/tasks\":{}}}}"

static json_t *modern_task(struct mcp_server *s, json_t *run)
{
	struct fake_store f = {.run = run};
	struct mcp_reads r = fake_reads(&f);
	struct mcp_http in = fake_http(NULL, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
					     "\"tasks/get\",\"params\":{\"taskId\":\"" RUN
					     "\"," META "}}");
	struct mcp_call *c = NULL;

	in.protocol_version = "2026-07-28";
	in.method = "tasks/get";
	in.name = RUN;
	assert_int_equal(mcp_post(s, &r, &in, &c), MCP_REPLY);
	json_t *reply = reply_json(c);
	mcp_call_free(c);
	return reply;
}

static void a_task_fails_only_when_its_run_never_began(void **state)
{
	struct mcp_server *s = fake_server();
	AUTO_JSON *ran = json_pack("{s:s, s:s, s:s, s:[]}", "state", "failed",
				   "created_at", "2026-01-01T00:00:00.000Z", "started_at",
				   "2026-01-01T00:00:01.000Z", "commands");
	AUTO_JSON *never = json_pack("{s:s, s:s, s:n, s:s, s:[]}", "state", "failed",
				     "created_at", "2026-01-01T00:00:00.000Z",
				     "started_at", "error", "no room", "commands");
	AUTO_JSON *a = modern_task(s, ran), *b = NULL;

	(void)state;
	assert_string_equal(str_at(at(a, "result"), "status"), "completed");
	assert_true(json_is_true(at(at(at(a, "result"), "result"), "isError")));
	b = modern_task(s, never);
	assert_string_equal(str_at(at(b, "result"), "status"), "failed");
	assert_string_equal(str_at(at(at(b, "result"), "error"), "message"), "no room");
	assert_null(json_object_get(at(b, "result"), "result"));
	mcp_server_free(s);
}

static void tasks_are_listed_in_pages(void **state)
{
	struct mcp_server *s = fake_server();
	struct fake_store f = {.nrows = 120};
	struct mcp_reads r = fake_reads(&f);
	AUTO_FREE char *cursor = NULL;
	size_t pages = 0, seen = 0;

	(void)state;
	do {
		AUTO_FREE char *body = xasprintf(
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tasks/list\","
			"\"params\":{\"cursor\":\"%s\"}}",
			cursor ? cursor : "");
		struct mcp_http in = fake_http(SESSION_NEW, body);
		struct mcp_call *c = NULL;

		assert_int_equal(mcp_post(s, &r, &in, &c), MCP_REPLY);
		AUTO_JSON *reply = reply_json(c);
		const json_t *result = at(reply, "result");
		const json_t *next = json_object_get(result, "nextCursor");
		seen += json_array_size(at(result, "tasks"));
		assert_non_null(at(json_array_get(at(result, "tasks"), 0), "taskId"));
		free(cursor);
		cursor = next ? xstrdup(json_string_value(next)) : NULL;
		mcp_call_free(c);
		pages++;
	} while (cursor);
	assert_int_equal(pages, 3);
	assert_int_equal(seen, 120);
	mcp_server_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_get_is_a_stream_or_nothing),
		cmocka_unit_test(the_old_transport_begins_with_its_endpoint),
		cmocka_unit_test(a_broken_answer_goes_on_where_it_was),
		cmocka_unit_test(who_shows_no_progress_answers_in_time),
		cmocka_unit_test(a_canceled_request_is_not_answered),
		cmocka_unit_test(a_runs_state_is_its_tasks),
		cmocka_unit_test(a_task_fails_only_when_its_run_never_began),
		cmocka_unit_test(tasks_are_listed_in_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
