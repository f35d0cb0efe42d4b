/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_STORE_RIG_H
#define TESTS_UNIT_STORE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/auto.h"
#include "base/io.h"
#include "base/mem.h"
#include "store/migrate.h"
#include "store/reader.h"
#include "store/writer.h"
#include "tests/unit/testdir.h"

/*
 * A store of its own for each test: a new folder, migrated, with a writer and a
 * reader open. rig_sql() is the sysadmin with a sqlite3 shell.
 */
struct rig {
	char folder[64], path[96];
	struct store *s;
	struct store_reader *r;
};

#define T STORE_TENANT_DEFAULT

static struct err err; /* of the last call that was meant to fail */

/* The call must succeed; says why when it does not. */
#define OK(call)                                                                         \
	do {                                                                             \
		err = (struct err)ERR_INIT;                                              \
		if ((call) < 0)                                                          \
			fail_msg("%s: %s", #call, err.msg);                              \
	} while (0)

/* The call must fail with this kind. */
#define FAILS(want, call)                                                                \
	do {                                                                             \
		err = (struct err)ERR_INIT;                                              \
		assert_int_equal((call), -1);                                            \
		assert_string_equal(err_kind_name(err.kind), err_kind_name(want));       \
	} while (0)

static inline void rig_folder(struct rig *g)
{
	*g = (struct rig){0};
	test_folder(g->folder, sizeof g->folder, "store");
	/* Others must pass through to what the tests open as nobody. */
	assert_int_equal(chmod(g->folder, 0755), 0);
	snprintf(g->path, sizeof g->path, "%s/db/mcp-sandboxd.sqlite", g->folder);
}

static inline void rig_migrate(struct rig *g)
{
	struct store_migrate_opts o = {.group = (gid_t)-1, .synchronous = "NORMAL"};

	OK(store_migrate(g->path, &o, &err));
}

static inline void rig_open(struct rig *g)
{
	OK(store_open(g->path, &(struct store_opts){.busy_ms = 100}, &g->s, &err));
	OK(store_reader_open(g->path, &g->r, &err));
}

static inline void rig_close(struct rig *g)
{
	store_reader_close(g->r);
	store_close(g->s);
	g->r = NULL;
	g->s = NULL;
}

static inline int rig_setup(void **state)
{
	struct rig *g = malloc(sizeof *g);

	rig_folder(g);
	rig_migrate(g);
	rig_open(g);
	*state = g;
	return 0;
}

static inline int rig_teardown(void **state)
{
	struct rig *g = *state;

	rig_close(g);
	OK(io_rmtree(g->folder, &err));
	free(g);
	return 0;
}

static inline struct store_commit_info rig_commit(struct rig *g)
{
	struct store_commit_info info = {0};

	OK(store_commit(g->s, &info, &err));
	return info;
}

/* A connection of another program. */
static inline sqlite3 *rig_shell(struct rig *g)
{
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(g->path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 60000);
	return db;
}

/* Runs sql as another program would; gives the first column of the first row. */
static inline int64_t rig_sql(struct rig *g, const char *sql)
{
	sqlite3 *db = rig_shell(g);
	sqlite3_stmt *st = NULL;
	int64_t value = 0;

	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	int rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		value = sqlite3_column_int64(st, 0);
	else if (rc != SQLITE_DONE)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_finalize(st);
	sqlite3_close(db);
	return value;
}

/* All the statements of sql, as another program. */
static inline void rig_script(struct rig *g, const char *sql)
{
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(g->path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

static inline void rig_run_of(struct rig *g, const char *id, const char *identifier,
			      int64_t created_at)
{
	struct store_command c[] = {
		{.shell = "make",
		 .cwd = "/w",
		 .env_json = "{\"A\":\"b\"}",
		 .timeout_ms = 5},
		{.index = 1,
		 .argv_json = "[\"true\"]",
		 .timeout_ms = 7,
		 .allow_failure = true},
	};
	struct store_run run = {.run_id = id,
				.tenant = T,
				.identifier = identifier,
				.created_at = created_at,
				.as_root = true,
				.continue_on_error = true,
				.ttl_s = 60,
				.commands = c,
				.ncommands = 2};
	bool existed = true;

	OK(store_run_insert(g->s, &run, &existed, &err));
	assert_false(existed);
}

static inline void rig_run(struct rig *g, const char *id)
{
	rig_run_of(g, id, "chat", 1000);
}

/* Appends to stdout of command 0; returns what is stored then. */
static inline int64_t rig_output(struct rig *g, const char *id, int64_t offset,
				 const char *data, size_t n)
{
	struct store_output o = {
		.run_id = id, .at = 5, .offset = offset, .data = data, .n = n};
	int64_t stored = -1;

	OK(store_output_add(g->s, &o, &stored, &err));
	return stored;
}

/* All of stdout of command 0 as the reader sees it. */
static inline void rig_expect_stdout(struct rig *g, const char *id, const char *want,
				     size_t n)
{
	struct store_output_query q = {.run_id = id, .max = SIZE_MAX};
	AUTO_BUF got = BUF_INIT(SIZE_MAX);
	size_t len = 0;

	OK(store_read_output(g->r, &q, &got, &len, &err));
	assert_int_equal(len, n);
	assert_int_equal(got.len, n);
	assert_memory_equal(got.p, want, n);
}

/* Runs body in a child; its exit code, or -1 when a signal ended it. */
static inline int rig_child(int (*body)(struct rig *g), struct rig *g)
{
	pid_t pid = fork();
	int status = 0;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(body(g));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define RIG_TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

#endif
