/* SPDX-License-Identifier: MIT */
#include "rig.h"

/* The streams of sessions, answers that are streams, and requests taken back. */
#define SSE "HTTP_ACCEPT", "application/json, text/event-stream"
#define CALL                                                                             \
	"{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"tools/call\",\"params\":{%s"     \
	"\"name\":\"run_sandbox\",\"arguments\":{\"identifier\":\"a\",\"commands\":[{"   \
	"\"shell\":\"true\"}],\"options\":{\"await_completion\":true}}}}"

static void assert_has(const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("\"%s\" is not in: %.2000s", part, text ? text : "(nothing)");
}

static int get_stream(struct rig *r, const char *session)
{
	const char *const pairs[] = {HOST, SSE, "HTTP_MCP_SESSION_ID", session, NULL};

	return rig_send(r, "GET", "/mcp", "", 0, pairs);
}

static int post_as(struct rig *r, const char *uri, const char *body, const char *session,
		   const char *version)
{
	const char *const pairs[] = {HOST,
				     SSE,
				     "CONTENT_TYPE",
				     "application/json",
				     "HTTP_MCP_SESSION_ID",
				     session,
				     "HTTP_MCP_PROTOCOL_VERSION",
				     version,
				     "HTTP_MCP_METHOD",
				     "tools/call",
				     "HTTP_MCP_NAME",
				     "run_sandbox",
				     NULL};

	return rig_send(r, "POST", uri, body, strlen(body), pairs);
}

static int call_run(struct rig *r, const char *meta, const char *version)
{
	char body[600];

	snprintf(body, sizeof(body), CALL, meta);
	return post_as(r, "/mcp", body, rig_session, version);
}

/* The next message, a MSG_RELAY of this kind, as the runner passes it on. */
static void pass_on(struct rig *r, const char *kind)
{
	struct edgemsg m = rig_expect(r, MSG_RELAY);

	assert_string_equal(json_string_value(json_object_get(m.body, "kind")), kind);
	rig_reply(r, MSG_RELAYED, 0, json_incref(m.body));
	rig_reply(r, MSG_OK, m.id, json_object());
	edgemsg_release(&m);
}

static void relay(struct rig *r, const char *kind, const char *key, json_t *value)
{
	rig_reply(r, MSG_RELAYED, 0,
		  json_pack("{s:s, s:s, s:o}", "session_id", rig_session, "kind", kind,
			    key, value));
}

static void expect_cancel(struct rig *r, const char *run_id)
{
	struct edgemsg m = rig_expect(r, MSG_CANCEL);

	assert_string_equal(json_string_value(json_object_get(m.body, "run_id")), run_id);
	rig_reply(r, MSG_OK, m.id, json_pack("{s:b}", "canceled", 1));
	edgemsg_release(&m);
}

/* A round trip behind all that was told to it. */
static void await_edge(struct rig *r)
{
	const char *const pairs[] = {HOST, NULL};
	int fd = rig_send(r, "GET", "/metrics", "", 0, pairs);
	struct edgemsg m = rig_expect(r, MSG_STATUS);
	struct answer a;

	rig_reply(r, MSG_OK, m.id, json_pack("{s:s}", "metrics", "x 1\n"));
	edgemsg_release(&m);
	a = rig_answer(fd);
	assert_int_equal(a.status, 200);
	answer_free(&a);
}

static void frames_from_anywhere_reach_a_sessions_stream(void **state)
{
	AUTO_BUF b = BUF_INIT(1 << 20);
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	rig_add_session(&r);
	fd = get_stream(&r, rig_session);
	assert_true(rig_read_until(fd, &b, "\r\n\r\n"));
	assert_has(b.p, "Status: 200");
	assert_has(b.p, "X-Accel-Buffering: no");
	pass_on(&r, "opened");
	relay(&r, "frame", "text", json_string("event: message\ndata: {\"a\":1}\n\n"));
	assert_true(rig_read_until(fd, &b, "{\"a\":1}\n\n"));
	/* Another session's is not for it; what is malformed is for nobody. */
	rig_reply(&r, MSG_RELAYED, 0,
		  json_pack("{s:s, s:s, s:s}", "session_id",
			    "ffffffffffffffffffffffffffffffff", "kind", "frame", "text",
			    "data: not yours\n\n"));
	rig_reply(&r, MSG_RELAYED, 0, json_pack("{s:s}", "session_id", rig_session));
	relay(&r, "frame", "text", json_integer(3));
	relay(&r, "none-such", "text", json_string("x"));
	relay(&r, "closed", "by", json_string("x"));
	assert_true(rig_read_until(fd, &b, NULL));
	assert_null(strstr(b.p, "not yours"));
	close(fd);
	rig_close(&r);
}

static void the_newer_of_two_streams_stays(void **state)
{
	AUTO_BUF a = BUF_INIT(1 << 20);
	AUTO_BUF b = BUF_INIT(1 << 20);
	struct edgemsg first, second;
	struct rig r;
	int old, new;

	(void)state;
	rig_open(&r);
	rig_add_session(&r);
	/* Both are there before either is announced: the order of that decides. */
	old = get_stream(&r, rig_session);
	first = rig_expect(&r, MSG_RELAY);
	new = get_stream(&r, rig_session);
	second = rig_expect(&r, MSG_RELAY);
	rig_reply(&r, MSG_RELAYED, 0, json_incref(first.body));
	rig_reply(&r, MSG_RELAYED, 0, json_incref(second.body));
	assert_true(rig_read_until(old, &a, NULL));
	relay(&r, "frame", "text", json_string("data: still\n\n"));
	assert_true(rig_read_until(new, &b, "data: still\n\n"));
	/* One at another edge takes its place. */
	relay(&r, "opened", "stream", json_string("0123456789abcdef"));
	assert_true(rig_read_until(new, &b, NULL));
	edgemsg_release(&first);
	edgemsg_release(&second);
	close(old);
	close(new);
	rig_close(&r);
}

static void a_stream_that_is_not_read_costs_a_bounded_amount(void **state)
{
	enum { FRAME = 1 << 20, FRAMES = 40 };
	AUTO_BUF b = BUF_INIT(64 << 20);
	char *text = malloc(FRAME + 1);
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	rig_add_session(&r);
	fd = get_stream(&r, rig_session);
	assert_true(rig_read_until(fd, &b, "\r\n\r\n"));
	pass_on(&r, "opened");
	memset(text, 'x', FRAME);
	text[FRAME] = '\0';
	for (int i = 0; i < FRAMES; i++)
		relay(&r, "frame", "text", json_string(text));
	await_edge(&r);
	/* It ended: by its end of file, before all of it was sent. */
	while (rig_read_record(fd, &b) > 0)
		;
	assert_true(b.len < (size_t)(FRAMES - 10) * FRAME);
	free(text);
	close(fd);
	rig_close(&r);
}

static void the_old_transport_answers_on_its_stream(void **state)
{
	static const char ping[] = "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}";
	AUTO_BUF b = BUF_INIT(1 << 20);
	struct edgemsg m;
	struct rig r;
	char uri[96];
	int fd;

	(void)state;
	rig_open(&r);
	fd = get_stream(&r, "");
	m = rig_expect(&r, MSG_SESSION_OPEN);
	snprintf(uri, sizeof(uri), "/mcp?sessionId=%s",
		 json_string_value(json_object_get(m.body, "session_id")));
	rig_reply(&r, MSG_OK, m.id, json_object());
	edgemsg_release(&m);
	assert_true(rig_read_until(fd, &b, "\n\n"));
	assert_has(b.p, "event: endpoint\ndata: /mcp?sessionId=");
	assert_has(b.p, uri);
	/* Not announced yet: the answer goes around, and comes back. */
	AUTO_ANSWER sent = rig_answer(post_as(&r, uri, ping, "", ""));
	assert_int_equal(sent.status, 202);
	assert_int_equal(sent.n, 0);
	pass_on(&r, "opened");
	pass_on(&r, "frame");
	assert_true(rig_read_until(fd, &b, "\"id\":9,\"result\":{}}\n\n"));
	/* Announced: it is here, nobody else is asked. */
	AUTO_ANSWER again = rig_answer(post_as(&r, uri, ping, "", ""));
	assert_int_equal(again.status, 202);
	b.len = 0;
	assert_true(rig_read_until(fd, &b, "\"id\":9,\"result\":{}}\n\n"));
	assert_false(rig_readable(r.runner_fd, 50));
	AUTO_ANSWER bad = rig_answer(post_as(&r, uri, "{", "", ""));
	assert_int_equal(bad.status, 400);
	close(fd);
	rig_close(&r);
}

static void an_awaited_answer_is_a_stream_when_the_client_follows(void **state)
{
	AUTO_BUF b = BUF_INIT(1 << 20);
	char run_id[64];
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	rig_add_session(&r);
	fd = call_run(&r, "\"_meta\":{\"progressToken\":0},", "2025-11-25");
	rig_accept_run(&r, run_id);
	assert_true(rig_read_until(fd, &b, "data: \n\n"));
	assert_has(b.p, "Content-Type: text/event-stream");
	assert_has(b.p, "id: run_");
	assert_has(b.p, "retry: ");
	rig_add_output(&r, run_id, 0, "one\ntwo\n", 8);
	rig_commit(&r);
	assert_true(rig_read_until(fd, &b, "notifications/progress"));
	assert_true(rig_read_until(fd, &b, "\"message\":\"command 1 of 1: two\"}}\n\n"));
	assert_has(b.p, "\"progressToken\":0");
	rig_end_run(&r, run_id);
	assert_true(rig_read_until(fd, &b, NULL));
	assert_has(b.p, "\"id\":\"q\",\"result\":{");
	assert_has(b.p, "\"state\":\"completed\"");
	close(fd);
	rig_close(&r);
}

static void a_relayed_cancel_ends_the_run_and_nothing_is_answered(void **state)
{
	static const char *const metas[] = {"", "\"_meta\":{\"progressToken\":1},"};
	char run_id[64];
	struct rig r;

	(void)state;
	rig_open(&r);
	rig_add_session(&r);
	for (int i = 0; i < 2; i++) {
		int fd = call_run(&r, metas[i], "2025-11-25");

		rig_accept_run(&r, run_id);
		relay(&r, "cancel", "request_id", json_string("other"));
		relay(&r, "cancel", "request_id", json_string("q"));
		expect_cancel(&r, run_id);
		AUTO_ANSWER a = rig_answer(fd);
		assert_int_equal(a.status, i == 0 ? 202 : 200);
		assert_null(strstr(a.body, "result"));
		assert_true(a.is_whole);
	}
	rig_close(&r);
}

static void a_modern_client_that_leaves_takes_its_run_back(void **state)
{
#define MODERN                                                                           \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","         \
	"\"io.modelcontextprotocol/clientCapabilities\":{}},"
	char run_id[64];
	struct edgemsg m;
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	rig_add_session(&r);
	fd = call_run(&r, MODERN, "2026-07-28");
	rig_accept_run(&r, run_id);
	close(fd);
	expect_cancel(&r, run_id);
	/* Before the runner took it, too: the messages keep their order. */
	fd = call_run(&r, MODERN, "2026-07-28");
	m = rig_expect(&r, MSG_RUN);
	snprintf(run_id, sizeof(run_id), "%s",
		 json_string_value(json_object_get(m.body, "run_id")));
	edgemsg_release(&m);
	close(fd);
	expect_cancel(&r, run_id);
	/* One that was answered is not taken back by its connection's end. */
	fd = call_run(&r, MODERN, "2026-07-28");
	rig_accept_run(&r, run_id);
	rig_end_run(&r, run_id);
	AUTO_ANSWER a = rig_answer(fd);
	assert_has(a.body, "\"resultType\":\"complete\"");
	assert_false(rig_readable(r.runner_fd, 50));
	rig_close(&r);
}

static void a_legacy_client_that_left_may_still_cancel(void **state)
{
	char run_id[64];
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	rig_add_session(&r);
	fd = call_run(&r, "", "2025-11-25");
	rig_accept_run(&r, run_id);
	close(fd);
	assert_false(rig_readable(r.runner_fd, 100));
	relay(&r, "cancel", "request_id", json_string("q"));
	expect_cancel(&r, run_id);
	relay(&r, "cancel", "request_id", json_string("q"));
	assert_false(rig_readable(r.runner_fd, 50));
	rig_close(&r);
}

/* The id of the answer's beginning: with it a client asks for the rest. */
static void take_event_id(int fd, char id[static 512])
{
	AUTO_BUF b = BUF_INIT(1 << 20);

	assert_true(rig_read_until(fd, &b, "retry: "));
	assert_int_equal(sscanf(strstr(b.p, "id: "), "id: %511s", id), 1);
}

static void a_client_that_left_before_the_rest_of_its_answer_hurts_nobody(void **state)
{
	char run_id[64], id[512];
	const char *const pairs[] = {
		HOST, SSE, "HTTP_MCP_SESSION_ID", rig_session, "HTTP_LAST_EVENT_ID",
		id,   NULL};
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	rig_add_session(&r);
	fd = call_run(&r, "\"_meta\":{\"progressToken\":0},", "2025-11-25");
	rig_accept_run(&r, run_id);
	take_event_id(fd, id);
	rig_end_run(&r, run_id);
	close(fd);
	/* All is there to be said at once, and nobody to hear even its head. */
	rig_pause_edge(&r);
	close(rig_send(&r, "GET", "/mcp", "", 0, pairs));
	kill(r.pid, SIGCONT);
	AUTO_ANSWER a = rig_answer(rig_send(&r, "GET", "/mcp", "", 0, pairs));
	assert_has(a.body, "\"result\"");
	rig_close(&r);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(frames_from_anywhere_reach_a_sessions_stream),
	cmocka_unit_test(the_newer_of_two_streams_stays),
	cmocka_unit_test(a_stream_that_is_not_read_costs_a_bounded_amount),
	cmocka_unit_test(the_old_transport_answers_on_its_stream),
	cmocka_unit_test(an_awaited_answer_is_a_stream_when_the_client_follows),
	cmocka_unit_test(a_relayed_cancel_ends_the_run_and_nothing_is_answered),
	cmocka_unit_test(a_modern_client_that_leaves_takes_its_run_back),
	cmocka_unit_test(a_legacy_client_that_left_may_still_cancel),
	cmocka_unit_test(a_client_that_left_before_the_rest_of_its_answer_hurts_nobody),
};

RIG_MAIN(tests)
