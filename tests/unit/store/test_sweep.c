/* SPDX-License-Identifier: MIT */
#include "tests/unit/store/rig.h"

enum { CHUNK = 256 * 1024 };

static void ended_run(struct rig *g, const char *id, int64_t at)
{
	struct store_artifact a = {.path = "a", .size = 1};

	rig_run_of(g, id, "chat", at);
	for (int i = 0; i < 4; i++)
		rig_output(g, id, i, "x", 1);
	OK(store_artifacts_add(g->s, id, NULL, &a, 1, &err));
	OK(store_run_finish(g->s, id, STORE_RUN_COMPLETED, at + 1, NULL, &err));
}

/* One step; removes what is listed and adds the ids to `gone`. */
static bool sweep_step(struct rig *g, const struct store_sweep_opts *o, struct buf *gone)
{
	AUTO_STORE_RUNS l = {0};
	bool more = false;

	OK(store_sweep(g->s, o, &l, &more, &err));
	for (size_t i = 0; i < l.n; i++) {
		assert_string_equal(l.v[i].tenant, T);
		assert_string_equal(l.v[i].identifier, "chat");
		buf_printf(gone, "%s ", l.v[i].run_id);
		OK(store_run_remove(g->s, l.v[i].run_id, &err));
	}
	rig_commit(g);
	return more;
}

static void the_newest_runs_stay_and_the_rest_goes_with_all_rows(void **state)
{
	struct rig *g = *state;
	struct store_sweep_opts o = {.now = 1000, .max_runs = 2};
	AUTO_BUF gone = BUF_INIT(100);

	ended_run(g, "r1", 1);
	ended_run(g, "r2", 2);
	rig_run_of(g, "going", "chat", 0); /* the oldest, but not ended */
	ended_run(g, "r3", 3);
	rig_commit(g);
	while (sweep_step(g, &o, &gone))
		;
	assert_string_equal(gone.p, "r1 r2 ");
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM runs"), 2);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM events"), 4);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM commands"), 4);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM artifacts"), 1);
}

static void files_that_later_runs_share_stay_with_the_last_of_them(void **state)
{
	struct rig *g = *state;
	struct store_sweep_opts o = {.now = 1000, .max_runs = 2};
	AUTO_BUF gone = BUF_INIT(100);
	struct store_artifact shared = {.path = "shared", .size = 2};
	struct store_artifact own = {.path = "a", .in_base = STORE_BASE_OTHER};
	AUTO_STORE_RUN run = {0};

	ended_run(g, "base", 1);
	OK(store_artifacts_add(g->s, "base", NULL, &shared, 1, &err));
	for (int i = 2; i < 4; i++) {
		char id[] = {'r', (char)('0' + i), '\0'};

		ended_run(g, id, i);
		OK(store_artifacts_add(g->s, id, "base", &own, 1, &err));
	}
	rig_commit(g);
	while (sweep_step(g, &o, &gone))
		;
	assert_string_equal(gone.p, "base ");
	assert_false(sweep_step(g, &o, &gone)); /* nor is it found again */
	assert_string_equal(gone.p, "base ");
	FAILS(ERR_NOT_FOUND, store_read_run(g->r, T, "base", &run, &err));
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM v_runs"), 2);
	assert_int_equal(
		rig_sql(g, "SELECT count(*) FROM commands WHERE run_id = 'base'"), 0);
	OK(store_read_run(g->r, T, "r3", &run, &err));
	assert_int_equal(run.nartifacts, 2);
	o.max_runs = 1;
	while (sweep_step(g, &o, &gone))
		;
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM runs"), 2);
	o = (struct store_sweep_opts){.now = 1000, .max_age_ms = 1};
	while (sweep_step(g, &o, &gone))
		;
	assert_string_equal(gone.p, "base r2 r3 ");
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM runs"), 0);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM artifacts"), 0);
}

static void old_runs_go_by_age(void **state)
{
	struct rig *g = *state;
	struct store_sweep_opts o = {.now = 100, .max_age_ms = 50};
	AUTO_BUF gone = BUF_INIT(100);

	ended_run(g, "old", 40);
	ended_run(g, "young", 60);
	rig_commit(g);
	while (sweep_step(g, &o, &gone))
		;
	assert_string_equal(gone.p, "old ");
}

static void a_long_log_goes_in_steps_and_is_hidden_meanwhile(void **state)
{
	struct rig *g = *state;
	struct store_sweep_opts o = {.now = 100, .max_age_ms = 50, .budget_rows = 3};
	AUTO_BUF gone = BUF_INIT(100);
	AUTO_STORE_RUN run = {0};
	enum store_run_state st;

	ended_run(g, "r", 1);
	rig_commit(g);
	assert_true(sweep_step(g, &o, &gone));
	assert_string_equal(gone.p, "");
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM events"), 1);
	FAILS(ERR_NOT_FOUND, store_read_run(g->r, T, "r", &run, &err));
	FAILS(ERR_NOT_FOUND, store_read_run_state(g->r, T, "r", &st, &err));
	assert_false(sweep_step(g, &o, &gone));
	assert_string_equal(gone.p, "r ");
}

static void a_run_whose_files_were_not_removed_is_listed_again(void **state)
{
	struct rig *g = *state;
	struct store_sweep_opts o = {.now = 100, .max_age_ms = 50};
	bool more;

	ended_run(g, "r", 1);
	for (int i = 0; i < 2; i++) {
		AUTO_STORE_RUNS l = {0};

		OK(store_sweep(g->s, &o, &l, &more, &err));
		assert_int_equal(l.n, 1);
		rig_commit(g);
		rig_close(g); /* as after a crash */
		rig_open(g);
	}
	/* And a run that nobody doomed is not removed by mistake. */
	ended_run(g, "kept", 90);
	OK(store_run_remove(g->s, "kept", &err));
	rig_commit(g);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM runs"), 2);
}

static void event_numbers_are_never_used_again(void **state)
{
	struct rig *g = *state;
	struct store_sweep_opts o = {.now = 100, .max_age_ms = 50};
	AUTO_BUF gone = BUF_INIT(100);
	int64_t newest = 0;

	ended_run(g, "r", 1);
	rig_commit(g);
	while (sweep_step(g, &o, &gone))
		;
	OK(store_read_newest_event_id(g->r, &newest, &err));
	assert_int_equal(newest, 4);
	rig_run(g, "next");
	rig_output(g, "next", 0, "x", 1);
	assert_int_equal(rig_commit(g).newest_event_id, 5);
}

static void the_file_gives_pages_back(void **state)
{
	struct rig *g = *state;
	struct store_sweep_opts o = {.now = 100, .max_age_ms = 50};
	AUTO_BUF gone = BUF_INIT(100);
	AUTO_FREE char *big = xcalloc(1, (size_t)1 << 20);

	rig_run_of(g, "r", "chat", 1);
	for (int i = 0; i < 16; i++)
		rig_output(g, "r", (int64_t)i << 20, big, 1 << 20);
	OK(store_run_finish(g->s, "r", STORE_RUN_COMPLETED, 2, NULL, &err));
	rig_commit(g);
	int64_t before = rig_sql(g, "PRAGMA page_count");
	while (sweep_step(g, &o, &gone))
		;
	assert_true(rig_sql(g, "PRAGMA page_count") < before / 2);
}

static void the_audit_is_bounded(void **state)
{
	struct rig *g = *state;
	struct store_sweep_opts o = {.now = 100};
	AUTO_BUF gone = BUF_INIT(100);

	rig_sql(g,
		"WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n"
		" WHERE i < 100010) INSERT INTO audit(at, tenant, actor, action, subject)"
		" SELECT i, 'default', 'a', 'b', 'c' FROM n");
	sweep_step(g, &o, &gone);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM audit"), 100000);
}

/* Commits `mb` megabytes of output; the longest the log was. */
static int64_t write_much(struct rig *g, int mb)
{
	AUTO_FREE char *data = xcalloc(1, CHUNK);
	int64_t max = 0, stored = 0;

	rig_run(g, "r");
	for (int i = 0; i < 4 * mb; i++) {
		struct store_stats st;

		stored = rig_output(g, "r", stored, data, CHUNK);
		rig_commit(g);
		store_stats(g->s, &st);
		max = st.wal_bytes > max ? st.wal_bytes : max;
	}
	return max;
}

static void the_log_stays_short_while_a_reader_sits_idle(void **state)
{
	struct rig *g = *state;
	AUTO_STORE_EVENTS l = {0};

	rig_run(g, "first");
	rig_output(g, "first", 0, "ab", 2);
	rig_output(g, "first", 2, "cd", 2);
	rig_commit(g);
	/* It leaves its statement in the middle of the rows. */
	OK(store_read_run_events(g->r,
				 &(struct store_run_query){.run_id = "first",
							   .max_events = 1,
							   .max_bytes = 1000},
				 &l, &err));
	assert_true(l.more);
	assert_true(write_much(g, 200) < (int64_t)64 << 20);
}

static void a_held_snapshot_is_counted_and_the_log_recovers_after_it(void **state)
{
	struct rig *g = *state;
	struct store_stats st;
	sqlite3_stmt *held = NULL;
	sqlite3 *shell = rig_shell(g);

	assert_int_equal(
		sqlite3_prepare_v2(shell, "SELECT * FROM sqlite_schema", -1, &held, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_step(held), SQLITE_ROW);
	write_much(g, 40);
	/* The checkpoint thread is on its own time. */
	store_stats(g->s, &st);
	for (int i = 0; i < 6000 && st.blocked_checkpoints == 0; i++) {
		usleep(10000);
		store_stats(g->s, &st);
	}
	sqlite3_finalize(held);
	sqlite3_close(shell);
	assert_true(st.blocked_checkpoints > 0);
	/* Now it needs commits and a moment. */
	int64_t stored = (int64_t)40 << 20;
	for (int i = 0; i < 6000 && st.wal_bytes >= (int64_t)16 << 20; i++) {
		AUTO_FREE char *data = xcalloc(1, CHUNK);

		stored = rig_output(g, "r", stored, data, CHUNK);
		rig_commit(g);
		usleep(10000);
		store_stats(g->s, &st);
	}
	assert_true(st.wal_bytes < (int64_t)16 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(the_newest_runs_stay_and_the_rest_goes_with_all_rows),
		RIG_TEST(files_that_later_runs_share_stay_with_the_last_of_them),
		RIG_TEST(old_runs_go_by_age),
		RIG_TEST(a_long_log_goes_in_steps_and_is_hidden_meanwhile),
		RIG_TEST(a_run_whose_files_were_not_removed_is_listed_again),
		RIG_TEST(event_numbers_are_never_used_again),
		RIG_TEST(the_file_gives_pages_back),
		RIG_TEST(the_audit_is_bounded),
		RIG_TEST(the_log_stays_short_while_a_reader_sits_idle),
		RIG_TEST(a_held_snapshot_is_counted_and_the_log_recovers_after_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
