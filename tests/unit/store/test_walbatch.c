/* SPDX-License-Identifier: MIT */
#include "tests/unit/store/rig.h"

#include <signal.h>
#include <sys/resource.h>

#include "store/walbatch.h"

/* A database of its own, opened through the VFS, with room for ten pages in memory. */
struct box {
	char folder[64], path[96], copy[96];
	sqlite3 *c;
};

static void run(struct box *b, const char *sql)
{
	if (sqlite3_exec(b->c, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(b->c));
}

static int set_up(void **state)
{
	struct box *b = xcalloc(1, sizeof *b);

	snprintf(b->folder, sizeof b->folder, "/tmp/store_test.XXXXXX");
	assert_non_null(mkdtemp(b->folder));
	snprintf(b->path, sizeof b->path, "%s/db", b->folder);
	snprintf(b->copy, sizeof b->copy, "%s/copy", b->folder);
	assert_int_equal(sqlite3_open_v2(b->path, &b->c,
					 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
					 walbatch_vfs()),
			 SQLITE_OK);
	run(b, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
	       "PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=10;"
	       "CREATE TABLE t(n INTEGER PRIMARY KEY, x TEXT);");
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	struct box *b = *state;
	struct err e = ERR_INIT;

	sqlite3_close(b->c);
	assert_int_equal(io_rmtree(b->folder, &e), 0);
	free(b);
	return 0;
}

static int64_t ask(sqlite3 *c, const char *sql)
{
	sqlite3_stmt *st = NULL;

	assert_int_equal(sqlite3_prepare_v2(c, sql, -1, &st, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	int64_t n = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return n;
}

static void copy_file(const char *from, const char *to)
{
	FILE *in = fopen(from, "re"), *out = fopen(to, "we");
	char piece[8192];
	size_t n;

	assert_non_null(in);
	assert_non_null(out);
	while ((n = fread(piece, 1, sizeof piece, in)) > 0)
		assert_int_equal(fwrite(piece, 1, n, out), n);
	fclose(in);
	assert_int_equal(fclose(out), 0);
}

/* What a program finds that comes after a crash at this moment: the files alone. */
static int64_t after_a_crash(struct box *b, const char *sql)
{
	char from[128], to[128];
	sqlite3 *c;

	for (int i = 0; i < 2; i++) {
		snprintf(from, sizeof from, "%s%s", b->path, i ? "-wal" : "");
		snprintf(to, sizeof to, "%s%s", b->copy, i ? "-wal" : "");
		copy_file(from, to);
	}
	snprintf(to, sizeof to, "%s-shm", b->copy);
	unlink(to);
	assert_int_equal(sqlite3_open(b->copy, &c), SQLITE_OK);
	assert_int_equal(
		ask(c, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
	int64_t n = ask(c, sql);
	sqlite3_close(c);
	return n;
}

/* Calls that wrote, of this thread. */
static int64_t writes(void)
{
	static const char key[] = "syscw: ";
	char line[128];
	int64_t n = -1;
	FILE *f = fopen("/proc/thread-self/io", "re");

	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		if (strncmp(line, key, sizeof key - 1) == 0)
			n = strtoll(line + sizeof key - 1, NULL, 10);
	fclose(f);
	assert_true(n >= 0);
	return n;
}

#define FILL(from, to)                                                                   \
	"WITH RECURSIVE s(n) AS (SELECT " from " UNION ALL SELECT n + 1 FROM s WHERE n"  \
	" < " to ") INSERT INTO t SELECT n, hex(zeroblob(500)) FROM s;"

static const char sum[] = "SELECT count(*) + sum(length(x)) FROM t";

static void a_commit_is_one_write(void **state)
{
	struct box *b = *state;
	int64_t before;

	run(b, "PRAGMA cache_size=100;" FILL("1", "20"));
	before = writes();
	run(b, FILL("21", "40")); /* six pages */
	assert_int_equal(writes() - before, 1);
	assert_int_equal(after_a_crash(b, sum), 40 * 1001);
}

static void more_than_memory_holds_is_read_back_and_committed(void **state)
{
	struct box *b = *state;

	run(b, "BEGIN;" FILL("1", "3000"));
	assert_int_equal(ask(b->c, sum), 3000 * 1001);
	run(b, "UPDATE t SET x = x || 'y' WHERE n % 3 = 0;"); /* pages twice */
	assert_int_equal(ask(b->c, sum), 3000 * 1001 + 1000);
	assert_int_equal(after_a_crash(b, "SELECT count(*) FROM t"), 0);
	run(b, "COMMIT;");
	assert_int_equal(after_a_crash(b, sum), 3000 * 1001 + 1000);
	run(b, "DELETE FROM t WHERE n = 7;");
	assert_int_equal(after_a_crash(b, sum), 2999 * 1001 + 1000);
}

static void a_commit_that_waits_for_the_disk_is_whole_too(void **state)
{
	struct box *b = *state;

	run(b, "PRAGMA synchronous=FULL;" FILL("1", "20"));
	assert_int_equal(after_a_crash(b, sum), 20 * 1001);
	run(b, "BEGIN;" FILL("21", "3000") "UPDATE t SET x = x || 'y';");
	assert_int_equal(after_a_crash(b, sum), 20 * 1001);
	run(b, "COMMIT;" FILL("3001", "3001"));
	assert_int_equal(after_a_crash(b, sum), 3000 * 1002 + 1001);
}

static void what_was_rolled_back_is_not_there(void **state)
{
	struct box *b = *state;

	run(b, FILL("1", "5") "BEGIN;" FILL("6", "3000") "ROLLBACK;");
	assert_int_equal(after_a_crash(b, sum), 5 * 1001);
	run(b, FILL("6", "7"));
	run(b, FILL("8", "9"));
	assert_int_equal(after_a_crash(b, sum), 9 * 1001);
	assert_int_equal(ask(b->c, sum), 9 * 1001);
}

static void a_log_that_begins_anew_holds_what_follows(void **state)
{
	struct box *b = *state;

	for (int i = 0; i < 3; i++) {
		run(b, "DELETE FROM t;" FILL("1", "100"));
		run(b, i == 1 ? "PRAGMA wal_checkpoint(TRUNCATE);"
			      : "PRAGMA wal_checkpoint(RESTART);");
	}
	run(b, FILL("101", "110"));
	run(b, FILL("111", "112"));
	assert_int_equal(after_a_crash(b, sum), 112 * 1001);
}

static void a_write_that_fails_is_the_commits_error(void **state)
{
	struct box *b = *state;
	struct rlimit old, small;
	struct stat st;
	char wal[128];

	run(b, FILL("1", "20"));
	snprintf(wal, sizeof wal, "%s-wal", b->path);
	assert_int_equal(stat(wal, &st), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){(rlim_t)st.st_size + 8192, old.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	run(b, "BEGIN;" FILL("21", "60"));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_not_equal(sqlite3_exec(b->c, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	sqlite3_exec(b->c, "ROLLBACK", NULL, NULL, NULL); /* if it is still open */
	assert_int_equal(after_a_crash(b, sum), 20 * 1001);
	run(b, FILL("21", "22"));
	run(b, FILL("23", "24"));
	assert_int_equal(after_a_crash(b, sum), 24 * 1001);
}

#define BOX_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOX_TEST(a_commit_is_one_write),
		BOX_TEST(more_than_memory_holds_is_read_back_and_committed),
		BOX_TEST(a_commit_that_waits_for_the_disk_is_whole_too),
		BOX_TEST(what_was_rolled_back_is_not_there),
		BOX_TEST(a_log_that_begins_anew_holds_what_follows),
		BOX_TEST(a_write_that_fails_is_the_commits_error),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
