/* SPDX-License-Identifier: MIT */
#include "fake.h"

#include "mcp/run_words.h"
#include "mcp/runobj.h"
#include "mcp/urls.h"

/* What the commands have written, by command and stream. */
struct output {
	const char *p[2][STORE_STREAM_COUNT];
	size_t piece; /* bytes given at a time */
	bool broken;
};

static int give(void *arg, const struct store_output_query *q, struct buf *out,
		size_t *ret_n, struct err *e)
{
	const struct output *o = arg;
	const char *p = o->p[q->command_index][q->stream];
	size_t n = strlen(p) - (size_t)q->offset;

	if (o->broken)
		return err_set(e, ERR_STORE, "disk");
	if (n > q->max)
		n = q->max;
	if (n > o->piece)
		n = o->piece;
	buf_add(out, p + q->offset, n);
	*ret_n = n;
	return 0;
}

static struct store_command command_of(const struct output *o, int64_t index)
{
	struct store_command c = {
		.index = index,
		.shell = "make",
		.cwd = "/workspace",
		.env_json = "{\"A\":\"b\"}",
		.timeout_ms = 1000,
		.status = STORE_COMMAND_COMPLETED,
		.started_at = 1000,
		.ended_at = 2500,
		.oom = -1,
		.cpu_ms = -1,
		.max_rss_kb = 77,
	};
	int s;

	for (s = 0; s < STORE_STREAM_COUNT; s++)
		c.bytes[s] = c.stored[s] = (int64_t)strlen(o->p[index][s]);
	return c;
}

static struct store_run run_of(struct store_command *c, size_t n)
{
	return (struct store_run){
		.run_id = "run_0123",
		.tenant = "default",
		.identifier = "chat/1",
		.sandbox_name = "mcp-sbx-chat-1",
		.state = STORE_RUN_COMPLETED,
		.created_at = 500,
		.ended_at = 3000,
		.commands = c,
		.ncommands = n,
	};
}

static json_t *build(const struct store_run *run, struct output *o,
		     const struct runobj_opts *opts)
{
	json_t *v = NULL;
	struct err e = ERR_INIT;

	if (runobj_build(run, give, o, opts, &v, &e) < 0)
		fail_msg("%s", e.msg);
	return v;
}

static void the_names_are_those_of_the_seed(void **state)
{
	static const char *const run_keys[] = {
		"run_id",     "identifier",      "state",    "created_at",
		"started_at", "ended_at",        "commands", "sandbox_container_id",
		"artifacts",  "artifacts_error", "error",    "sandbox_name"};
	static const char *const command_keys[] = {"index",
						   "shell",
						   "argv",
						   "cwd",
						   "env",
						   "status",
						   "exit_code",
						   "started_at",
						   "ended_at",
						   "stdout_bytes",
						   "stderr_bytes",
						   "stdout_truncated",
						   "stderr_truncated",
						   "stdout",
						   "stderr"};
	struct output o = {.p = {{"out", "err"}}, .piece = 100};
	struct store_command c = command_of(&o, 0);
	struct store_run run = run_of(&c, 1);
	struct runobj_opts opts = runobj_opts_full("", "/mcp");
	AUTO_JSON *v = build(&run, &o, &opts);
	const json_t *command = json_array_get(at(v, "commands"), 0);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(run_keys) / sizeof(run_keys[0]); i++)
		at(v, run_keys[i]);
	for (i = 0; i < sizeof(command_keys) / sizeof(command_keys[0]); i++)
		at(command, command_keys[i]);
	assert_string_equal(str_at(v, "state"), "completed");
	assert_string_equal(str_at(v, "ended_at"), "1970-01-01T00:00:03.000Z");
	assert_true(json_is_null(at(v, "started_at")));
	assert_string_equal(str_at(command, "shell"), "make");
	assert_true(json_is_null(at(command, "argv")));
	assert_string_equal(str_at(at(command, "env"), "A"), "b");
	assert_string_equal(str_at(command, "stdout"), "out");
	assert_string_equal(str_at(command, "stderr"), "err");
	assert_string_equal(str_at(command, "stdout_url"),
			    "/mcp/runs/run_0123/commands/0/stdout");
	assert_true(json_is_null(at(command, "oom")));
	assert_true(json_is_null(at(command, "cpu_ms")));
	assert_int_equal(json_integer_value(at(command, "exit_code")), 0);
}

static void what_really_happened_stands_beside_the_seeds_word(void **state)
{
	static const struct {
		enum store_command_status status;
		int64_t exit_code, signal;
		const char *word, *state;
	} all[] = {
		{STORE_COMMAND_QUEUED, -1, 0, "queued", "queued"},
		{STORE_COMMAND_RUNNING, -1, 0, "queued", "running"},
		{STORE_COMMAND_COMPLETED, 0, 0, "completed", "completed"},
		{STORE_COMMAND_FAILED, 137, 0, "failed", "failed"},
		{STORE_COMMAND_FAILED, -1, 9, "failed", "failed"},
		{STORE_COMMAND_TIMED_OUT, -1, 15, "timed_out", "timed_out"},
		{STORE_COMMAND_CANCELED, -1, 0, "failed", "canceled"},
		{STORE_COMMAND_LOST, -1, 0, "failed", "lost"},
	};
	struct output o = {.p = {{"", ""}}, .piece = 100};
	struct runobj_opts opts = runobj_opts_full("", "/mcp");
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct store_command c = command_of(&o, 0);
		struct store_run run = run_of(&c, 1);
		AUTO_JSON *v = NULL;
		const json_t *command;

		c.status = all[i].status;
		c.exit_code = all[i].exit_code;
		c.signal = all[i].signal;
		v = build(&run, &o, &opts);
		command = json_array_get(at(v, "commands"), 0);
		assert_string_equal(str_at(command, "status"), all[i].word);
		assert_string_equal(str_at(command, "state"), all[i].state);
		assert_int_equal(json_is_null(at(command, "exit_code")),
				 all[i].exit_code < 0);
		assert_int_equal(json_is_null(at(command, "signal")), all[i].signal == 0);
		if (all[i].signal == 9)
			assert_string_equal(str_at(command, "signal"), "SIGKILL");
	}
}

static void output_is_read_in_pieces_and_repaired(void **state)
{
	struct output o = {.p = {{"a\xff\xc3\xa9z", ""}}, .piece = 2};
	struct store_command c = command_of(&o, 0);
	struct store_run run = run_of(&c, 1);
	struct runobj_opts opts = runobj_opts_full("", "/mcp");
	AUTO_JSON *v = build(&run, &o, &opts);
	const json_t *command = json_array_get(at(v, "commands"), 0);

	(void)state;
	assert_string_equal(str_at(command, "stdout"), "a\xef\xbf\xbd\xc3\xa9z");
	assert_int_equal(json_integer_value(at(command, "stdout_bytes")), 5);
	assert_true(json_is_false(at(command, "stdout_truncated")));
}

static void long_output_loses_its_middle_between_characters(void **state)
{
	static const char umlauts[] = "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc"
				      "\xc3\xa4\xc3\xb6\xc3\xbc";
	struct output o = {.p = {{umlauts, ""}}, .piece = 3};
	struct store_command c = command_of(&o, 0);
	struct store_run run = run_of(&c, 1);
	struct runobj_opts opts = {
		.base_url = "", .mcp_path = "/mcp", .stream_max = 100, .total_max = 12};
	AUTO_JSON *v = build(&run, &o, &opts);
	const json_t *command = json_array_get(at(v, "commands"), 0);

	(void)state;
	/* 12 bytes: 3 from the start, so 2; 9 from the end, so 8. */
	assert_string_equal(str_at(command, "stdout"),
			    "\xc3\xa4\n[... 8 bytes left out ...]\n"
			    "\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc");
	assert_true(json_is_true(at(command, "stdout_truncated")));
	assert_int_equal(json_integer_value(at(command, "stdout_bytes")), 18);
}

static void streams_share_what_there_is(void **state)
{
	char big[1001];
	struct output o = {.p = {{"tiny", big}, {big, ""}}, .piece = 64};
	struct store_command c[2];
	struct store_run run;
	struct runobj_opts opts = {
		.base_url = "", .mcp_path = "/mcp", .stream_max = 500, .total_max = 604};
	AUTO_JSON *v = NULL;
	const json_t *first, *second;

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	c[0] = command_of(&o, 0);
	c[1] = command_of(&o, 1);
	run = run_of(c, 2);
	v = build(&run, &o, &opts);
	first = json_array_get(at(v, "commands"), 0);
	second = json_array_get(at(v, "commands"), 1);
	assert_string_equal(str_at(first, "stdout"), "tiny");
	/* The rest of 604 in halves, and the mark. */
	assert_in_range(strlen(str_at(first, "stderr")), 300, 300 + 40);
	assert_in_range(strlen(str_at(second, "stdout")), 300, 300 + 40);
	assert_non_null(strstr(str_at(first, "stderr"), "[... 700 bytes left out ...]"));
}

static void the_cap_of_what_is_kept_is_told(void **state)
{
	struct output o = {.p = {{"kept", ""}}, .piece = 100};
	struct store_command c = command_of(&o, 0);
	struct store_run run = run_of(&c, 1);
	struct runobj_opts opts = runobj_opts_full("", "/mcp");
	AUTO_JSON *v = NULL;
	const json_t *command;

	(void)state;
	c.bytes[STORE_STDOUT] = 1000;
	c.truncated[STORE_STDOUT] = true;
	v = build(&run, &o, &opts);
	command = json_array_get(at(v, "commands"), 0);
	assert_int_equal(json_integer_value(at(command, "stdout_bytes")), 1000);
	assert_int_equal(json_integer_value(at(command, "stdout_kept_bytes")), 4);
	assert_true(json_is_true(at(command, "stdout_truncated")));
}

/* Output that only the words cut, or do not show: the object has it whole. */
static void what_the_words_leave_out_has_its_url(void **state)
{
	static char big[30001];
	struct output o = {.p = {{"shown whole", ""}, {big, "\x01\x01\x01"}},
			   .piece = 100000};
	struct store_command c[2];
	struct store_run run;
	struct runobj_opts model = runobj_opts_model("", "/mcp");
	AUTO_BUF words = BUF_INIT(100000);
	AUTO_JSON *v = NULL;

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	c[0] = command_of(&o, 0);
	c[1] = command_of(&o, 1);
	run = run_of(c, 2);
	v = build(&run, &o, &model);
	run_words_final(&words, v);
	assert_null(json_object_get(json_array_get(at(v, "commands"), 0), "stdout_url"));
	assert_non_null(strstr(words.p, "stdout (not all of 30000 bytes; whole: "
					"/mcp/runs/run_0123/commands/1/stdout):\n"));
	assert_non_null(strstr(words.p, "stderr: 3 bytes, no text: "
					"/mcp/runs/run_0123/commands/1/stderr\n"));
}

static void a_model_gets_long_scripts_shortened(void **state)
{
	char script[3000];
	struct output o = {.p = {{"", ""}}, .piece = 100};
	struct store_command c = command_of(&o, 0);
	struct store_run run = run_of(&c, 1);
	struct runobj_opts model = runobj_opts_model("", "/mcp");
	struct runobj_opts full = runobj_opts_full("", "/mcp");
	AUTO_JSON *short_one = NULL;
	AUTO_JSON *long_one = NULL;

	(void)state;
	memset(script, 's', sizeof(script) - 1);
	script[sizeof(script) - 1] = '\0';
	c.shell = script;
	short_one = build(&run, &o, &model);
	long_one = build(&run, &o, &full);
	assert_non_null(
		strstr(str_at(json_array_get(at(short_one, "commands"), 0), "shell"),
		       "[... 1975 bytes left out ...]"));
	assert_string_equal(str_at(json_array_get(at(long_one, "commands"), 0), "shell"),
			    script);
}

static void artifacts_have_urls_and_skipped_ones_reasons(void **state)
{
	struct store_artifact a[] = {
		{.path = "out/a b%.txt", .size = 5},
		{.path = "link", .size = 0, .skipped_reason = "a symbolic link"},
		{.path = "c\xc3\xa9", .size = 1},
	};
	struct output o = {.p = {{"", ""}}, .piece = 100};
	struct store_command c = command_of(&o, 0);
	struct store_run run = run_of(&c, 1);
	struct runobj_opts opts = runobj_opts_full("https://h", "/mcp");
	AUTO_JSON *v = NULL;
	AUTO_JSON *cut = NULL;
	const char *url;

	(void)state;
	run.artifacts = a;
	run.nartifacts = 3;
	v = build(&run, &o, &opts);
	assert_int_equal(json_array_size(at(v, "artifacts")), 2);
	url = str_at(json_array_get(at(v, "artifacts"), 0), "url");
	/* chat/1 is no path component, so its folder is ~ and a hash. */
	assert_true(strncmp(url, "https://h/artifacts/~", 21) == 0);
	assert_non_null(strstr(url, "/run_0123/out/a%20b%25.txt"));
	url = str_at(json_array_get(at(v, "artifacts"), 1), "url");
	assert_non_null(strstr(url, "/c%C3%A9"));
	assert_string_equal(
		str_at(json_array_get(at(v, "artifacts_skipped"), 0), "reason"),
		"a symbolic link");
	opts.artifacts_max = 1;
	cut = build(&run, &o, &opts);
	assert_int_equal(json_array_size(at(cut, "artifacts")), 1);
	assert_int_equal(json_integer_value(at(cut, "artifacts_total")), 2);
}

static void a_store_that_fails_fails_the_object(void **state)
{
	struct output o = {.p = {{"x", ""}}, .piece = 100, .broken = true};
	struct store_command c = command_of(&o, 0);
	struct store_run run = run_of(&c, 1);
	struct runobj_opts opts = runobj_opts_full("", "/mcp");
	struct err e = ERR_INIT;
	json_t *v = NULL;

	(void)state;
	assert_int_equal(runobj_build(&run, give, &o, &opts, &v, &e), -1);
	assert_int_equal(e.kind, ERR_STORE);
	assert_null(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_names_are_those_of_the_seed),
		cmocka_unit_test(what_really_happened_stands_beside_the_seeds_word),
		cmocka_unit_test(output_is_read_in_pieces_and_repaired),
		cmocka_unit_test(long_output_loses_its_middle_between_characters),
		cmocka_unit_test(streams_share_what_there_is),
		cmocka_unit_test(the_cap_of_what_is_kept_is_told),
		cmocka_unit_test(what_the_words_leave_out_has_its_url),
		cmocka_unit_test(a_model_gets_long_scripts_shortened),
		cmocka_unit_test(artifacts_have_urls_and_skipped_ones_reasons),
		cmocka_unit_test(a_store_that_fails_fails_the_object),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
