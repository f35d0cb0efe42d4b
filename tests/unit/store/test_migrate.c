/* SPDX-License-Identifier: MIT */
#include "tests/unit/store/rig.h"

#include <sys/stat.h>

#include "store/schema.h"

static int folder_only(void **state)
{
	struct rig *g = malloc(sizeof *g);

	rig_folder(g);
	*state = g;
	return 0;
}

static mode_t mode_of(const char *folder, const char *suffix)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof path, "%s%s", folder, suffix);
	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static void an_empty_folder_becomes_a_store_and_stays_one(void **state)
{
	struct rig *g = *state;

	rig_migrate(g);
	int64_t writes = rig_sql(g, "SELECT count(*) FROM sqlite_schema");
	rig_migrate(g);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM sqlite_schema"), writes);
	assert_int_equal(rig_sql(g, "PRAGMA user_version"), store_schema_version());
	assert_int_equal(rig_sql(g, "PRAGMA auto_vacuum"), 2);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM tenants"), 1);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM pragma_journal_mode"
				    " WHERE journal_mode = 'wal'"),
			 1);
}

static void every_table_is_strict(void **state)
{
	struct rig *g = *state;

	rig_migrate(g);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM pragma_table_list WHERE"
				    " type = 'table' AND schema = 'main' AND NOT strict"
				    " AND name NOT LIKE 'sqlite_%'"),
			 0);
}

static void modes_are_as_designed_whatever_the_umask_is(void **state)
{
	struct rig *g = *state;
	mode_t old = umask(0);

	rig_migrate(g);
	umask(old);
	assert_int_equal(mode_of(g->folder, "/db"), 02750);
	assert_int_equal(mode_of(g->path, ""), 0640);
	assert_int_equal(mode_of(g->path, "-wal"), 0640);
	assert_int_equal(mode_of(g->path, "-shm"), 0640);
}

static void the_log_and_its_index_stay_on_disk_after_the_writer_left(void **state)
{
	struct rig *g = *state;

	rig_migrate(g);
	rig_open(g);
	rig_close(g);
	assert_int_equal(mode_of(g->path, "-wal"), 0640);
	assert_int_equal(mode_of(g->path, "-shm"), 0640);
}

static void a_newer_schema_is_refused_in_words(void **state)
{
	struct store_migrate_opts o = {.group = (gid_t)-1};
	struct rig *g = *state;
	struct store *s = NULL;
	struct store_reader *r = NULL;

	rig_migrate(g);
	rig_sql(g, "PRAGMA user_version = 99");
	FAILS(ERR_STORE, store_migrate(g->path, &o, &err));
	assert_non_null(strstr(err.msg, "version 99"));
	assert_non_null(strstr(err.msg, "newer program"));
	FAILS(ERR_STORE, store_open(g->path, &(struct store_opts){0}, &s, &err));
	FAILS(ERR_STORE, store_reader_open(g->path, &r, &err));
}

static void a_store_that_was_not_migrated_is_refused(void **state)
{
	struct rig *g = *state;
	struct store *s = NULL;

	rig_migrate(g);
	rig_sql(g, "PRAGMA user_version = 0");
	FAILS(ERR_STORE, store_open(g->path, &(struct store_opts){0}, &s, &err));
	assert_non_null(strstr(err.msg, "not migrated"));
}

static void the_database_of_another_program_is_left_alone(void **state)
{
	struct store_migrate_opts o = {.group = (gid_t)-1};
	struct rig *g = *state;
	char folder[80];

	snprintf(folder, sizeof folder, "%s/db", g->folder);
	OK(io_mkdirs(folder, 0755, &err));
	rig_sql(g, "CREATE TABLE precious(x)");
	FAILS(ERR_STORE, store_migrate(g->path, &o, &err));
	assert_non_null(strstr(err.msg, "another program"));
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM sqlite_schema"), 1);
}

static void a_file_that_is_no_database_is_refused_in_words(void **state)
{
	struct store_migrate_opts o = {.group = (gid_t)-1};
	struct rig *g = *state;
	char folder[80], text[4096];

	snprintf(folder, sizeof folder, "%s/db", g->folder);
	OK(io_mkdirs(folder, 0755, &err));
	memset(text, 'x', sizeof text);
	OK(io_write_file_atomic(g->path, text, sizeof text, 0640, &err));
	FAILS(ERR_STORE, store_migrate(g->path, &o, &err));
	assert_non_null(strstr(err.msg, "not an SQLite database"));
}

/* As a program left it that knew the first six steps only. */
static void make_version_6(struct rig *g)
{
	char folder[80], end[128];

	snprintf(folder, sizeof folder, "%s/db", g->folder);
	OK(io_mkdirs(folder, 0755, &err));
	rig_script(g, "PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL");
	for (int i = 0; i < 6; i++)
		for (const char *const *text = schema_steps[i]; *text; text++)
			rig_script(g, *text);
	for (const char *const *text = schema_views; *text; text++)
		rig_script(g, *text);
	snprintf(end, sizeof end, "PRAGMA application_id=%d; PRAGMA user_version=6",
		 SCHEMA_APPLICATION_ID);
	rig_script(g, end);
}

static void the_commands_of_an_older_store_are_kept(void **state)
{
	struct rig *g = *state;
	AUTO_STORE_RUN run = {0};

	make_version_6(g);
	rig_script(
		g,
		"INSERT INTO runs(run_id, tenant, identifier, state, created_at,"
		" as_user, continue_on_error, lock_sandbox, ttl_s) VALUES"
		" ('r', 'default', 'chat', 'running', 1, 'sandbox', 0, 0, 60);"
		"INSERT INTO commands(run_id, command_index, status, exit_code, reason,"
		" started_at, timeout_ms, allow_failure, stdout_bytes, shell, argv, env,"
		" stdin, background) VALUES"
		" ('r', 0, 'failed', 3, 'why', 5, 7, 1, 9, 'make', NULL, '{}', 'in', 0),"
		" ('r', 1, 'running', NULL, NULL, 6, 8, 0, 0, NULL, '[]', '{}', NULL, "
		"1)");
	rig_migrate(g);
	rig_open(g);
	OK(store_read_run(g->r, T, "r", &run, &err));
	assert_int_equal(run.ncommands, 2);
	assert_int_equal(run.commands[0].status, STORE_COMMAND_FAILED);
	assert_int_equal(run.commands[0].exit_code, 3);
	assert_string_equal(run.commands[0].reason, "why");
	assert_int_equal(run.commands[0].started_at, 5);
	assert_int_equal(run.commands[0].timeout_ms, 7);
	assert_true(run.commands[0].allow_failure);
	assert_int_equal(run.commands[0].bytes[STORE_STDOUT], 9);
	assert_string_equal(run.commands[0].shell, "make");
	assert_string_equal(run.commands[0].stdin_text, "in");
	assert_string_equal(run.commands[1].argv_json, "[]");
	assert_int_equal(run.commands[1].status, STORE_COMMAND_RUNNING);
	assert_true(run.commands[1].background);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM v_commands"), 2);
	assert_int_equal(rig_sql(g, "SELECT commands FROM v_runs"), 2);
	AUTO_STORE_RUNS l = {0};
	OK(store_runs_unfinished(g->s, &l, &err));
	assert_int_equal(l.n, 1);
	rig_close(g);
}

static void changed_views_are_made_anew(void **state)
{
	struct rig *g = *state;

	rig_migrate(g);
	rig_sql(g, "DROP VIEW v_runs");
	rig_sql(g, "UPDATE meta SET value = 'old' WHERE key = 'views_sha256'");
	rig_migrate(g);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM v_runs"), 0);
}

static void a_missing_database_is_said(void **state)
{
	struct rig *g = *state;
	struct store_reader *r = NULL;

	FAILS(ERR_STORE, store_reader_open(g->path, &r, &err));
	assert_non_null(strstr(err.msg, "is it there"));
}

#define MIGRATE_TEST(f) cmocka_unit_test_setup_teardown(f, folder_only, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MIGRATE_TEST(an_empty_folder_becomes_a_store_and_stays_one),
		MIGRATE_TEST(every_table_is_strict),
		MIGRATE_TEST(modes_are_as_designed_whatever_the_umask_is),
		MIGRATE_TEST(the_log_and_its_index_stay_on_disk_after_the_writer_left),
		MIGRATE_TEST(a_newer_schema_is_refused_in_words),
		MIGRATE_TEST(a_store_that_was_not_migrated_is_refused),
		MIGRATE_TEST(the_database_of_another_program_is_left_alone),
		MIGRATE_TEST(a_file_that_is_no_database_is_refused_in_words),
		MIGRATE_TEST(the_commands_of_an_older_store_are_kept),
		MIGRATE_TEST(changed_views_are_made_anew),
		MIGRATE_TEST(a_missing_database_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
