/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"

static int run_sh(const char *script, struct proc p, struct proc_result *r, struct err *e)
{
	const char *argv[] = {"sh", "-c", script, NULL};

	p.argv = argv;
	return proc_run(&p, r, e);
}

static void output_and_exit_code_come_back(void **state)
{
	struct proc_result r;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(
		run_sh("echo out; echo err >&2; exit 7", (struct proc){0}, &r, &e), 0);
	assert_int_equal(r.exit_code, 7);
	assert_string_equal(r.out.p, "out\n");
	assert_string_equal(r.err.p, "err\n");
	proc_result_release(&r);
}

static void a_signal_is_no_exit_code(void **state)
{
	struct proc_result r;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(run_sh("kill -TERM $$", (struct proc){0}, &r, &e), 0);
	assert_int_equal(r.exit_code, -1);
	assert_int_equal(r.signal, SIGTERM);
	proc_result_release(&r);
}

static void the_deadline_kills_the_whole_group(void **state)
{
	int held[2];
	struct proc p = {.timeout_ms = 200, .pass_fds = &held[1], .npass_fds = 1};
	struct pollfd end = {.events = POLLIN};
	struct proc_result r;
	struct err e = ERR_INIT;
	char c;

	(void)state;
	assert_int_equal(pipe2(held, O_CLOEXEC), 0);
	assert_int_equal(run_sh("trap '' TERM; sleep 3600 & sleep 3600", p, &r, &e), -1);
	assert_int_equal(e.kind, ERR_TIMEOUT);
	close(held[1]);
	/* Its end is there when nobody has it any more. */
	end.fd = held[0];
	assert_int_equal(poll(&end, 1, 60000), 1);
	assert_int_equal(read(held[0], &c, 1), 0);
	close(held[0]);
}

static void a_stop_kills_the_whole_group(void **state)
{
	struct proc_result r;
	struct err e = ERR_INIT;
	int stop[2];

	(void)state;
	assert_int_equal(pipe2(stop, O_CLOEXEC), 0);
	assert_int_equal(write(stop[1], "x", 1), 1);
	assert_int_equal(
		run_sh("sleep 300 & wait", (struct proc){.stop_fd = stop}, &r, &e), -1);
	assert_int_equal(e.kind, ERR_BUSY);
	close(stop[0]);
	close(stop[1]);
}

static void output_beyond_the_cap_is_dropped_and_does_not_block(void **state)
{
	struct proc p = {.output_max = 1000};
	struct proc_result r;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(run_sh("head -c 1000000 /dev/zero", p, &r, &e), 0);
	assert_int_equal(r.exit_code, 0);
	assert_int_equal(r.out.len, 1000);
	proc_result_release(&r);
}

static void a_child_left_behind_does_not_hold_the_run(void **state)
{
	struct proc_result r;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(run_sh("sleep 3600 & echo $!", (struct proc){0}, &r, &e), 0);
	/* It lives. */
	assert_int_equal(kill((pid_t)strtol(r.out.p, NULL, 10), SIGKILL), 0);
	proc_result_release(&r);
}

static void nothing_is_inherited_but_what_is_passed(void **state)
{
	int other = dup(0), pass[2];
	struct proc p = {.pass_fds = pass, .npass_fds = 2};
	struct proc_result r;
	struct err e = ERR_INIT;

	(void)state;
	/* In an order that a plain dup2 loop would get wrong. */
	pass[0] = dup(1);
	pass[1] = other;
	assert_int_equal(run_sh("cd /proc/self/fd; echo *", p, &r, &e), 0);
	/* the shell itself opens the folder to list it: that is the last number */
	assert_int_equal(strncmp(r.out.p, "0 1 2 3 4", 9), 0);
	assert_true(strlen(r.out.p) <= strlen("0 1 2 3 4 5\n"));
	proc_result_release(&r);
	close(other);
	close(pass[0]);
}

static void the_environment_is_built_from_nothing(void **state)
{
	struct proc_result r;
	struct err e = ERR_INIT;

	(void)state;
	setenv("SECRET_OF_OURS", "x", 1);
	assert_int_equal(
		run_sh("env; cat", (struct proc){.input = "in", .input_len = 2}, &r, &e),
		0);
	assert_null(strstr(r.out.p, "SECRET"));
	assert_non_null(strstr(r.out.p, "PATH="));
	assert_non_null(strstr(r.out.p, "in"));
	proc_result_release(&r);
}

static void an_open_file_serves_as_standard_input(void **state)
{
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC), none = -1;
	struct proc_result r;
	struct err e = ERR_INIT;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(run_sh("cat", (struct proc){.input_fd = &fd}, &r, &e), 0);
	assert_string_equal(r.out.p, "test_proc\n");
	proc_result_release(&r);
	assert_int_equal(close(fd), 0); /* ours stays open */
	assert_int_equal(run_sh("true", (struct proc){.input_fd = &none}, &r, &e), -1);
}

static void a_failure_is_told_with_the_last_line_of_stderr(void **state)
{
	const char *argv[] = {"sh", "-c", "echo first >&2; echo why >&2; exit 3", NULL};
	const char *none[] = {"no-such-program-here", NULL};
	struct err e = ERR_INIT, missing = ERR_INIT;

	(void)state;
	assert_int_equal(proc_run_ok(&(struct proc){.argv = argv}, NULL, &e), -1);
	assert_int_equal(e.kind, ERR_BACKEND);
	assert_string_equal(e.msg, "sh failed with exit code 3: why");
	assert_int_equal(proc_run_ok(&(struct proc){.argv = none}, NULL, &missing), -1);
	assert_int_equal(missing.kind, ERR_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_and_exit_code_come_back),
		cmocka_unit_test(a_signal_is_no_exit_code),
		cmocka_unit_test(the_deadline_kills_the_whole_group),
		cmocka_unit_test(a_stop_kills_the_whole_group),
		cmocka_unit_test(output_beyond_the_cap_is_dropped_and_does_not_block),
		cmocka_unit_test(a_child_left_behind_does_not_hold_the_run),
		cmocka_unit_test(nothing_is_inherited_but_what_is_passed),
		cmocka_unit_test(the_environment_is_built_from_nothing),
		cmocka_unit_test(an_open_file_serves_as_standard_input),
		cmocka_unit_test(a_failure_is_told_with_the_last_line_of_stderr),
	};
	return cmocka_run_group_tests_name("proc", tests, NULL, NULL);
}
