/* SPDX-License-Identifier: MIT */
#include "harness.h"

/* An agent that is root but has no CAP_KILL, and commands of another user. */
static int start_without_kill(void **state)
{
	h.drop_cap_kill = true;
	return agent_start(state);
}

static void the_capability_is_really_missing(void **state)
{
	struct result r = run_sh("sed -n 's/^CapEff:\t//p' /proc/1/status");

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(r.len[0], 17); /* 16 digits and the end of the line */
	assert_int_equal(strtoull(r.out[0], NULL, 16) >> CAP_KILL & 1, 0);
	result_free(&r);
}

static void another_users_tree_is_killed_all_the_same(void **state)
{
	const char *argv[] = {"sh", "-c",
			      "trap '' TERM; (setsid sleep 60 &); sleep 60 & "
			      "while :; do sleep 60; done",
			      NULL};
	struct command_spec s = {.argv = argv,
				 .uid = 65534,
				 .cwd = "/tmp",
				 .timeout_ms = 200,
				 .grace_ms = 100};
	struct result r;

	(void)state;
	if (geteuid() != 0)
		skip();
	r = run_until_killed(s);
	assert_int_equal(r.exit.background, 0);
	result_free(&r);
	r = run_sh("id -u; grep ^Uid /proc/1/status; pgrep -c -x sleep");
	assert_string_equal(r.out[0], "0\nUid:\t0\t0\t0\t0\n0\n");
	result_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_capability_is_really_missing),
		cmocka_unit_test(another_users_tree_is_killed_all_the_same),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, start_without_kill, agent_stop);
}
