/* SPDX-License-Identifier: MIT */
#include "rig.h"

static const char ping[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}";
static const char run_call[] =
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
	"\"run_sandbox\",\"arguments\":{\"identifier\":\"a\",\"commands\":[{\"shell\":"
	"\"true\"}],\"options\":{\"await_completion\":true,\"await_timeout_ms\":%d}}}}";

static void assert_has(const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("\"%s\" is not in: %s", part, text ? text : "(nothing)");
}

static void a_ping_is_answered_without_the_runner(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r);
	rig_add_session(&r);
	for (int i = 0; i < 20; i++) {
		AUTO_ANSWER a = rig_answer(rig_post(&r, ping));

		assert_int_equal(a.status, 200);
		assert_true(a.is_whole);
		assert_has(a.body, "\"result\":{}");
		assert_has(a.head, "Content-Type: application/json");
		assert_has(a.head, "X-Accel-Buffering: no"); /* nginx sends it at once */
	}
	rig_close(&r);
}

static void paths_and_methods_are_a_closed_set(void **state)
{
	static const struct {
		const char *method, *uri;
		int status;
		const char *head;
	} cases[] = {
		{"GET", "/mcp", 405, "Allow: POST, DELETE, OPTIONS"},
		{"GET", "/mcp/", 405, "Allow: POST, DELETE, OPTIONS"},
		{"PUT", "/healthz", 405, "Allow: GET, HEAD, OPTIONS"},
		{"GET", "/", 404, "application/json"},
		{"GET", "", 404, "application/json"},
		{"GET", "/mcpx", 404, "application/json"},
		{"GET", "/mcp/runs", 404, "application/json"},
		{"GET", "/mcp/runs/", 404, "application/json"},
		{"GET", "/mcp/runs/run_0", 404, "application/json"},
		{"GET", "/mcp/runs/run_00000000000000000000000000000000", 404, "json"},
		{"GET", "/mcp/runs/%zz", 404, "application/json"},
		{"GET", "/mcp/events", 400, "application/json"},
		{"GET", "/mcp/events?run_id=nonsense", 404, "application/json"},
		{"GET", "/mcp/events?run_id=run_00000000000000000000000000000000", 404,
		 "json"},
		{"GET", "/mcp/%2e%2e/metrics", 404, "application/json"},
		{"GET", "/healthz", 200, "application/json"},
		{"HEAD", "/healthz?x=1", 200, "application/json"},
		{"GET", "/debug", 404, "application/json"},
		{"OPTIONS", "/mcp", 204, "Status: 204"},
		{"OPTIONS", "/mcp", 204, "Allow: GET, POST, DELETE, OPTIONS"},
		{"OPTIONS", "/artifacts/a%20b/latest/x", 204,
		 "Allow: GET, HEAD, OPTIONS"},
		{"POST", "/mcp/", 400, "application/json"},
	};
	const char *const pairs[] = {HOST, "CONTENT_TYPE", "application/json", NULL};
	struct rig r;

	(void)state;
	rig_open(&r);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_ANSWER a = rig_answer(
			rig_send(&r, cases[i].method, cases[i].uri, "", 0, pairs));

		if (a.status != cases[i].status)
			fail_msg("%s %s: %d %s", cases[i].method, cases[i].uri, a.status,
				 a.body);
		assert_has(a.head, cases[i].head);
		assert_true(a.is_whole);
	}
	rig_close(&r);
}

static void a_body_over_the_limit_is_413_and_read_to_its_end(void **state)
{
	const char *const pairs[] = {HOST, "CONTENT_TYPE", "application/json", NULL};
	size_t n = 4 * 1024 * 1024;
	char *body = malloc(n);
	struct rig r;

	(void)state;
	memset(body, ' ', n);
	setenv("MAX_BODY_BYTES", "1048576", 1);
	rig_open(&r);
	unsetenv("MAX_BODY_BYTES");
	for (int i = 0; i < 3; i++) {
		AUTO_ANSWER a = rig_answer(rig_send(&r, "POST", "/mcp", body, n, pairs));

		assert_int_equal(a.status, 413);
		assert_has(a.body, "\"jsonrpc\"");
		assert_true(a.is_whole);
	}
	free(body);
	rig_close(&r);
}

static void a_body_of_another_type_is_415(void **state)
{
	const char *const pairs[] = {HOST, "CONTENT_TYPE", "text/plain", NULL};
	struct rig r;

	(void)state;
	rig_open(&r);
	AUTO_ANSWER a =
		rig_answer(rig_send(&r, "POST", "/mcp", ping, strlen(ping), pairs));
	assert_int_equal(a.status, 415);
	rig_close(&r);
}

static void strangers_hosts_and_origins_are_403(void **state)
{
	static const struct {
		const char *host, *origin;
		int status;
	} cases[] = {
		{"localhost:8080", "", 200},
		{"127.0.0.1", "", 200},
		{"[::1]:8080", "http://[::1]:8080", 200},
		{"evil.example.com", "", 403},
		{"localhost.evil.example", "", 403},
		{"localhost:8080", "http://evil.example.com", 403},
		{"localhost:8080", "null", 403},
		{"localhost:8080", "http://localhost:3000", 200},
		{"app.example", "https://app.example", 200},
		{"localhost", "https://ui.example", 200},
	};
	struct rig r;

	(void)state;
	setenv("ALLOWED_HOSTS", "app.example", 1);
	setenv("CORS_ALLOW_ORIGINS", "https://ui.example", 1);
	rig_open(&r);
	unsetenv("ALLOWED_HOSTS");
	unsetenv("CORS_ALLOW_ORIGINS");
	rig_add_session(&r);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const pairs[] = {
			"HTTP_HOST",           cases[i].host,  "HTTP_ORIGIN",
			cases[i].origin,       "CONTENT_TYPE", "application/json",
			"HTTP_MCP_SESSION_ID", rig_session,    NULL};
		AUTO_ANSWER a = rig_answer(
			rig_send(&r, "POST", "/mcp", ping, strlen(ping), pairs));

		if (a.status != cases[i].status)
			fail_msg("%s %s: %d", cases[i].host, cases[i].origin, a.status);
		if (strstr(cases[i].origin, "ui.example"))
			assert_has(a.head,
				   "Access-Control-Allow-Origin: https://ui.example\r\n"
				   "Access-Control-Expose-Headers: Mcp-Session-Id");
		else
			assert_null(strstr(a.head, "Access-Control-Allow-Origin"));
	}
	rig_close(&r);
}

static int call_run(struct rig *r, int await_ms)
{
	char body[512];

	snprintf(body, sizeof(body), run_call, await_ms);
	return rig_post(r, body);
}

static void an_awaited_run_is_answered_when_it_ends(void **state)
{
	char run_id[64];
	struct rig r;

	(void)state;
	rig_open(&r);
	rig_add_session(&r);
	for (int i = 0; i < 20; i++) {
		int fd = call_run(&r, 30000);

		rig_accept_run(&r, run_id);
		rig_add_output(&r, run_id, 0, "hello\n", 6);
		rig_commit(&r);
		if (i % 2)
			assert_false(rig_readable(fd, 20));
		rig_end_run(&r, run_id);
		AUTO_ANSWER a = rig_answer(fd);
		assert_int_equal(a.status, 200);
		assert_has(a.body, "\"state\":\"completed\"");
		assert_has(a.body, run_id);
	}
	rig_close(&r);
}

static void an_await_that_runs_out_says_so_and_the_run_goes_on(void **state)
{
	char run_id[64];
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	rig_add_session(&r);
	fd = call_run(&r, 50);
	rig_accept_run(&r, run_id);
	AUTO_ANSWER a = rig_answer(fd);
	assert_int_equal(a.status, 200);
	assert_has(a.body, "\"final\":null");
	rig_close(&r);
}

static void a_refusal_of_the_runner_reaches_the_client(void **state)
{
	struct edgemsg m;
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	rig_add_session(&r);
	fd = call_run(&r, 1000);
	m = rig_expect(&r, MSG_RUN);
	rig_reply(&r, MSG_ERR, m.id,
		  json_pack("{s:s,s:s}", "kind", "limit", "message", "too many runs"));
	edgemsg_release(&m);
	AUTO_ANSWER a = rig_answer(fd);
	assert_has(a.body, "too many runs");
	rig_close(&r);
}

static void a_runner_that_starts_anew_gets_what_has_no_answer(void **state)
{
	char run_id[64];
	struct edgemsg first, again;
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	rig_add_session(&r);
	fd = call_run(&r, 30000);
	first = rig_expect(&r, MSG_RUN);
	rig_reply(&r, MSG_HELLO, 0, json_pack("{s:i}", "pid", 1));
	again = rig_expect(&r, MSG_RUN);
	assert_int_equal(first.id, again.id);
	assert_true(json_equal(first.body, again.body));
	edgemsg_release(&first);
	edgemsg_release(&again);
	/* And once more: this one answers. */
	rig_reply(&r, MSG_HELLO, 0, json_pack("{s:i}", "pid", 2));
	rig_accept_run(&r, run_id);
	rig_end_run(&r, run_id);
	AUTO_ANSWER a = rig_answer(fd);
	assert_has(a.body, "\"state\":\"completed\"");
	assert_false(rig_readable(r.runner_fd, 50));
	rig_close(&r);
}

static void requests_wait_while_the_pair_is_full(void **state)
{
	enum { N = 600 };
	struct rig r;
	int fds[N];

	(void)state;
	rig_open(&r);
	rig_add_session(&r);
	for (int i = 0; i < N; i++)
		fds[i] = call_run(&r, 1);
	for (int i = 0; i < N; i++) {
		char run_id[64];

		rig_accept_run(&r, run_id);
	}
	for (int i = 0; i < N; i++) {
		AUTO_ANSWER a = rig_answer(fds[i]);

		assert_int_equal(a.status, 200);
	}
	rig_close(&r);
}

static void a_client_that_leaves_is_forgotten(void **state)
{
	struct edgemsg m, status;
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	rig_add_session(&r);
	fd = call_run(&r, 30000);
	m = rig_expect(&r, MSG_RUN);
	close(fd);
	rig_reply(&r, MSG_OK, m.id, json_pack("{s:s}", "run_id", "x"));
	edgemsg_release(&m);
	fd = rig_send(&r, "GET", "/metrics", "", 0, (const char *const[]){HOST, NULL});
	status = rig_expect(&r, MSG_STATUS);
	rig_reply(&r, MSG_OK, status.id, json_pack("{s:s}", "metrics", "x 1\n"));
	edgemsg_release(&status);
	AUTO_ANSWER a = rig_answer(fd);
	assert_int_equal(a.status, 200);
	assert_has(a.body, "mcp_parked_requests 1\n"); /* this one */
	assert_has(a.body, "x 1\n");
	assert_has(a.body, "mcp_up{part=\"runner\"} 1");
	rig_close(&r);
}

/* A stream that is the answer to a request: refused as one. */
static void check_no_place_to_listen(struct rig *r)
{
	static const char body[] =
		"{\"jsonrpc\":\"2.0\",\"id\":\"L\",\"method\":\"subscriptions/listen\","
		"\"params\":{\"notifications\":{},\"_meta\":{"
		"\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
		"\"io.modelcontextprotocol/clientCapabilities\":{}}}}";
	const char *const pairs[] = {HOST,
				     "HTTP_MCP_PROTOCOL_VERSION",
				     "2026-07-28",
				     "HTTP_MCP_METHOD",
				     "subscriptions/listen",
				     "HTTP_ACCEPT",
				     "text/event-stream",
				     NULL};
	AUTO_ANSWER a =
		rig_answer(rig_send(r, "POST", "/mcp", body, sizeof(body) - 1, pairs));

	assert_int_equal(a.status, 503);
	assert_has(a.head, "Retry-After: 1");
	assert_has(a.body, "{\"jsonrpc\":\"2.0\",\"id\":\"L\",\"error\":{");
	assert_has(a.body, "all places");
}

static void places_are_bounded_and_come_back(void **state)
{
	const char *const pairs[] = {HOST, NULL};
	char uri[128];
	int64_t until;
	int fds[3];
	struct rig r;

	(void)state;
	setenv("MAX_PARKED_REQUESTS", "2", 1);
	rig_open(&r);
	unsetenv("MAX_PARKED_REQUESTS");
	rig_add_run(&r, rig_run);
	snprintf(uri, sizeof(uri), "/mcp/events?run_id=%s", rig_run);
	for (int i = 0; i < 2; i++) {
		AUTO_BUF b = BUF_INIT(65536);

		fds[i] = rig_send(&r, "GET", uri, "", 0, pairs);
		assert_true(rig_read_until(fds[i], &b, "run_started"));
	}
	AUTO_ANSWER full = rig_get(&r, uri);
	assert_int_equal(full.status, 503);
	assert_has(full.head, "Retry-After: 1");
	check_no_place_to_listen(&r);
	close(fds[0]);
	until = clock_mono_ms() + RIG_WAIT_MS; /* for its leaving to be noticed */
	for (;;) {
		AUTO_BUF b = BUF_INIT(65536);

		fds[0] = rig_send(&r, "GET", uri, "", 0, pairs);
		assert_true(rig_read_until(fds[0], &b, "\r\n\r\n"));
		if (strstr(b.p, "Status: 200"))
			break;
		close(fds[0]);
		assert_true(clock_mono_ms() < until);
	}
	close(fds[0]);
	close(fds[1]);
	rig_close(&r);
}

/* With few descriptors the last places are refused in words, and nothing spins. */
static void there_are_fewer_places_than_descriptors(void **state)
{
	enum { STREAMS = 100 };
	const char *const pairs[] = {HOST, NULL};
	struct rlimit before, few = {.rlim_cur = 130, .rlim_max = 130};
	int fds[STREAMS], refused = 0;
	char uri[128];
	struct rig r;

	(void)state;
	rig_open(&r);
	rig_add_run(&r, rig_run);
	kill(r.pid, SIGTERM);
	assert_int_equal(rig_wait_edge(&r), 0);
	getrlimit(RLIMIT_NOFILE, &before);
	few.rlim_max = geteuid() == 0 ? 130 : before.rlim_max;
	r.nofile = &few;
	rig_start_edge(&r);
	snprintf(uri, sizeof(uri), "/mcp/events?run_id=%s", rig_run);
	for (int i = 0; i < STREAMS; i++) {
		AUTO_BUF b = BUF_INIT(65536);

		fds[i] = rig_send(&r, "GET", uri, "", 0, pairs);
		assert_true(rig_read_until(fds[i], &b, "\r\n\r\n"));
		refused += strstr(b.p, "Status: 503") != NULL;
	}
	if (geteuid() == 0)
		assert_in_range(refused, 1, STREAMS - 1);
	for (int i = 0; i < STREAMS; i++)
		close(fds[i]);
	rig_close(&r);
}

static void readiness_names_the_part_that_is_not(void **state)
{
	const char *const pairs[] = {"HTTP_HOST", "10.0.0.7", NULL};
	struct edgemsg m;
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	fd = rig_send(&r, "GET", "/readyz", "", 0, pairs);
	m = rig_expect(&r, MSG_STATUS);
	rig_reply(&r, MSG_OK, m.id,
		  json_pack("{s:{s:b},s:{s:b,s:s}}", "store", "ok", 1, "backend", "ok", 0,
			    "message", "no runtime"));
	edgemsg_release(&m);
	AUTO_ANSWER a = rig_answer(fd);
	assert_int_equal(a.status, 503);
	assert_has(a.body, "\"backend\":{\"ok\":false,\"message\":\"no runtime\"}");
	assert_has(a.body, "\"store\":{\"ok\":true");
	fd = rig_send(&r, "GET", "/readyz", "", 0, pairs);
	AUTO_ANSWER silent = rig_answer(fd); /* nobody answers */
	assert_int_equal(silent.status, 503);
	assert_has(silent.body, "\"runner\":{\"ok\":false");
	rig_close(&r);
}

static void odd_identifiers_are_sent_by_redirect(void **state)
{
	static const struct {
		const char *uri;
		int status;
	} cases[] = {
		{"/artifacts/a%20b/latest/x/y.txt", 200},
		{"/artifacts/a%2Fb/run_0123456789abcdef0123456789abcdef/y%20z", 200},
		{"/artifacts/a%20b/latest/../x", 404},
		{"/artifacts/a%20b/latest/%2e%2e/x", 404},
		{"/artifacts/a%20b/latest/x%2f..%2fy", 404},
		{"/artifacts/a%20b/latest/x//y", 404},
		{"/artifacts/a%20b/latest/", 404},
		{"/artifacts/a%20b/run_1/x", 404},
		{"/artifacts/a%0ab/latest/x", 404},
		{"/artifacts/a%20b/latest/x\r\nY: z", 404},
	};
	struct rig r;

	(void)state;
	rig_open(&r);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_ANSWER a = rig_get(&r, cases[i].uri);

		if (a.status != cases[i].status)
			fail_msg("%s: %d", cases[i].uri, a.status);
		assert_int_equal(strstr(a.head, "X-Accel-Redirect: /_mcp_artifacts/"
						"default/~") != NULL,
				 a.status == 200);
	}
	rig_close(&r);
}

static void raw_output_is_sent_byte_for_byte(void **state)
{
	enum { N = 3 * 1024 * 1024 };
	char *bytes = malloc(N);
	char uri[128];
	struct rig r;

	(void)state;
	for (int i = 0; i < N; i++)
		bytes[i] = (char)(i * 7 + i / 251);
	rig_open(&r);
	rig_add_run(&r, rig_run);
	for (int at = 0; at < N; at += 32768)
		rig_add_output(&r, rig_run, at, bytes + at, 32768);
	rig_commit(&r);
	snprintf(uri, sizeof(uri), "/mcp/runs/%s/commands/0/stdout", rig_run);
	AUTO_ANSWER a = rig_get(&r, uri);
	assert_int_equal(a.status, 200);
	assert_has(a.head, "application/octet-stream\r\nX-Content-Type-Options: nosniff");
	assert_null(strstr(a.head, "X-Accel-Buffering"));
	assert_int_equal(a.n, N);
	assert_memory_equal(a.body, bytes, N);
	snprintf(uri, sizeof(uri), "/mcp/runs/%s/commands/0/stderr", rig_run);
	AUTO_ANSWER empty = rig_get(&r, uri);
	assert_int_equal(empty.status, 200);
	assert_int_equal(empty.n, 0);
	snprintf(uri, sizeof(uri), "/mcp/runs/%s/commands/1/stderr", rig_run);
	AUTO_ANSWER none = rig_get(&r, uri);
	assert_int_equal(none.status, 404);
	snprintf(uri, sizeof(uri), "/mcp/runs/%s", rig_run);
	AUTO_ANSWER run = rig_get(&r, uri);
	assert_int_equal(run.status, 200);
	assert_has(run.body, "\"state\":\"running\"");
	free(bytes);
	rig_close(&r);
}

static void the_end_of_the_master_ends_the_edge(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r);
	close(r.life_fd);
	r.life_fd = -1;
	assert_int_equal(rig_wait_edge(&r), 0);
	rig_close(&r);
}

static void a_stop_answers_those_who_await(void **state)
{
	char run_id[64];
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	rig_add_session(&r);
	fd = call_run(&r, 30000);
	rig_accept_run(&r, run_id);
	assert_false(rig_readable(fd, 50));
	kill(r.pid, SIGTERM);
	AUTO_ANSWER a = rig_answer(fd);
	assert_int_equal(a.status, 200);
	assert_has(a.body, "\"final\":null");
	assert_int_equal(rig_wait_edge(&r), 0);
	rig_close(&r);
}

static void a_stop_lets_an_answer_go_out_whole(void **state)
{
	static const char call[] =
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{"
		"\"name\":\"read_file\",\"arguments\":{\"identifier\":\"a\","
		"\"path\":\"/workspace/f\"}}}";
	enum { CODED = 1 << 20 }; /* more than a socket holds */
	char *data = malloc(CODED + 1), uri[96];
	const char *const pairs[] = {"HTTP_HOST", "localhost", NULL};
	AUTO_BUF ended = BUF_INIT(65536);
	struct edgemsg m;
	struct rig r;
	int fd, stream;

	(void)state;
	memset(data, 'A', CODED);
	data[CODED] = '\0';
	rig_open(&r);
	rig_add_session(&r);
	rig_add_run(&r, rig_run);
	snprintf(uri, sizeof(uri), "/mcp/events?run_id=%s", rig_run);
	stream = rig_send(&r, "GET", uri, "", 0, pairs);
	assert_true(rig_read_until(stream, &ended, "\r\n\r\n"));
	fd = rig_post(&r, call);
	m = rig_expect(&r, MSG_FILE_READ);
	rig_reply(&r, MSG_OK, m.id,
		  json_pack("{s:s,s:i,s:i,s:s}", "path", "/workspace/f", "size",
			    CODED / 4 * 3, "offset", 0, "data", data));
	edgemsg_release(&m);
	assert_true(rig_readable(fd, RIG_WAIT_MS));
	kill(r.pid, SIGTERM);
	rig_read_until(stream, &ended, NULL); /* it stops now */
	close(stream);
	AUTO_ANSWER a = rig_answer(fd);
	assert_true(a.is_whole);
	assert_in_range(a.n, CODED, 16 * CODED);
	assert_int_equal(rig_wait_edge(&r), 0);
	rig_close(&r);
	free(data);
}

/* The last answer ends the loop's work, and behind it the pair has ended as well. */
static void the_last_answer_and_the_end_of_the_runner_come_at_once(void **state)
{
	struct edgemsg m;
	struct rig r;
	int awaiting, asking;
	char run_id[64];

	(void)state;
	rig_open(&r);
	rig_add_session(&r);
	awaiting = call_run(&r, 30000);
	rig_accept_run(&r, run_id);
	asking = call_run(&r, 30000);
	m = rig_expect(&r, MSG_RUN);
	kill(r.pid, SIGTERM);
	AUTO_ANSWER first = rig_answer(awaiting); /* it stops */
	assert_has(first.body, "running after ");
	kill(r.pid, SIGSTOP);
	rig_reply(&r, MSG_ERR, m.id,
		  json_pack("{s:s,s:s}", "kind", "limit", "message", "too many runs"));
	close(r.runner_fd);
	r.runner_fd = dup(r.edge_fd);
	kill(r.pid, SIGCONT);
	AUTO_ANSWER last = rig_answer(asking);
	assert_has(last.body, "too many runs");
	assert_int_equal(rig_wait_edge(&r), 0);
	edgemsg_release(&m);
	rig_close(&r);
}

static void what_a_killed_master_leaves_unanswered_is_told_so_at_once(void **state)
{
	struct edgemsg m;
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	rig_add_session(&r);
	fd = call_run(&r, 30000);
	m = rig_expect(&r, MSG_RUN);
	close(r.life_fd);
	r.life_fd = -1;
	close(r.runner_fd);
	r.runner_fd = dup(r.edge_fd);
	AUTO_ANSWER a = rig_answer(fd);
	assert_int_equal(a.status, 200);
	assert_has(a.body, "\"isError\":true");
	assert_has(a.body, "ended before it answered");
	assert_has(a.body, json_get_string(m.body, "run_id"));
	assert_int_equal(rig_wait_edge(&r), 0);
	edgemsg_release(&m);
	rig_close(&r);
}

/* A broken edge could cut the others' mapping from under them. */
static void the_shared_numbers_keep_their_size(void **state)
{
	struct stat st;
	struct rig r;

	(void)state;
	rig_open(&r);
	assert_int_equal(fstat(r.stats_fd, &st), 0);
	assert_true(st.st_size > 0);
	assert_int_equal(ftruncate(r.stats_fd, 0), -1);
	assert_int_equal(ftruncate(r.stats_fd, st.st_size * 2), -1);
	rig_close(&r);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(what_a_killed_master_leaves_unanswered_is_told_so_at_once),
	cmocka_unit_test(the_last_answer_and_the_end_of_the_runner_come_at_once),
	cmocka_unit_test(the_shared_numbers_keep_their_size),
	cmocka_unit_test(a_ping_is_answered_without_the_runner),
	cmocka_unit_test(paths_and_methods_are_a_closed_set),
	cmocka_unit_test(a_body_over_the_limit_is_413_and_read_to_its_end),
	cmocka_unit_test(a_body_of_another_type_is_415),
	cmocka_unit_test(strangers_hosts_and_origins_are_403),
	cmocka_unit_test(an_awaited_run_is_answered_when_it_ends),
	cmocka_unit_test(an_await_that_runs_out_says_so_and_the_run_goes_on),
	cmocka_unit_test(a_refusal_of_the_runner_reaches_the_client),
	cmocka_unit_test(a_runner_that_starts_anew_gets_what_has_no_answer),
	cmocka_unit_test(requests_wait_while_the_pair_is_full),
	cmocka_unit_test(a_client_that_leaves_is_forgotten),
	cmocka_unit_test(places_are_bounded_and_come_back),
	cmocka_unit_test(there_are_fewer_places_than_descriptors),
	cmocka_unit_test(readiness_names_the_part_that_is_not),
	cmocka_unit_test(odd_identifiers_are_sent_by_redirect),
	cmocka_unit_test(raw_output_is_sent_byte_for_byte),
	cmocka_unit_test(the_end_of_the_master_ends_the_edge),
	cmocka_unit_test(a_stop_answers_those_who_await),
	cmocka_unit_test(a_stop_lets_an_answer_go_out_whole),
};

RIG_MAIN(tests)
