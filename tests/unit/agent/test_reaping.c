/* SPDX-License-Identifier: MIT */
/*
 * When a killed command has ended. Here the test says when the agent sees the death
 * of a child; in a real agent that is a race between a death and a look for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/command.h"

static bool is_dying; /* who is dead already dies a moment after the look */

pid_t wait4(pid_t pid, int *status, int options, struct rusage *ru)
{
	return is_dying ? 0 : (pid_t)syscall(SYS_wait4, pid, status, options, ru);
}

static pid_t make_zombie(void)
{
	siginfo_t seen;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_true(pid > 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &seen, WEXITED | WNOWAIT), 0);
	return pid;
}

/* A zombie has its place in the limit of processes until it is reaped. */
static void a_killed_command_lasts_as_long_as_its_zombies(void **state)
{
	struct commands all = {.n = 1, .oom_fd = -1};
	struct command c = {.state = AP_RUNNING,
			    .is_reaped = true, /* its leader; a child of it is left */
			    .is_killing = true,
			    .stdin_watch = {.fd = -1},
			    .tree = {.leader = make_zombie(), .mark = 1},
			    .all = &all};

	(void)state;
	for (int i = 0; i < AP_STREAM_COUNT; i++)
		c.streams[i].watch.fd = -1;
	all.v[0] = &c;
	is_dying = true;
	commands_reap(&all);
	assert_int_equal(c.state, AP_RUNNING);
	is_dying = false;
	commands_reap(&all);
	assert_int_equal(c.state, AP_ENDED);
	assert_int_equal(waitpid(c.tree.leader, NULL, WNOHANG), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_killed_command_lasts_as_long_as_its_zombies),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
