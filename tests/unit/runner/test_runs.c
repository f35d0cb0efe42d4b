/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include "base/utf8.h"
#include "wire/runspec.h"

#define ROOT "'options':{'as_user':'root'}"

static void a_run_tells_its_whole_story(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_STORE_RUN run = {0};
	AUTO_FREE char *out = NULL;
	AUTO_FREE char *events = NULL;

	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'echo hi; echo $HOME'},"
		"{'argv':['true']}]," ROOT "}");
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	rig_read_run(t, id, &run);
	out = rig_output(t, id, 0);
	events = rig_events(t, id);
	assert_string_equal("hi\n/root\n", out);
	assert_string_equal("run_started,command_started,command_stdout,command_finished,"
			    "command_started,command_finished,artifacts_extracted,"
			    "run_finished",
			    events);
	assert_int_equal(0, run.commands[0].exit_code);
	assert_int_equal(9, run.commands[0].bytes[STORE_STDOUT]);
	assert_int_equal(STORE_COMMAND_COMPLETED, run.commands[1].status);
}

static long metric(struct rig *t, const char *name)
{
	json_t *answer = rig_ask(t, MSG_STATUS, json_object());
	const char *at = strstr(json_get_string(answer, "metrics"), name);
	long n = at ? strtol(at + strlen(name), NULL, 10) : -1;

	json_decref(answer);
	return n;
}

/*
 * Whose caller waits for its end is accepted and ended in one commit, if it is short.
 * On a machine where nothing is that short there is nothing to see; and another commit
 * may come in between.
 */
static void a_short_awaited_run_costs_one_commit(void **state)
{
	static const char args[] =
		"{'identifier':'a','commands':[{'argv':['true']}],"
		"'options':{'as_user':'root','await_completion':true}}";
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	int in_time = 0;
	bool seen = false, ended;
	json_t *answer;

	rig_run(t, id, args);
	rig_wait(t, id);
	for (int i = 0; i < 500 && in_time < 10 && !seen; i++) {
		long before = metric(t, "mcp_store_commit_seconds_count ");

		id_new_run(id);
		answer = rig_ask(t, MSG_RUN, rig_run_body(id, args));
		ended = json_is_true(json_object_get(answer, "ended"));
		json_decref(answer);
		assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
		in_time += ended;
		seen = ended &&
		       metric(t, "mcp_store_commit_seconds_count ") == before + 1;
	}
	if (in_time == 0)
		skip();
	assert_true(seen);
}

static void a_failed_command_ends_the_run_and_says_why(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_STORE_RUN run = {0};

	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'exit "
		"7'},{'argv':['true']}]," ROOT "}");
	assert_int_equal(STORE_RUN_FAILED, rig_wait(t, id));
	rig_read_run(t, id, &run);
	assert_int_equal(7, run.commands[0].exit_code);
	assert_int_equal(STORE_COMMAND_QUEUED, run.commands[1].status);
	assert_string_equal("command 0: exit code 7", run.error);
}

static void allowed_failures_and_continuing_go_on(void **state)
{
	struct rig *t = *state;
	char one[ID_RUN_LEN + 1], two[ID_RUN_LEN + 1];
	AUTO_STORE_RUN run = {0};

	rig_run(t, one,
		"{'identifier':'a','commands':[{'shell':'exit 7','allow_failure':true},"
		"{'argv':['true']}]," ROOT "}");
	rig_run(t, two,
		"{'identifier':'a','commands':[{'shell':'exit 7'},{'argv':['true']}],"
		"'options':{'as_user':'root','continue_on_error':true}}");
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, one));
	assert_int_equal(STORE_RUN_FAILED, rig_wait(t, two));
	rig_read_run(t, two, &run);
	assert_int_equal(STORE_COMMAND_COMPLETED, run.commands[1].status);
}

/* 201 bytes: what is shown of a name ends inside the last character. */
#define E10       "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9"
#define LONG_NAME "x" E10 E10 E10 E10 E10 E10 E10 E10 E10 E10

struct ending_case {
	const char *command;
	enum store_command_status status;
	int64_t exit_code, signal;
	const char *reason; /* is in it */
};

static void every_end_says_its_truth(void **state)
{
	static const struct ending_case cases[] = {
		{"{'shell':'kill -SEGV $$'}", STORE_COMMAND_FAILED, -1, 11, "SEGV"},
		{"{'shell':'exit 137'}", STORE_COMMAND_FAILED, 137, 0, "exit code 137"},
		{"{'argv':['no-such-program']}", STORE_COMMAND_FAILED, -1, 0,
		 "no such program"},
		{"{'argv':['" LONG_NAME "']}", STORE_COMMAND_FAILED, -1, 0,
		 "no such program"},
		{"{'argv':['true'],'cwd':'/nowhere'}", STORE_COMMAND_FAILED, -1, 0,
		 "/nowhere cannot be entered"},
		{"{'shell':'sleep 30','timeout_ms':100}", STORE_COMMAND_TIMED_OUT, -1, 15,
		 "time limit of 100 ms"},
	};
	struct rig *t = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_FREE char *args = xasprintf(
			"{'identifier':'a','commands':[%s]," ROOT "}", cases[i].command);
		AUTO_STORE_RUN run = {0};
		char id[ID_RUN_LEN + 1];

		rig_run(t, id, args);
		assert_int_equal(STORE_RUN_FAILED, rig_wait(t, id));
		rig_read_run(t, id, &run);
		assert_int_equal(cases[i].status, run.commands[0].status);
		assert_true(utf8_is_valid(run.error, strlen(run.error)));
		if (!strstr(run.commands[0].reason, cases[i].reason))
			fail_msg("%s: %s", cases[i].command, run.commands[0].reason);
		assert_int_equal(cases[i].exit_code, run.commands[0].exit_code);
		assert_int_equal(cases[i].signal, run.commands[0].signal);
	}
}

/* A shell that has not come to its trap yet ends by TERM: then it gets more time. */
static void who_ignores_term_ends_by_kill(void **state)
{
	struct rig *t = *state;

	for (int limit_ms = 100; limit_ms <= WAIT_MS; limit_ms *= 4) {
		AUTO_FREE char *args = xasprintf(
			"{'identifier':'a','commands':[{'shell':'trap : TERM; while :; "
			"do sleep 1; done','timeout_ms':%d}]," ROOT "}",
			limit_ms);
		AUTO_STORE_RUN run = {0};
		char id[ID_RUN_LEN + 1];

		rig_run(t, id, args);
		assert_int_equal(STORE_RUN_FAILED, rig_wait(t, id));
		rig_read_run(t, id, &run);
		assert_int_equal(STORE_COMMAND_TIMED_OUT, run.commands[0].status);
		assert_non_null(strstr(run.commands[0].reason, "time limit"));
		assert_int_equal(-1, run.commands[0].exit_code);
		if (run.commands[0].signal == 9)
			return;
		assert_int_equal(15, run.commands[0].signal);
	}
	fail_msg("it always ended by TERM");
}

static void a_kill_for_memory_is_told_from_the_counter(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1], name[64];
	AUTO_STORE_RUN run = {0};
	AUTO_FREE char *counter = NULL;
	AUTO_FREE char *go = NULL;
	struct err e = ERR_INIT;

	backend_sandbox_name(name, sizeof(name), "0123abcd", "default", "a");
	counter = xasprintf("%s/fake/%s/oom", t->dir, name);
	go = xasprintf("%s/fake/%s/workspace/go", t->dir, name);
	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'mkfifo /workspace/go; echo x; "
		"cat /workspace/go; kill -KILL $$'}]," ROOT "}");
	rig_wait_event(t, id, STORE_EVENT_COMMAND_STDOUT);
	assert_int_equal(0, io_write_file_atomic(counter, "1\n", 2, 0600, &e));
	close(open(go, O_WRONLY | O_CLOEXEC));
	assert_int_equal(STORE_RUN_FAILED, rig_wait(t, id));
	rig_read_run(t, id, &run);
	assert_int_equal(9, run.commands[0].signal);
	assert_int_equal(1, run.commands[0].oom);
	assert_non_null(strstr(run.commands[0].reason, "memory limit of 1024 MB"));
}

static void a_script_of_megabytes_runs_whole(void **state)
{
	enum { FILLER = 3 * 1024 * 1024 };
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_FREE char *script = xcalloc(1, FILLER + 32);
	AUTO_FREE char *out = NULL;
	json_t *body;

	memset(script, '#', FILLER);
	memcpy(script + FILLER, "\necho end\n", 11);
	id_new_run(id);
	body = json_pack("{s:s,s:s,s:{s:s,s:[{s:s}],s:{s:s}}}", "tenant", "default",
			 "run_id", id, "args", "identifier", "a", "commands", "shell",
			 script, "options", "as_user", "root");
	json_decref(rig_ask(t, MSG_RUN, body));
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	out = rig_output(t, id, 0);
	assert_string_equal("end\n", out);
}

static void output_is_cut_at_the_cap_between_characters(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_STORE_RUN run = {0};
	AUTO_FREE char *out = NULL;

	/* Three bytes each: the cap of 1 MiB falls inside a character. */
	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'yes \\u20ac | tr -d \\\\\\\\012 "
		"| "
		"head -c 3000000'}]," ROOT "}");
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	rig_read_run(t, id, &run);
	out = rig_output(t, id, 0);
	assert_true(run.commands[0].truncated[STORE_STDOUT]);
	assert_int_equal(3000000, run.commands[0].bytes[STORE_STDOUT]);
	assert_int_equal(1048575, strlen(out));
}

static void a_repeated_request_starts_nothing_twice(void **state)
{
	static const char args[] = "{'identifier':'a','commands':[{'shell':'echo x >> "
				   "/workspace/f; cat /workspace/f'}]," ROOT "}";
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_FREE char *out = NULL;
	json_t *first, *second;

	id_new_run(id);
	first = rig_ask(t, MSG_RUN, rig_run_body(id, args));
	second = rig_ask(t, MSG_RUN, rig_run_body(id, args));
	assert_true(json_equal(first, second));
	json_decref(second);
	rig_wait(t, id);
	second = rig_ask(t, MSG_RUN, rig_run_body(id, args));
	assert_true(json_is_true(json_object_get(second, "ended")));
	json_object_set_new(first, "ended", json_true());
	assert_true(json_equal(first, second));
	json_decref(first);
	json_decref(second);
	out = rig_output(t, id, 0);
	assert_string_equal("x\n", out);
}

static void concurrent_first_calls_share_one_create(void **state)
{
	enum { RUNS = 8 };
	struct rig *t = *state;
	char ids[RUNS][ID_RUN_LEN + 1];
	AUTO_FREE char *path = xasprintf("%s/fake/creates", t->dir);
	AUTO_BUF creates = BUF_INIT(100);
	struct err e = ERR_INIT;

	for (int i = 0; i < RUNS; i++)
		rig_run(t, ids[i],
			"{'identifier':'a','commands':[{'argv':['true']}]," ROOT "}");
	for (int i = 0; i < RUNS; i++)
		assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, ids[i]));
	assert_int_equal(0, io_read_file(path, &creates, &e));
	assert_int_equal(1, creates.len);
}

static void locked_runs_go_one_after_the_other(void **state)
{
	enum { RUNS = 5 };
	struct rig *t = *state;
	char ids[RUNS][ID_RUN_LEN + 1], last[ID_RUN_LEN + 1];
	AUTO_FREE char *out = NULL;

	for (int i = 0; i < RUNS; i++) {
		AUTO_FREE char *args =
			xasprintf("{'identifier':'a','commands':[{'shell':'echo %d >> "
				  "/workspace/f; sleep 0.02; echo %d >> /workspace/f'}],"
				  "'options':{'as_user':'root','lock_sandbox':true}}",
				  i, i);

		rig_run(t, ids[i], args);
	}
	rig_wait(t, ids[RUNS - 1]);
	rig_run(t, last,
		"{'identifier':'a','commands':[{'shell':'tr -d \\\\\\\\n < "
		"/workspace/f'}]," ROOT "}");
	rig_wait(t, last);
	out = rig_output(t, last, 0);
	assert_string_equal("0011223344", out);
}

static void a_canceled_command_is_ended(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_STORE_RUN run = {0};
	json_t *answer;

	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'sleep "
		"60'},{'argv':['true']}]," ROOT "}");
	rig_wait_event(t, id, STORE_EVENT_COMMAND_STARTED);
	answer = rig_ask(t, MSG_CANCEL,
			 json_pack("{s:s,s:s,s:s}", "tenant", "default", "run_id", id,
				   "reason", "no longer needed"));
	assert_true(json_is_true(json_object_get(answer, "canceled")));
	json_decref(answer);
	assert_int_equal(STORE_RUN_CANCELED, rig_wait(t, id));
	rig_read_run(t, id, &run);
	assert_int_equal(STORE_COMMAND_CANCELED, run.commands[0].status);
	assert_int_equal(STORE_COMMAND_QUEUED, run.commands[1].status);
	assert_string_equal("no longer needed", run.error);
}

static void a_reason_is_a_sentence_and_no_more(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1], reason[2000];
	AUTO_STORE_RUN run = {0};

	memset(reason, 'x', sizeof(reason));
	memcpy(reason + 499, "\xc3\xa9", 2); /* a character over the edge */
	reason[sizeof(reason) - 1] = '\0';
	rig_run(t, id, "{'identifier':'a','commands':[{'shell':'sleep 60'}]," ROOT "}");
	rig_wait_event(t, id, STORE_EVENT_COMMAND_STARTED);
	json_decref(rig_ask(t, MSG_CANCEL,
			    json_pack("{s:s,s:s,s:s}", "tenant", "default", "run_id", id,
				      "reason", reason)));
	assert_int_equal(STORE_RUN_CANCELED, rig_wait(t, id));
	rig_read_run(t, id, &run);
	assert_int_equal(499, strlen(run.error));
}

static void a_create_that_fails_is_told_in_its_words(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_STORE_RUN run = {0};

	rig_end(t, SIGKILL);
	fake_create_fails = "the moon is in the way";
	rig_start(t);
	rig_run(t, id, "{'identifier':'a','commands':[{'argv':['true']}]," ROOT "}");
	assert_int_equal(STORE_RUN_FAILED, rig_wait(t, id));
	rig_read_run(t, id, &run);
	assert_non_null(strstr(run.error, "the moon is in the way"));
}

static void bad_requests_are_refused(void **state)
{
	struct rig *t = *state;
	enum edgemsg_type got;
	json_t *answer = rig_answer(
		t, rig_send(t, MSG_RUN, rig_run_body("run_../../etc", "{}")), &got);

	assert_int_equal(MSG_ERR, got);
	assert_string_equal("invalid",
			    json_string_value(json_object_get(answer, "kind")));
	json_decref(answer);
}

static void input_reaches_a_command_and_ends(void **state)
{
	struct rig *t = *state;
	size_t n = 3 * 1024 * 1024;
	char id[ID_RUN_LEN + 1], id2[ID_RUN_LEN + 1];
	AUTO_FREE char *big = xmalloc(n + 1);
	AUTO_FREE char *args = NULL;
	AUTO_FREE char *out = NULL;
	AUTO_FREE char *sums = NULL;

	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'cat','stdin':'a\\nb'},"
		"{'argv':['cat']}]," ROOT "}");
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	out = rig_output(t, id, 0);
	assert_string_equal("a\nb", out);
	/* Far more than the window, to one who reads slowly, and to one who does not. */
	memset(big, 'x', n);
	big[n] = '\0';
	args = xasprintf("{'identifier':'a','commands':[{'shell':'sleep 0.2; head -c 9 "
			 ">/dev/null; sleep 0.1; wc -c','stdin':'%s'},{'argv':['true'],"
			 "'stdin':'%s'}]," ROOT "}",
			 big, big);
	rig_run(t, id2, args);
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id2));
	sums = rig_output(t, id2, 0);
	assert_true(strtol(sums, NULL, 10) > (long)n - 100000);
}

static void input_goes_on_after_the_runner_was_killed(void **state)
{
	struct rig *t = *state;
	size_t n = 2 * 1024 * 1024;
	char id[ID_RUN_LEN + 1];
	AUTO_FREE char *big = xmalloc(n + 1);
	AUTO_FREE char *args = NULL;
	AUTO_FREE char *out = NULL;

	for (size_t i = 0; i < n; i++)
		big[i] = "0123456789abcdef"[i * 31 % 16];
	big[n] = '\0';
	args = xasprintf("{'identifier':'a','commands':[{'shell':'echo begun; head -c "
			 "100000 >/tmp/x; sleep 0.7; cat >>/tmp/x; wc -c </tmp/x',"
			 "'stdin':'%s'}]," ROOT "}",
			 big);
	rig_run(t, id, args);
	rig_wait_event(t, id, STORE_EVENT_COMMAND_STDOUT);
	rig_end(t, SIGKILL);
	rig_start(t);
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	out = rig_output(t, id, 0);
	assert_string_equal("begun\n2097152\n", out);
}

static void a_background_command_goes_on_as_a_run_of_its_own(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1], other[ID_RUN_LEN + 1];
	AUTO_STORE_RUN run = {0}, bg = {0}, end = {0};
	AUTO_FREE char *out = NULL;

	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'read x; echo up $x; until [ -e "
		"/tmp/stop ]; do sleep 0.02; done','background':true,'stdin':'now\\n'},"
		"{'shell':'echo front'}]," ROOT "}");
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	rig_read_run(t, id, &run);
	runspec_background_id(id, 0, other);
	assert_int_equal(STORE_COMMAND_COMPLETED, run.commands[0].status);
	assert_int_equal(-1, run.commands[0].exit_code);
	assert_non_null(strstr(run.commands[0].reason, other));
	rig_wait_event(t, other, STORE_EVENT_COMMAND_STDOUT);
	rig_read_run(t, other, &bg);
	assert_int_equal(STORE_RUN_RUNNING, bg.state);
	assert_string_equal(id, bg.background_of);
	/* It survives the runner, and is awaited like any run. */
	rig_end(t, SIGKILL);
	rig_start(t);
	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'touch /tmp/stop'}]," ROOT "}");
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, other));
	out = rig_output(t, other, 0);
	assert_string_equal("up now\n", out);
	rig_read_run(t, other, &end);
	assert_int_equal(0, end.commands[0].exit_code);
}

static void what_is_in_the_background_does_not_keep_a_sandbox(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1], other[ID_RUN_LEN + 1];
	AUTO_STORE_RUN bg = {0};

	rig_run(t, id,
		"{'identifier':'a','commands':[{'argv':['sleep','100'],'background':true}"
		"],'options':{'as_user':'root','ttl_seconds':1}}");
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	runspec_background_id(id, 0, other);
	assert_int_equal(STORE_RUN_CANCELED, rig_wait(t, other));
	rig_read_run(t, other, &bg);
	assert_non_null(strstr(bg.error, "expired"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_run_tells_its_whole_story),
		TEST(a_short_awaited_run_costs_one_commit),
		TEST(a_failed_command_ends_the_run_and_says_why),
		TEST(allowed_failures_and_continuing_go_on),
		TEST(every_end_says_its_truth),
		TEST(who_ignores_term_ends_by_kill),
		TEST(a_kill_for_memory_is_told_from_the_counter),
		TEST(a_script_of_megabytes_runs_whole),
		TEST(output_is_cut_at_the_cap_between_characters),
		TEST(a_repeated_request_starts_nothing_twice),
		TEST(concurrent_first_calls_share_one_create),
		TEST(locked_runs_go_one_after_the_other),
		TEST(a_canceled_command_is_ended),
		TEST(a_reason_is_a_sentence_and_no_more),
		TEST(a_create_that_fails_is_told_in_its_words),
		TEST(bad_requests_are_refused),
		TEST(input_reaches_a_command_and_ends),
		TEST(input_goes_on_after_the_runner_was_killed),
		TEST(a_background_command_goes_on_as_a_run_of_its_own),
		TEST(what_is_in_the_background_does_not_keep_a_sandbox),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
