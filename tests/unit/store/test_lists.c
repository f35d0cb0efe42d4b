/* SPDX-License-Identifier: MIT */
#include "tests/unit/store/rig.h"

static void runs_are_listed_in_pages_newest_first(void **state)
{
	struct rig *g = *state;
	AUTO_STORE_RUNS a = {0}, b = {0}, c = {0};

	rig_run_of(g, "r1", "x", 10);
	rig_run_of(g, "r2", "x", 20);
	rig_run_of(g, "r3", "y", 20); /* at the same moment */
	rig_commit(g);
	OK(store_read_runs_after(g->r, T, NULL, 2, &a, &err));
	assert_int_equal(a.n, 2);
	assert_string_equal(a.v[0].run_id, "r3");
	assert_string_equal(a.v[1].run_id, "r2");
	OK(store_read_runs_after(g->r, T, "r2", 2, &b, &err));
	assert_int_equal(b.n, 1);
	assert_string_equal(b.v[0].run_id, "r1");
	OK(store_read_runs_after(g->r, T, "r1", 2, &c, &err));
	assert_int_equal(c.n, 0);
	FAILS(ERR_NOT_FOUND, store_read_runs_after(g->r, "other", "r1", 2, &c, &err));
	FAILS(ERR_NOT_FOUND, store_read_runs_after(g->r, T, "gone", 2, &c, &err));
}

static void put_sandbox(struct rig *g, const char *identifier, int64_t used)
{
	const struct store_sandbox s = {.tenant = T,
					.identifier = identifier,
					.name = "n",
					.backend = "local",
					.state = STORE_SANDBOX_READY,
					.expires_at = 1,
					.last_used_at = used,
					.ttl_s = 1};

	OK(store_sandbox_put(g->s, &s, &err));
}

static void sandboxes_are_listed_in_pages_by_identifier(void **state)
{
	struct rig *g = *state;
	AUTO_STORE_SANDBOXES a = {0}, b = {0};

	put_sandbox(g, "b", 1);
	put_sandbox(g, "a", 2);
	put_sandbox(g, "c", 3);
	rig_commit(g);
	OK(store_read_sandboxes_after(g->r, T, NULL, 2, &a, &err));
	assert_int_equal(a.n, 2);
	assert_string_equal(a.v[0].identifier, "a");
	OK(store_read_sandboxes_after(g->r, T, "b", 2, &b, &err));
	assert_int_equal(b.n, 1);
	assert_string_equal(b.v[0].identifier, "c");
}

static int words(struct rig *g, enum store_word what, const char *prefix, size_t limit,
		 struct store_words *ret)
{
	const struct store_words_query q = {
		.tenant = T, .prefix = prefix, .what = what, .limit = limit};

	return store_read_words(g->r, &q, ret, &err);
}

static void words_begin_with_what_was_typed_and_the_latest_come_first(void **state)
{
	struct rig *g = *state;
	AUTO_STORE_WORDS a = {0}, b = {0}, c = {0};

	rig_run_of(g, "run_1", "chat-1", 10);
	rig_run_of(g, "run_2", "chat-2", 20);
	rig_run_of(g, "run_3", "chat-1", 30);
	put_sandbox(g, "chat-3", 25);
	put_sandbox(g, "50%", 1);
	rig_commit(g);
	OK(words(g, STORE_WORD_IDENTIFIER, "chat", 2, &a));
	assert_int_equal(a.n, 2);
	assert_true(a.more);
	assert_string_equal(a.v[0], "chat-1");
	assert_string_equal(a.v[1], "chat-3");
	OK(words(g, STORE_WORD_RUN_ID, "run_", 5, &b));
	assert_int_equal(b.n, 3);
	assert_false(b.more);
	assert_string_equal(b.v[0], "run_3");
	OK(words(g, STORE_WORD_IDENTIFIER, "%", 5, &c));
	assert_int_equal(c.n, 0);
}

static void input_and_background_read_back(void **state)
{
	struct rig *g = *state;
	struct store_command c = {.shell = "cat",
				  .stdin_text = "in\n",
				  .background = true,
				  .exit_code = -1};
	const struct store_run row = {.run_id = "r",
				      .tenant = T,
				      .identifier = "x",
				      .background_of = "before",
				      .created_at = 1,
				      .ttl_s = 1,
				      .commands = &c,
				      .ncommands = 1};
	AUTO_STORE_RUN run = {0};
	bool existed;

	OK(store_run_insert(g->s, &row, &existed, &err));
	rig_commit(g);
	OK(store_read_run(g->r, T, "r", &run, &err));
	assert_string_equal(run.background_of, "before");
	assert_string_equal(run.commands[0].stdin_text, "in\n");
	assert_true(run.commands[0].background);
	assert_int_equal(run.commands[0].timeout_ms, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(runs_are_listed_in_pages_newest_first),
		RIG_TEST(sandboxes_are_listed_in_pages_by_identifier),
		RIG_TEST(words_begin_with_what_was_typed_and_the_latest_come_first),
		RIG_TEST(input_and_background_read_back),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
