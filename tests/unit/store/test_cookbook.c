/* SPDX-License-Identifier: MIT */
#include "tests/unit/store/rig.h"

/*
 * Runs every ```sql block of docs/sqlite.md against a filled database: it must be
 * understood, and give or change at least one row. From the top of the tree.
 */
static const char book[] = "docs/sqlite.md";

static void fill_run(struct rig *g, const char *id, enum store_command_status status)
{
	static const char text[] = "Segmentation fault\n";
	struct store_command c = {.status = status,
				  .signal = 9,
				  .reason = "it was stopped",
				  .oom = 1,
				  .started_at = 2000,
				  .ended_at = 3500,
				  .bytes = {sizeof text - 1, 0},
				  .background_left = 1,
				  .cpu_ms = 1200,
				  .max_rss_kb = 4096};
	struct store_artifact files[] = {{.path = "report.html", .size = 1234},
					 {.path = "link", .skipped_reason = "a link"}};

	rig_run_of(g, id, "my-chat", 1000);
	OK(store_run_start(g->s, id, "sbx", "c", 2000, &err));
	OK(store_command_start(g->s, id, 0, 2000, &err));
	OK(store_event_add(g->s,
			   &(struct store_new_event){.run_id = id,
						     .type = STORE_EVENT_RUN_STARTED,
						     .at = 2000,
						     .command_index = -1,
						     .json = "{}"},
			   &err));
	rig_output(g, id, 0, text, sizeof text - 1);
	if (status == STORE_COMMAND_RUNNING)
		return;
	OK(store_command_finish(g->s, id, &c, &err));
	OK(store_artifacts_add(g->s, id, NULL, files, 2, &err));
	OK(store_run_finish(g->s, id, STORE_RUN_FAILED, 4000, "it failed", &err));
}

static void fill(struct rig *g)
{
	struct store_session s = {.id = "s",
				  .tenant = T,
				  .protocol_version = "x",
				  .client_name = "old-client"};
	struct store_sandbox b = {.tenant = T,
				  .identifier = "my-chat",
				  .name = "n",
				  .backend = "local",
				  .expires_at = 5};
	struct store_warm w = {.name = "mcp-sbx-warm-0",
			       .backend = "local",
			       .made_with = "x",
			       .host_boot = "x"};
	struct store_audit_row a = {
		.tenant = T, .actor = "a", .action = "b", .subject = "c"};

	fill_run(g, "run_1", STORE_COMMAND_FAILED);
	fill_run(g, "run_2", STORE_COMMAND_RUNNING);
	rig_run_of(g, "run_3", "my-chat", 1000);
	OK(store_session_open(g->s, &s, &err));
	OK(store_sandbox_put(g->s, &b, &err));
	OK(store_warm_put(g->s, &w, &err));
	OK(store_audit(g->s, &a, &err));
	rig_commit(g);
}

/* True when the statement gave or changed a row. */
static bool run_one(sqlite3 *db, sqlite3_stmt *st)
{
	int run = sqlite3_bind_parameter_index(st, ":run");
	int before = sqlite3_total_changes(db);

	if (run > 0)
		assert_int_equal(sqlite3_bind_text(st, run, "run_1", -1, SQLITE_STATIC),
				 SQLITE_OK);
	int rc = sqlite3_step(st);
	bool any = rc == SQLITE_ROW || sqlite3_total_changes(db) > before;
	while (rc == SQLITE_ROW)
		rc = sqlite3_step(st);
	if (rc != SQLITE_DONE)
		fail_msg("%s\n%s", sqlite3_sql(st), sqlite3_errmsg(db));
	return any;
}

static void run_block(sqlite3 *db, const char *sql, const char *end)
{
	while (sql < end) {
		sqlite3_stmt *st = NULL;

		if (sqlite3_prepare_v2(db, sql, (int)(end - sql), &st, &sql) != SQLITE_OK)
			fail_msg("%.*s\n%s", (int)(end - sql), sql, sqlite3_errmsg(db));
		if (st && !run_one(db, st))
			fail_msg("no row for:\n%s", sqlite3_sql(st));
		sqlite3_finalize(st);
	}
}

static void every_query_of_the_cookbook_runs_and_finds_something(void **state)
{
	static const char open[] = "\n```sql\n", close[] = "\n```\n";
	struct rig *g = *state;
	AUTO_BUF text = BUF_INIT(1 << 20);
	const char *p, *end;
	int blocks = 0;

	fill(g);
	OK(io_read_file(book, &text, &err));
	sqlite3 *db = rig_shell(g);
	for (p = text.p; (p = strstr(p, open)); p = end, blocks++) {
		p += sizeof open - 1;
		end = strstr(p, close);
		assert_non_null(end);
		run_block(db, p, end);
	}
	sqlite3_close(db);
	assert_true(blocks > 20);
}

static void the_supported_changes_reach_the_writer(void **state)
{
	struct rig *g = *state;
	struct store_changes c = {0};
	bool changed = false;

	fill(g);
	OK(store_changes_poll(g->s, &changed, &c, &err));
	store_changes_release(&c);
	rig_sql(g, "UPDATE runs SET cancel_requested = 1 WHERE run_id = 'run_2'");
	OK(store_changes_poll(g->s, &changed, &c, &err));
	assert_true(changed);
	assert_int_equal(c.cancel.n, 1);
	assert_string_equal(c.cancel.v[0].run_id, "run_2");
	store_changes_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(every_query_of_the_cookbook_runs_and_finds_something),
		RIG_TEST(the_supported_changes_reach_the_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
