/* SPDX-License-Identifier: MIT */
#include "fake.h"

#include "mcp/events.h"

static void output_has_the_seeds_members(void **state)
{
	struct store_event ev = {
		.seq = 7,
		.run_id = "run_0123",
		.type = STORE_EVENT_COMMAND_STDERR,
		.command_index = 2,
		.truncated = true,
		.data = "a\n\"b\"\xff",
		.n = 6,
	};
	AUTO_BUF b = BUF_INIT(1000);

	(void)state;
	event_add_frame(&b, &ev);
	assert_string_equal(b.p, "id: 7\nevent: command_stderr\n"
				 "data: {\"run_id\":\"run_0123\",\"index\":2,\"chunk\":"
				 "\"a\\n\\\"b\\\"\xef\xbf\xbd\",\"truncated\":true}\n\n");
}

static void an_empty_chunk_may_end_a_stream(void **state)
{
	struct store_event ev = {
		.seq = 1,
		.run_id = "run_0123",
		.type = STORE_EVENT_COMMAND_STDOUT,
		.truncated = true,
		.data = "",
	};
	AUTO_BUF b = BUF_INIT(1000);

	(void)state;
	event_add_data(&b, &ev);
	assert_non_null(strstr(b.p, "\"chunk\":\"\",\"truncated\":true}"));
}

static void other_events_pass_as_they_are_on_one_line(void **state)
{
	static const char data[] = "{\"run_id\": \"run_0123\",\r\n \"ended_at\": null}\n";
	struct store_event ev = {
		.seq = 8,
		.run_id = "run_0123",
		.type = STORE_EVENT_RUN_FINISHED,
		.command_index = -1,
		.data = data,
		.n = sizeof(data) - 1,
	};
	AUTO_BUF b = BUF_INIT(1000);

	(void)state;
	event_add_frame(&b, &ev);
	assert_string_equal(b.p, "id: 8\nevent: run_finished\ndata: {\"run_id\": "
				 "\"run_0123\",   \"ended_at\": null} \n\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_has_the_seeds_members),
		cmocka_unit_test(an_empty_chunk_may_end_a_stream),
		cmocka_unit_test(other_events_pass_as_they_are_on_one_line),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
