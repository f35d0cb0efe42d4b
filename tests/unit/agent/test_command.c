/* SPDX-License-Identifier: MIT */
#include "harness.h"

static void assert_exited(const struct result *r, uint32_t code)
{
	assert_int_equal(r->exit.how, AP_EXITED);
	assert_int_equal(r->exit.value, code);
}

static void exit_codes_and_output_arrive(void **state)
{
	struct result r = run_sh("echo out; echo err >&2; exit 7");

	(void)state;
	assert_true(r.is_started);
	assert_exited(&r, 7);
	assert_string_equal(r.out[0], "out\n");
	assert_string_equal(r.out[1], "err\n");
	assert_int_equal(r.exit.flags, 0);
	assert_int_equal(r.exit.background, 0);
	result_free(&r);
}

static void a_signal_is_not_an_exit_code(void **state)
{
	struct result r = run_sh("kill -9 $$");

	(void)state;
	assert_int_equal(r.exit.how, AP_SIGNALED);
	assert_int_equal(r.exit.value, SIGKILL);
	result_free(&r);
	r = run_sh("exit 137");
	assert_exited(&r, 137);
	result_free(&r);
}

static void each_stage_of_a_failed_start_is_named(void **state)
{
	const char *no_file[] = {"/no/such/program", NULL};
	const char *no_name[] = {"no-such-program-at-all", NULL};
	const char *folder[] = {"/tmp", NULL};
	const char *yes[] = {"true", NULL};
	const struct {
		struct command_spec spec;
		enum ap_stage stage;
		int error;
	} cases[] = {
		{{.argv = no_file}, AP_STAGE_EXEC, ENOENT},
		{{.argv = no_name}, AP_STAGE_EXEC, ENOENT},
		{{.argv = folder}, AP_STAGE_EXEC, EACCES},
		{{.argv = yes, .cwd = "/no/such"}, AP_STAGE_CWD, ENOENT},
		{{.argv = yes, .cwd = "/etc/passwd"}, AP_STAGE_CWD, ENOTDIR},
		{{.argv = yes, .cwd = "/root/locked", .uid = 65534},
		 AP_STAGE_CWD,
		 EACCES},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct result r;

		if (cases[i].spec.uid == 65534 && (geteuid() || chmod("/root", 0700)))
			continue;
		r = run(&cases[i].spec);
		assert_int_equal(r.exit.how, AP_SPAWN_FAILED);
		assert_int_equal(r.exit.stage, cases[i].stage);
		assert_int_equal(r.exit.value, cases[i].error);
		assert_false(r.is_started);
		result_free(&r);
	}
}

static void an_argument_that_is_too_long_says_e2big(void **state)
{
	size_t n = 200 * 1024;
	char *big = malloc(n + 1);
	const char *argv[] = {"echo", big, NULL};
	struct command_spec s = {.argv = argv};
	struct result r;

	(void)state;
	memset(big, 'x', n);
	big[n] = '\0';
	r = run(&s);
	assert_int_equal(r.exit.how, AP_SPAWN_FAILED);
	assert_int_equal(r.exit.stage, AP_STAGE_EXEC);
	assert_int_equal(r.exit.value, E2BIG);
	result_free(&r);
	free(big);
}

static void the_environment_is_real_and_exact(void **state)
{
	const char *argv[] = {"env", "-0", NULL};
	const char *env[] = {"A=it's \"quoted\"\nand goes on", "EMPTY=", "HOME=/else",
			     NULL};
	struct command_spec s = {.argv = argv, .env = env};
	struct result r = run(&s);
	static const char want[] = "A=it's \"quoted\"\nand goes on\0EMPTY=\0HOME=/else\0";

	(void)state;
	assert_exited(&r, 0);
	assert_memory_equal(r.out[0], want, sizeof(want) - 1);
	assert_non_null(memmem(r.out[0], r.len[0], "\0OF_IMAGE=its own\0", 18));
	assert_null(memmem(r.out[0], r.len[0], "this", 4));
	assert_non_null(memmem(r.out[0], r.len[0], "LANG=C.UTF-8", 13));
	assert_non_null(memmem(r.out[0], r.len[0], "USER=root", 10));
	assert_non_null(memmem(r.out[0], r.len[0], "\0PATH=/opt/image/bin:", 21));
	assert_null(memmem(r.out[0], r.len[0], "HOME=/root", 10));
	result_free(&r);
}

static void a_command_starts_clean(void **state)
{
	struct result r = run_sh("ls /proc/self/fd | tr '\\n' ' '; umask; "
				 "readlink /proc/self/fd/0; cat; "
				 "grep -E 'Sig(Blk|Ign)' /proc/self/status; pwd;"
				 "test $(ps -o sid= -p $$) = $$ && echo session");

	(void)state;
	assert_exited(&r, 0);
	assert_string_equal(r.out[0], "0 1 2 3 0022\n/dev/null\n"
				      "SigBlk:\t0000000000000000\n"
				      "SigIgn:\t0000000000000000\n/\nsession\n");
	result_free(&r);
}

static int oom_score_of(pid_t pid)
{
	char text[64];
	FILE *f;

	snprintf(text, sizeof(text), "/proc/%d/oom_score_adj", (int)pid);
	f = fopen(text, "re");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	return (int)strtol(text, NULL, 10);
}

static void for_memory_a_command_is_killed_before_the_agent(void **state)
{
	int own = oom_score_of(getpid()); /* what the agent was started with */
	struct result r = run_sh("cat /proc/self/oom_score_adj");

	(void)state;
	assert_int_equal(strtol(r.out[0], NULL, 10), own > 500 ? own : 500);
	assert_int_equal(oom_score_of(h.pid), own);
	result_free(&r);
}

static void another_user_has_its_groups_and_nothing_more(void **state)
{
	const char *argv[] = {"sh", "-c", "id -u; id -g; grep ^CapEff /proc/self/status",
			      NULL};
	struct command_spec s = {.argv = argv, .uid = 65534, .cwd = "/tmp"};
	struct result r;

	(void)state;
	if (geteuid() != 0)
		skip();
	r = run(&s);
	assert_exited(&r, 0);
	assert_string_equal(r.out[0], "65534\n65534\nCapEff:\t0000000000000000\n");
	result_free(&r);
}

static void a_user_that_the_image_does_not_name_is_a_number(void **state)
{
	const char *argv[] = {"sh", "-c", "id -u; id -g; id -G; echo $HOME $USER", NULL};
	struct command_spec s = {.argv = argv, .uid = 31337, .cwd = "/tmp"};
	struct result r;

	(void)state;
	if (geteuid() != 0)
		skip();
	r = run(&s);
	assert_exited(&r, 0);
	assert_string_equal(r.out[0], "31337\n31337\n31337\n/workspace sandbox\n");
	result_free(&r);
}

static void a_timeout_is_not_early_by_a_millisecond(void **state)
{
	const char *argv[] = {"sleep", "3600", NULL};
	struct command_spec s = {.argv = argv, .timeout_ms = 123, .grace_ms = 30000};
	struct result r = run(&s);

	(void)state;
	assert_int_equal(r.exit.how, AP_SIGNALED);
	assert_int_equal(r.exit.value, SIGTERM);
	assert_int_equal(r.exit.flags, AP_EXIT_TIMED_OUT);
	assert_true(r.exit.duration_us >= 123000);
	result_free(&r);
}

/* The pid namespace gives the next process that number, if the kernel lets it. */
static void let_the_next_pid_be(long pid)
{
	char script[128];
	struct result r;

	snprintf(script, sizeof(script), "echo %ld >/proc/sys/kernel/ns_last_pid",
		 pid - 1);
	r = run_sh(script);
	result_free(&r);
}

static void the_limit_of_one_that_ended_is_not_that_of_the_next_with_its_pid(void **state)
{
	const char *quick[] = {"sh", "-c", "echo $$", NULL};
	const char *next[] = {"sh", "-c", "echo $$; sleep 1.5", NULL};
	struct result first =
		run(&(struct command_spec){.argv = quick, .timeout_ms = 1000});
	struct result second;

	(void)state;
	if (first.exit.flags & AP_EXIT_TIMED_OUT)
		skip(); /* a very slow machine */
	assert_exited(&first, 0);
	let_the_next_pid_be(strtol(first.out[0], NULL, 10));
	second = run(&(struct command_spec){.argv = next});
	if (strcmp(first.out[0], second.out[0]) != 0)
		skip(); /* no such file, or not ours to write */
	assert_exited(&second, 0);
	result_free(&first);
	result_free(&second);
}

static void who_ignores_term_is_killed_after_the_grace(void **state)
{
	const char *argv[] = {"sh", "-c",
			      "trap '' TERM; echo up; while :; do sleep 9; done", NULL};
	struct command_spec s = {.argv = argv, .timeout_ms = 200, .grace_ms = 200};
	struct result r = run_until_killed(s);

	(void)state;
	assert_int_equal(r.exit.flags, AP_EXIT_TIMED_OUT);
	assert_int_equal(r.exit.background, 0);
	assert_string_equal(r.out[0], "up\n");
	result_free(&r);
}

/* So many processes named so live in the agent's pid namespace, soon. */
static void await_processes(const char *name, int n)
{
	char script[128], want[16];

	snprintf(script, sizeof(script), "pgrep -c -x %s", name);
	snprintf(want, sizeof(want), "%d\n", n);
	await_output(script, want);
}

/* A program under a name of its own, so that it can be counted. */
static void make_program(char *path, size_t n, const char *name)
{
	char script[256];
	struct result r;

	snprintf(path, n, "%s/%s", h.dir, name);
	snprintf(script, sizeof(script), "cp $(command -v sleep) %s", path);
	r = run_sh(script);
	assert_exited(&r, 0);
	result_free(&r);
}

static void cancel_reaches_who_fled_by_setsid_and_double_fork(void **state)
{
	char path[128], script[512];
	const char *argv[] = {"sh", "-c", script, NULL};
	struct command_spec s = {.argv = argv};
	struct result r = {.id = {.index = 0}};
	struct ap_msg m;

	(void)state;
	make_program(path, sizeof(path), "escapee");
	snprintf(script, sizeof(script),
		 "(setsid sh -c '(trap \"\" TERM; exec %s 60) & exit 0' & exit 0); "
		 "(setsid %s 60 &); sleep 0.2; echo ready; %s 60",
		 path, path, path);
	r.id = next_id();
	send_start(&s, r.id);
	while (r.len[0] < 6) {
		assert_true(client_next(&m, PATIENCE_MS));
		result_take(&r, &m);
	}
	send_cancel(&r.id, 100);
	await_exit(&r);
	assert_int_equal(r.exit.flags & AP_EXIT_CANCELED, AP_EXIT_CANCELED);
	assert_int_equal(r.exit.background, 0);
	forget(&r.id);
	result_free(&r);
	{
		struct result none = run_sh("pgrep -c -x escapee");

		assert_string_equal(none.out[0], "0\n");
		result_free(&none);
	}
	unlink(path);
}

static void what_is_left_in_the_background_lives_on(void **state)
{
	char path[128], script[256];
	struct result r;

	(void)state;
	make_program(path, sizeof(path), "daemon-x");
	snprintf(script, sizeof(script), "%s 3600 >/dev/null 2>&1 & echo done", path);
	r = run_sh(script);
	assert_exited(&r, 0);
	assert_int_equal(r.exit.background, 1);
	assert_int_equal(r.exit.flags, 0); /* it holds no pipe */
	result_free(&r);
	snprintf(script, sizeof(script), "%s 3600 & echo done", path);
	r = run_sh(script);
	assert_exited(&r, 0);
	assert_string_equal(r.out[0], "done\n");
	assert_int_equal(r.exit.flags, AP_EXIT_OUTPUT_OPEN);
	result_free(&r);
	await_processes("daemon-x", 2);
	await_output("pkill -x daemon-x; ps -eo stat | grep -c Z", "0\n");
	unlink(path);
}

/* It writes when the run is over and nobody reads any more. */
static void a_background_writer_is_not_killed_by_a_closed_pipe(void **state)
{
	char script[512], alive[128];
	struct result r;

	(void)state;
	snprintf(script, sizeof(script),
		 "cd %s; (until [ -e go ]; do sleep 0.02; done; echo x; echo x; "
		 "echo alive >writer) & echo started",
		 h.dir);
	r = run_sh(script);
	assert_exited(&r, 0);
	assert_int_not_equal(r.exit.background, 0);
	result_free(&r);
	touch_in_dir("go");
	snprintf(alive, sizeof(alive), "cat %s/writer 2>/dev/null", h.dir);
	await_output(alive, "alive\n");
	unlink_in_dir("go");
	unlink_in_dir("writer");
}

/* A user nobody else runs as: the limit of the harness counts all of a uid's. */
enum { GAMES = 5 };

static void a_fork_bomb_is_ended_by_its_timeout(void **state)
{
	const char *argv[] = {"bash", "-c",
			      "ulimit -u 200 && trap '' TERM && "
			      "b() { b | b & } 2>/dev/null; b 2>/dev/null; sleep 30",
			      NULL};
	struct command_spec s = {.argv = argv,
				 .timeout_ms = 500,
				 .grace_ms = 100,
				 .uid = GAMES,
				 .cwd = "/tmp"};
	struct result r;

	(void)state;
	if (geteuid() != 0)
		skip();
	r = run(&s);
	assert_int_equal(r.exit.flags & AP_EXIT_TIMED_OUT, AP_EXIT_TIMED_OUT);
	assert_int_equal(r.exit.background, 0);
	result_free(&r);
	r = run_sh("ps -u games -o pid= | wc -l");
	assert_string_equal(r.out[0], "0\n");
	result_free(&r);
}

static void output_beyond_the_cap_is_counted_not_kept(void **state)
{
	const char *argv[] = {"sh", "-c", "head -c 300000000 /dev/zero; echo e >&2",
			      NULL};
	struct command_spec s = {.argv = argv, .cap = 100000};
	struct result r = run(&s);

	(void)state;
	assert_exited(&r, 0);
	assert_int_equal(r.exit.stdout_total, 300000000);
	assert_int_equal(r.len[0], 100000);
	assert_int_equal(r.exit.flags, AP_EXIT_STDOUT_TRUNCATED);
	print_message("drained %.0f MB/s\n", 300e6 / (double)r.exit.duration_us);
	result_free(&r);
	s.cap = UINT64_MAX;
	r = run(&s);
	assert_int_equal(r.len[0], 0);
	assert_int_equal(r.exit.stderr_total, 2);
	result_free(&r);
}

static void kept_output_is_whole_beyond_the_ring(void **state)
{
	const char *argv[] = {"sh", "-c", "head -c 50000000 /dev/zero | tr '\\0' 'k'",
			      NULL};
	struct command_spec s = {.argv = argv, .cap = 1 << 30};
	struct result r = run(&s);

	(void)state;
	assert_exited(&r, 0);
	assert_int_equal(r.len[0], 50000000);
	for (size_t i = 0; i < r.len[0]; i++)
		assert_true(r.out[0][i] == 'k');
	assert_int_equal(r.exit.flags, 0);
	print_message("kept %.0f MB/s\n", 50e6 / (double)r.took_us);
	result_free(&r);
}

static void binary_output_is_left_alone(void **state)
{
	struct result r = run_sh("printf '\\000\\377\\r\\n\\000'");

	(void)state;
	assert_int_equal(r.len[0], 5);
	assert_memory_equal(r.out[0], "\0\xff\r\n\0", 5);
	result_free(&r);
}

static void a_script_of_megabytes_runs(void **state)
{
	static const char head[] = "echo first $0\n", tail[] = "\necho last\n\n";
	size_t n = 3 << 20;
	char *script = malloc(n);
	const char *argv[] = {"bash", "-l", "script", "arg", NULL};
	const char *direct[] = {"bash", "script", NULL};
	struct command_spec s = {.argv = direct, .script = script, .script_n = n};
	struct result r;

	(void)state;
	memset(script, '#', n);
	memcpy(script, head, sizeof head - 1);
	memcpy(script + n - (sizeof tail - 1), tail, sizeof tail - 1);
	r = run(&s);
	assert_exited(&r, 0);
	assert_string_equal(r.out[0], "first /dev/fd/63\nlast\n");
	result_free(&r);
	if (geteuid() == 0) {
		s.uid = 65534;
		s.cwd = "/tmp";
		r = run(&s);
		assert_exited(&r, 0);
		result_free(&r);
	}
	free(script);
	assert_non_null(argv[0]);
}

static void stdin_is_fed_with_credit(void **state)
{
	const char *argv[] = {"sh", "-c", "wc -c; echo end", NULL};
	struct command_spec s = {.argv = argv, .has_stdin = true};
	struct result r = {.id = next_id()};
	static uint8_t data[50000];
	struct ap_msg m;
	uint64_t sent = 0, acked = 0;

	(void)state;
	send_start(&s, r.id);
	while (sent < 1000000) {
		struct ap_msg in = {.type = AP_STDIN,
				    .u.stdin_data = {r.id, sent, {data, sizeof(data)}}};

		while (sent + sizeof(data) > acked + AP_STDIN_WINDOW) {
			assert_true(client_next(&m, PATIENCE_MS));
			if (m.type == AP_STDIN_ACK)
				acked = m.u.stdin_ack.offset;
		}
		client_send(&in);
		client_send(&in); /* a repetition is harmless */
		sent += sizeof(data);
	}
	m = (struct ap_msg){.type = AP_STDIN_EOF,
			    .u.stdin_data = {.id = r.id, .offset = sent}};
	client_send(&m);
	await_exit(&r);
	assert_string_equal(r.out[0], "1000000\nend\n");
	forget(&r.id);
	result_free(&r);
}

static void resource_use_is_told(void **state)
{
	struct result r = run_sh("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");

	(void)state;
	assert_exited(&r, 0);
	assert_true(r.exit.user_us + r.exit.sys_us > 1000);
	assert_true(r.exit.max_rss_kib > 100);
	assert_true(r.exit.duration_us >= r.exit.user_us / 2);
	result_free(&r);
}

static void many_commands_at_once_all_end(void **state)
{
	const char *argv[] = {"sh", "-c", "echo $$; sleep 0.1; echo x >&2", NULL};
	struct command_spec s = {.argv = argv};
	struct result r[64];
	struct ap_msg m;
	int ended = 0;

	(void)state;
	for (int i = 0; i < 64; i++) {
		r[i] = (struct result){.id = next_id()};
		send_start(&s, r[i].id);
	}
	while (ended < 64) {
		assert_true(client_next(&m, PATIENCE_MS));
		ended += m.type == AP_EXIT;
		for (int i = 0; i < 64; i++)
			result_take(&r[i], &m);
	}
	for (int i = 0; i < 64; i++) {
		assert_exited(&r[i], 0);
		assert_string_equal(r[i].out[1], "x\n");
		forget(&r[i].id);
		result_free(&r[i]);
	}
}

static void nothing_is_left_of_all_that(void **state)
{
	(void)state;
	/* 0 zombies; stdio, listener, epoll, timer, signals, three of null, connection,
	 * the score for memory, the list of children and the two pipes of this command.
	 */
	await_output("ps -eo stat= | grep -c Z; ls /proc/1/fd | wc -l", "0\n15\n");
}

/* As an image's ENV has it for the first process. */
static int start_in_an_image(void **state)
{
	if (setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1, not this", 1) < 0 ||
	    setenv("PATH", "/opt/image/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1) < 0 ||
	    setenv("OF_IMAGE", "its own", 1) < 0 || setenv("A", "not this", 1) < 0 ||
	    setenv("USER", "nor this", 1) < 0)
		return -1;
	return agent_start(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exit_codes_and_output_arrive),
		cmocka_unit_test(a_signal_is_not_an_exit_code),
		cmocka_unit_test(each_stage_of_a_failed_start_is_named),
		cmocka_unit_test(an_argument_that_is_too_long_says_e2big),
		cmocka_unit_test(the_environment_is_real_and_exact),
		cmocka_unit_test(a_command_starts_clean),
		cmocka_unit_test(for_memory_a_command_is_killed_before_the_agent),
		cmocka_unit_test(another_user_has_its_groups_and_nothing_more),
		cmocka_unit_test(a_user_that_the_image_does_not_name_is_a_number),
		cmocka_unit_test(a_timeout_is_not_early_by_a_millisecond),
		cmocka_unit_test(
			the_limit_of_one_that_ended_is_not_that_of_the_next_with_its_pid),
		cmocka_unit_test(who_ignores_term_is_killed_after_the_grace),
		cmocka_unit_test(cancel_reaches_who_fled_by_setsid_and_double_fork),
		cmocka_unit_test(what_is_left_in_the_background_lives_on),
		cmocka_unit_test(a_background_writer_is_not_killed_by_a_closed_pipe),
		cmocka_unit_test(a_fork_bomb_is_ended_by_its_timeout),
		cmocka_unit_test(output_beyond_the_cap_is_counted_not_kept),
		cmocka_unit_test(kept_output_is_whole_beyond_the_ring),
		cmocka_unit_test(binary_output_is_left_alone),
		cmocka_unit_test(a_script_of_megabytes_runs),
		cmocka_unit_test(stdin_is_fed_with_credit),
		cmocka_unit_test(resource_use_is_told),
		cmocka_unit_test(many_commands_at_once_all_end),
		cmocka_unit_test(nothing_is_left_of_all_that),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, start_in_an_image, agent_stop);
}
