/* SPDX-License-Identifier: MIT */
#include "tests/unit/store/rig.h"

#include <sys/stat.h>

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
		MIGRATE_TEST(changed_views_are_made_anew),
		MIGRATE_TEST(a_missing_database_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
