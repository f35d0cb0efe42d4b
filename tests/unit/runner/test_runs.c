/* SPDX-License-Identifier: MIT */
#include "rig.h"

static void a_run_tells_its_whole_story(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_STORE_RUN run = {0};
	AUTO_FREE char *out = NULL;
	AUTO_FREE char *events = NULL;

	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'echo hi; echo $HOME'},"
		"{'argv':['true']}],'options':{'as_user':'root'}}");
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
	assert_int_equal(STORE_COMMAND_COMPLETED, run.commands[1].status);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_run_tells_its_whole_story, rig_setup,
						rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
