/* SPDX-License-Identifier: MIT */
#include <sys/resource.h>

#include "rig.h"

static void assert_has(const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("\"%s\" is not in: %.2000s", part, text ? text : "(nothing)");
}

static int open_stream(struct rig *r, const char *run_id, const char *after,
		       const char *last_id)
{
	const char *const pairs[] = {HOST, "HTTP_LAST_EVENT_ID", last_id, NULL};
	char uri[160];

	snprintf(uri, sizeof(uri), "/mcp/events?run_id=%s%s", run_id, after);
	return rig_send(r, "GET", uri, "", 0, pairs);
}

/* The frames are numbered from..to, each once and in order. */
static void assert_ids(const char *text, int64_t from, int64_t to)
{
	for (int64_t id = from; id <= to; id++) {
		char want[32];

		snprintf(want, sizeof(want), "id: %lld\n", (long long)id);
		text = strstr(text, "id: ");
		if (!text || strncmp(text, want, strlen(want)) != 0)
			fail_msg("%s expected at: %.40s", want,
				 text ? text : "(the end)");
		text += 4;
	}
	assert_null(strstr(text, "id: "));
}

static void a_late_subscriber_gets_the_history_and_the_end(void **state)
{
	static const char not_utf8[] = {'a', (char)0xff, '\n'};
	struct rig r;

	(void)state;
	rig_open(&r);
	rig_add_run(&r, rig_run);
	rig_add_output(&r, rig_run, 0, not_utf8, sizeof(not_utf8));
	rig_end_run(&r, rig_run);
	AUTO_ANSWER a = rig_answer(open_stream(&r, rig_run, "", ""));
	assert_int_equal(a.status, 200);
	assert_true(a.is_whole);
	assert_has(a.head, "Content-Type: text/event-stream");
	assert_has(a.head, "X-Accel-Buffering: no");
	assert_null(strstr(a.head, "Content-Length"));
	assert_has(a.body, "retry: ");
	assert_has(a.body, "event: run_started\n");
	assert_has(a.body, "\"chunk\":\"a\357\277\275\\n\""); /* U+FFFD */
	assert_has(a.body, "event: run_finished\n");
	assert_ids(a.body, 1, 3);
	rig_close(&r);
}

static void a_stream_goes_on_where_the_client_says(void **state)
{
	static const struct {
		const char *after, *last_id;
		int64_t from;
	} cases[] = {{"&after=1", "", 2},
		     {"", "2", 3},
		     {"&after=1", "2", 3},
		     {"&after=0", "", 1}};
	struct rig r;

	(void)state;
	rig_open(&r);
	rig_add_run(&r, rig_run);
	rig_add_output(&r, rig_run, 0, "x", 1);
	rig_add_output(&r, rig_run, 1, "y", 1);
	rig_end_run(&r, rig_run);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_ANSWER a = rig_answer(
			open_stream(&r, rig_run, cases[i].after, cases[i].last_id));

		assert_int_equal(a.status, 200);
		assert_ids(a.body, cases[i].from, 4);
	}
	AUTO_ANSWER seen = rig_answer(open_stream(&r, rig_run, "", "4"));
	assert_int_equal(seen.status, 204); /* so that it does not come back */
	AUTO_ANSWER bad = rig_answer(open_stream(&r, rig_run, "&after=x", ""));
	assert_int_equal(bad.status, 400);
	AUTO_ANSWER negative = rig_answer(open_stream(&r, rig_run, "", "-1"));
	assert_int_equal(negative.status, 400);
	rig_close(&r);
}

static void live_events_come_once_and_in_order(void **state)
{
	AUTO_BUF b = BUF_INIT(1 << 20);
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	rig_add_run(&r, rig_run);
	fd = open_stream(&r, rig_run, "", "");
	assert_true(rig_read_until(fd, &b, "id: 1\n"));
	for (int i = 0; i < 200; i++) {
		char want[32];

		rig_add_output(&r, rig_run, i, "z", 1);
		rig_commit(&r);
		if (i % 50 != 0)
			continue;
		snprintf(want, sizeof(want), "id: %d\n", i + 2);
		assert_true(rig_read_until(fd, &b, want));
	}
	rig_end_run(&r, rig_run);
	assert_true(rig_read_until(fd, &b, NULL));
	assert_ids(b.p, 1, 202);
	close(fd);
	rig_close(&r);
}

/* Streams that begin while the run prints: the seam between past and future. */
static void no_event_is_lost_between_replay_and_live(void **state)
{
	enum { STREAMS = 60 };
	struct rig r;
	int fds[STREAMS];

	(void)state;
	rig_open(&r);
	rig_add_run(&r, rig_run);
	for (int i = 0; i < STREAMS; i++) {
		fds[i] = open_stream(&r, rig_run, "", "");
		for (int k = 0; k < 5; k++) {
			rig_add_output(&r, rig_run, i * 5 + k, "q", 1);
			rig_commit(&r);
		}
	}
	rig_end_run(&r, rig_run);
	for (int i = 0; i < STREAMS; i++) {
		AUTO_ANSWER a = rig_answer(fds[i]);

		assert_true(a.is_whole);
		assert_ids(a.body, 1, STREAMS * 5 + 2);
	}
	rig_close(&r);
}

static long edge_rss_kb(pid_t pid)
{
	char path[64], line[256];
	long kb = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, "VmRSS:", 6) == 0)
			kb = strtol(line + 6, NULL, 10);
	fclose(f);
	return kb;
}

static void a_reader_that_stalls_costs_little_and_loses_nothing(void **state)
{
	enum { PIECE = 32 * 1024, PIECES = 1024 };
	static char piece[PIECE];
	struct rig r;
	long before;
	int fd;

	(void)state;
	memset(piece, 'm', sizeof(piece));
	rig_open(&r);
	rig_add_run(&r, rig_run);
	fd = open_stream(&r, rig_run, "", "");
	before = edge_rss_kb(r.pid);
	for (int i = 0; i < PIECES; i++) {
		rig_add_output(&r, rig_run, (int64_t)i * PIECE, piece, PIECE);
		rig_commit(&r);
	}
	rig_end_run(&r, rig_run);
	AUTO_ANSWER probe = rig_get(&r, "/healthz");
	assert_int_equal(probe.status, 200);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	/* A sanitizer keeps what was freed. */
	assert_true(edge_rss_kb(r.pid) - before < 16 * 1024);
#else
	(void)before;
#endif
	AUTO_ANSWER a = rig_answer(fd);
	assert_true(a.is_whole);
	assert_ids(a.body, 1, PIECES + 2);
	assert_true(a.n > (size_t)PIECE * PIECES);
	rig_close(&r);
}

static void silence_is_broken_by_a_comment(void **state)
{
	AUTO_BUF b = BUF_INIT(1 << 20);
	struct rig r;
	int fd;

	(void)state;
	setenv("RIG_KEEPALIVE_MS", "1", 1);
	rig_open(&r);
	unsetenv("RIG_KEEPALIVE_MS");
	rig_add_run(&r, rig_run);
	fd = open_stream(&r, rig_run, "", "");
	assert_true(rig_read_until(fd, &b, ": keepalive\n\n"));
	close(fd);
	rig_close(&r);
}

/* The safety net: a commit without a ring is found within a second or two. */
static void an_event_without_a_ring_is_found(void **state)
{
	AUTO_BUF b = BUF_INIT(1 << 20);
	struct store_commit_info info;
	struct err e = ERR_INIT;
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	rig_add_run(&r, rig_run);
	fd = open_stream(&r, rig_run, "", "");
	assert_true(rig_read_until(fd, &b, "id: 1\n"));
	rig_add_output(&r, rig_run, 0, "z", 1);
	assert_int_equal(store_commit(r.store, &info, &e), 0);
	assert_true(rig_read_until(fd, &b, "id: 2\n"));
	close(fd);
	rig_close(&r);
}

static void a_stop_ends_streams_which_then_resume(void **state)
{
	AUTO_BUF b = BUF_INIT(65536);
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	rig_add_run(&r, rig_run);
	fd = open_stream(&r, rig_run, "", "");
	assert_true(rig_read_until(fd, &b, "id: 1\n"));
	kill(r.pid, SIGTERM);
	assert_true(rig_read_until(fd, &b, NULL)); /* a whole end */
	close(fd);
	assert_int_equal(rig_wait_edge(&r), 0);
	rig_start_edge(&r);
	rig_add_output(&r, rig_run, 0, "z", 1);
	rig_end_run(&r, rig_run);
	AUTO_ANSWER a = rig_answer(open_stream(&r, rig_run, "", "1"));
	assert_ids(a.body, 2, 3);
	rig_close(&r);
}

static int64_t edge_cpu_ms(pid_t pid)
{
	unsigned long user, system;
	char path[64], line[1024], *end;
	const char *at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	fclose(f);
	at = strrchr(line, ')'); /* the end of the 2nd field; the 14th is wanted */
	for (int field = 2; at && field < 14; field++)
		at = strchr(at + 1, ' ');
	assert_non_null(at);
	user = strtoul(at, &end, 10);
	system = strtoul(end, NULL, 10);
	return (int64_t)((user + system) * 1000 / (unsigned long)sysconf(_SC_CLK_TCK));
}

static void two_thousand_streams_cost_little_and_all_are_served(void **state)
{
	enum { STREAMS = 2000 };
	static int fds[STREAMS];
	struct rlimit nofile;
	long before, after;
	struct rig r;
	int64_t opening, cpu;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &nofile);
	nofile.rlim_cur = nofile.rlim_max;
	setrlimit(RLIMIT_NOFILE, &nofile);
	if (nofile.rlim_max < STREAMS + 200)
		skip();
	rig_open(&r);
	rig_add_run(&r, rig_run);
	before = edge_rss_kb(r.pid);
	opening = edge_cpu_ms(r.pid);
	for (int i = 0; i < STREAMS; i++) {
		AUTO_BUF b = BUF_INIT(65536);

		fds[i] = open_stream(&r, rig_run, "", "");
		assert_true(rig_read_until(fds[i], &b, "id: 1\n"));
	}
	after = edge_rss_kb(r.pid);
	cpu = edge_cpu_ms(r.pid);
	opening = cpu - opening;
	assert_false(rig_readable(r.runner_fd, 2000)); /* two seconds of nothing */
	cpu = edge_cpu_ms(r.pid) - cpu;
	print_message("%.1f KiB a stream, %lld ms CPU in 2 s idle\n",
		      (double)(after - before) / STREAMS, (long long)cpu);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_true(after - before < 12 * STREAMS);
#endif
	/* Whatever the machine's speed is, and however coarse its clock. */
	assert_true(cpu <= 40 + opening / 4);
	rig_end_run(&r, rig_run);
	for (int i = 0; i < STREAMS; i++) {
		AUTO_BUF b = BUF_INIT(65536);

		assert_true(rig_read_until(fds[i], &b, NULL));
		assert_has(b.p, "event: run_finished");
		close(fds[i]);
	}
	rig_close(&r);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_late_subscriber_gets_the_history_and_the_end),
	cmocka_unit_test(a_stream_goes_on_where_the_client_says),
	cmocka_unit_test(live_events_come_once_and_in_order),
	cmocka_unit_test(no_event_is_lost_between_replay_and_live),
	cmocka_unit_test(a_reader_that_stalls_costs_little_and_loses_nothing),
	cmocka_unit_test(silence_is_broken_by_a_comment),
	cmocka_unit_test(an_event_without_a_ring_is_found),
	cmocka_unit_test(a_stop_ends_streams_which_then_resume),
	cmocka_unit_test(two_thousand_streams_cost_little_and_all_are_served),
};

RIG_MAIN(tests)
