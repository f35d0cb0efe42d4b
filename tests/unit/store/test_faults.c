/* SPDX-License-Identifier: MIT */
#include "tests/unit/store/rig.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>

enum { NOBODY = 65534, EDGE_GROUP = 54321 };

static int folder_only(void **state)
{
	struct rig *g = malloc(sizeof *g);

	rig_folder(g);
	*state = g;
	return 0;
}

static void migrate_for_group(struct rig *g)
{
	struct store_migrate_opts o = {.group = EDGE_GROUP};

	OK(store_migrate(g->path, &o, &err));
}

/* What an edge may do: nobody, with the group of the files and no other. */
static int become_edge(void)
{
	gid_t group = EDGE_GROUP;

	return setgroups(1, &group) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0;
}

/* 0: the run "r" is seen, with its output; and nothing can be written. */
static int look_as_edge(struct rig *g)
{
	struct store_reader *r = NULL;
	struct store *s = NULL;
	enum store_run_state st;
	struct err e = ERR_INIT, refused = ERR_INIT;

	if (become_edge())
		return 10;
	if (store_reader_open(g->path, &r, &e) < 0 ||
	    store_read_run_state(r, T, "r", &st, &e) < 0) {
		fprintf(stderr, "# %s\n", e.msg);
		return 11;
	}
	store_reader_close(r);
	if (store_open(g->path, &(struct store_opts){0}, &s, &refused) == 0)
		return 12;
	return open(g->path, O_RDWR | O_CLOEXEC) >= 0 ? 13 : 0;
}

static void an_edge_without_rights_reads_while_the_writer_runs(void **state)
{
	struct rig *g = *state;

	if (geteuid() != 0)
		skip();
	migrate_for_group(g);
	rig_open(g);
	rig_run(g, "r");
	rig_commit(g);
	assert_int_equal(rig_child(look_as_edge, g), 0);
}

static void an_edge_without_rights_reads_after_the_writer_left(void **state)
{
	struct rig *g = *state;

	if (geteuid() != 0)
		skip();
	migrate_for_group(g);
	rig_open(g);
	rig_run(g, "r");
	rig_commit(g);
	rig_close(g);
	assert_int_equal(rig_child(look_as_edge, g), 0);
}

/* Opens first, tells so, and then waits to see what the writer commits. */
static int look_first(struct rig *g, int tell, int go)
{
	struct store_reader *r = NULL;
	enum store_run_state st;
	struct err e = ERR_INIT, later = ERR_INIT;
	int64_t newest = -1;
	char c = 'x';

	if (become_edge() || store_reader_open(g->path, &r, &e) < 0 ||
	    store_read_newest_event_id(r, &newest, &e) < 0 || newest != 0)
		return 20;
	if (write(tell, &c, 1) != 1 || read(go, &c, 1) != 1)
		return 21;
	int rc = store_read_run_state(r, T, "r", &st, &later);
	store_reader_close(r);
	return rc < 0 ? 22 : 0;
}

static void an_edge_may_start_before_the_writer(void **state)
{
	struct rig *g = *state;
	int tell[2], go[2], status = 0;
	char c = 'x';

	if (geteuid() != 0)
		skip();
	migrate_for_group(g);
	assert_int_equal(pipe2(tell, O_CLOEXEC) | pipe2(go, O_CLOEXEC), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(look_first(g, tell[1], go[0]));
	assert_int_equal(read(tell[0], &c, 1), 1);
	rig_open(g);
	rig_run(g, "r");
	rig_commit(g);
	assert_int_equal(write(go[1], &c, 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	for (int i = 0; i < 2; i++) {
		close(tell[i]);
		close(go[i]);
	}
}

/* Commits one chunk, writes a second one, and is killed before its commit. */
static int write_and_die(struct rig *g)
{
	rig_open(g);
	rig_run(g, "r");
	rig_output(g, "r", 0, "committed", 9);
	rig_commit(g);
	for (int i = 0; i < 2000; i++) /* more than the page cache: it spills */
		rig_output(g, "r", 9 + 4096 * i, (char[4096]){"lost"}, 4096);
	raise(SIGKILL);
	return 0;
}

static void a_writer_killed_in_a_transaction_leaves_what_was_committed(void **state)
{
	struct rig *g = *state;

	rig_migrate(g);
	assert_int_equal(rig_child(write_and_die, g), -1);
	rig_open(g);
	rig_expect_stdout(g, "r", "committed", 9);
	assert_int_equal(rig_output(g, "r", 0, "committed and more", 18), 18);
	rig_commit(g);
	rig_expect_stdout(g, "r", "committed and more", 18);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM pragma_integrity_check"
				    " WHERE integrity_check = 'ok'"),
			 1);
}

static void an_admins_open_transaction_loses_the_turn_in_words(void **state)
{
	struct rig *g = *state;
	struct store_session row = {.id = "s", .tenant = T, .protocol_version = "x"};
	struct store_commit_info info;
	struct store_stats st;
	sqlite3 *shell = NULL;

	rig_migrate(g);
	rig_open(g);
	rig_run(g, "r");
	rig_commit(g);
	shell = rig_shell(g);
	assert_int_equal(sqlite3_exec(shell, "BEGIN IMMEDIATE", NULL, NULL, NULL), 0);
	FAILS(ERR_STORE, store_session_open(g->s, &row, &err));
	assert_non_null(strstr(err.msg, "sqlite3 shell"));
	FAILS(ERR_STORE, store_session_open(g->s, &row, &err)); /* at once now */
	FAILS(ERR_STORE, store_commit(g->s, &info, &err));
	assert_non_null(strstr(err.msg, "lost"));
	assert_int_equal(sqlite3_exec(shell, "COMMIT", NULL, NULL, NULL), 0);
	sqlite3_close(shell);
	OK(store_session_open(g->s, &row, &err));
	rig_commit(g);
	store_stats(g->s, &st);
	assert_int_equal(st.failed_commits, 1);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM sessions"), 1);
}

/* In a mount namespace of its own, on a file system of 2 MB. 0: as it should be. */
static int fill_the_disk(struct rig *g)
{
	static char data[65536];
	struct store_commit_info info;
	struct err e = ERR_INIT;
	int64_t stored = 0, acknowledged = 0;

	if (unshare(CLONE_NEWNS) < 0 ||
	    mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", g->folder, "tmpfs", 0, "size=2m") < 0)
		return 77;
	AUTO_FREE char *filler = xasprintf("%s/filler", g->folder);
	rig_migrate(g);
	rig_open(g);
	rig_run(g, "r");
	rig_commit(g);
	AUTO_CLOSE int fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || fallocate(fd, 0, 0, 1 << 20) < 0)
		return 30;
	memset(data, 'd', sizeof data);
	for (int i = 0; i < 100; i++) {
		struct store_output o = {
			.run_id = "r", .offset = stored, .data = data, .n = sizeof data};

		if (store_output_add(g->s, &o, &stored, &e) < 0)
			break;
		e = (struct err)ERR_INIT;
		if (store_commit(g->s, &info, &e) < 0)
			break;
		acknowledged = stored;
	}
	if (e.kind != ERR_STORE || !strstr(e.msg, "full"))
		return fprintf(stderr, "# %s\n", e.msg), 31;
	e = (struct err)ERR_INIT;
	store_commit(g->s, &info, &e); /* takes note of the loss, if it has not yet */
	if (unlink(filler) < 0 || ftruncate(fd, 0) < 0)
		return 32;
	/* What was not acknowledged is sent again and taken now. */
	rig_output(g, "r", acknowledged, data, sizeof data);
	rig_commit(g);
	if (rig_sql(g, "SELECT sum(length(data)) FROM events") !=
	    acknowledged + (int64_t)sizeof data)
		return 33;
	rig_close(g);
	return 0;
}

static void a_full_disk_is_said_and_survived(void **state)
{
	int rc = rig_child(fill_the_disk, *state);

	if (rc == 77)
		skip(); /* may not mount here */
	assert_int_equal(rc, 0);
}

#define FAULT_TEST(f) cmocka_unit_test_setup_teardown(f, folder_only, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAULT_TEST(an_edge_without_rights_reads_while_the_writer_runs),
		FAULT_TEST(an_edge_without_rights_reads_after_the_writer_left),
		FAULT_TEST(an_edge_may_start_before_the_writer),
		FAULT_TEST(a_writer_killed_in_a_transaction_leaves_what_was_committed),
		FAULT_TEST(an_admins_open_transaction_loses_the_turn_in_words),
		FAULT_TEST(a_full_disk_is_said_and_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
