/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <ftw.h>

#define ROOT "'options':{'as_user':'root'}"

static void run_shell(struct rig *t, char id[ID_RUN_LEN + 1], const char *script)
{
	json_t *body;

	id_new_run(id);
	body = json_pack("{s:s,s:s,s:{s:s,s:[{s:s}],s:{s:s}}}", "tenant", "default",
			 "run_id", id, "args", "identifier", "a", "commands", "shell",
			 script, "options", "as_user", "root");
	json_decref(rig_ask(t, MSG_RUN, body));
	rig_wait(t, id);
}

static char *published(struct rig *t, const char *run_id, const char *path)
{
	return xasprintf("%s/artifacts/default/a/%s/%s", t->dir, run_id, path);
}

static struct stat stat_of(struct rig *t, const char *run_id, const char *path)
{
	AUTO_FREE char *full = published(t, run_id, path);
	struct stat st;

	if (lstat(full, &st) < 0)
		fail_msg("%s is not there", path);
	return st;
}

static void check_text(struct rig *t, const char *run_id, const char *path,
		       const char *want)
{
	AUTO_FREE char *full = published(t, run_id, path);
	AUTO_BUF b = BUF_INIT(1 << 20);
	struct err e = ERR_INIT;

	if (io_read_file(full, &b, &e) < 0)
		fail_msg("%s", e.msg);
	assert_string_equal(want, b.p);
}

static const struct store_artifact *artifact(const struct store_run *run,
					     const char *path)
{
	for (size_t i = 0; i < run->nartifacts; i++)
		if (strcmp(run->artifacts[i].path, path) == 0)
			return &run->artifacts[i];
	fail_msg("%s is not listed", path);
	return NULL;
}

static void files_come_out_and_latest_points_to_them(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_STORE_RUN run = {0};
	AUTO_FREE char *events = NULL;

	run_shell(t, id,
		  "cd /artifacts; mkdir -p 'd e/f'; echo one >1; echo two >'d e/f/2'; : "
		  ">0");
	rig_read_run(t, id, &run);
	assert_int_equal(3, run.nartifacts);
	assert_int_equal(4, artifact(&run, "d e/f/2")->size);
	check_text(t, id, "1", "one\n");
	check_text(t, id, "0", "");
	check_text(t, id, "../latest/d e/f/2", "two\n");
	assert_int_equal(0100640, stat_of(t, id, "1").st_mode);
	events = rig_events(t, id);
	assert_non_null(strstr(events, "artifacts_extracted,run_finished"));
}

static void unchanged_files_are_links_and_changed_ones_are_new(void **state)
{
	struct rig *t = *state;
	char one[ID_RUN_LEN + 1], two[ID_RUN_LEN + 1];

	run_shell(t, one, "cd /artifacts; echo same >s; echo old >c; echo go >g");
	/* The same size and a forged time: still another file. */
	run_shell(
		t, two,
		"cd /artifacts; touch -r c /tmp/t; echo new >c; touch -r /tmp/t c; rm g");
	assert_int_equal(stat_of(t, one, "s").st_ino, stat_of(t, two, "s").st_ino);
	check_text(t, one, "c", "old\n");
	check_text(t, two, "c", "new\n");
	check_text(t, one, "g", "go\n");
	check_text(t, two, "s", "same\n");
}

static void links_survive_a_new_runner(void **state)
{
	struct rig *t = *state;
	char one[ID_RUN_LEN + 1], two[ID_RUN_LEN + 1];

	run_shell(t, one, "echo same >/artifacts/s");
	rig_end(t, SIGKILL);
	rig_start(t);
	run_shell(t, two, "true");
	assert_int_equal(stat_of(t, one, "s").st_ino, stat_of(t, two, "s").st_ino);
}

static void what_is_no_file_is_skipped_with_a_reason(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_STORE_RUN run = {0};

	run_shell(t, id,
		  "cd /artifacts; ln -s /etc/passwd link; mkfifo pipe; echo f >file; "
		  "ln -s /etc dir; echo x >\"$(printf 'bad\\377')\"");
	rig_read_run(t, id, &run);
	assert_int_equal(STORE_RUN_COMPLETED, run.state);
	assert_non_null(strstr(artifact(&run, "link")->skipped_reason, "symbolic link"));
	assert_non_null(strstr(artifact(&run, "dir")->skipped_reason, "symbolic link"));
	assert_non_null(strstr(artifact(&run, "pipe")->skipped_reason, "named pipe"));
	assert_non_null(
		strstr(artifact(&run, "bad\xef\xbf\xbd")->skipped_reason, "UTF-8"));
	assert_null(artifact(&run, "file")->skipped_reason);
	assert_null(run.artifacts_error);
}

static void limits_skip_and_say_so(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_STORE_RUN run = {0};

	rig_end(t, SIGKILL);
	t->conf.artifacts_max_file_bytes = 1000;
	t->conf.artifacts_max_bytes = 1500;
	rig_start(t);
	run_shell(t, id,
		  "cd /artifacts; truncate -s 1G huge; head -c 900 /dev/zero >a; sleep "
		  "0.01;"
		  " head -c 900 /dev/zero >b");
	rig_read_run(t, id, &run);
	assert_non_null(strstr(artifact(&run, "huge")->skipped_reason, "1000 bytes"));
	assert_int_equal(1, (artifact(&run, "a")->skipped_reason != NULL) +
				    (artifact(&run, "b")->skipped_reason != NULL));
}

static void artifacts_come_out_of_a_failed_run_too(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];

	run_shell(t, id, "echo log >/artifacts/log; exit 3");
	check_text(t, id, "log", "log\n");
}

static void a_failing_disk_leaves_no_half_folder(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_STORE_RUN run = {0};
	AUTO_FREE char *blocked = xasprintf("%s/artifacts/default", t->dir);
	AUTO_FREE char *folder = NULL;
	struct err e = ERR_INIT;

	/* A file where the tenant's folder should be. */
	assert_int_equal(0, io_write_file_atomic(blocked, "x", 1, 0600, &e));
	run_shell(t, id, "echo x >/artifacts/x");
	rig_read_run(t, id, &run);
	assert_int_equal(STORE_RUN_COMPLETED, run.state);
	assert_non_null(run.artifacts_error);
	assert_int_equal(0, run.nartifacts);
	folder = xasprintf("%s/artifacts/.staging/%s", t->dir, id);
	run_shell(t, id, "rm /artifacts/x");
	assert_false(io_exists(folder));
}

static void many_files_come_whole(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_STORE_RUN run = {0};

	run_shell(t, id,
		  "cd /artifacts; for i in $(seq 1 1500); do echo $i >f$i; done; head -c "
		  "5000000 /dev/urandom >big; sha256sum big | cut -c1-64 >sum");
	rig_read_run(t, id, &run);
	assert_int_equal(1502, run.nartifacts);
	check_text(t, id, "f1234", "1234\n");
	assert_int_equal(5000000, stat_of(t, id, "big").st_size);
}

static char *unchanged(const char *path)
{
	return xasprintf(".unchanged/%s", path);
}

/* Also over a new runner, which knows of the files by their rows alone. */
static void of_many_files_only_the_new_ones_take_room_and_all_are_listed(void **state)
{
	struct rig *t = *state;
	char one[ID_RUN_LEN + 1], two[ID_RUN_LEN + 1], three[ID_RUN_LEN + 1];
	AUTO_STORE_RUN run = {0};
	AUTO_FREE char *f2 = unchanged("d/f2");
	AUTO_FREE char *not_here = NULL;

	run_shell(t, one,
		  "mkdir /artifacts/d; cd /artifacts/d; for i in $(seq 300); do echo $i "
		  ">f$i; done");
	run_shell(t, two, "cd /artifacts; echo new >d/f1; echo more >more; mkfifo p");
	check_text(t, two, "d/f1", "new\n");
	check_text(t, two, f2, "2\n");
	rig_read_run(t, two, &run);
	assert_int_equal(302, run.nartifacts);
	assert_int_equal(4, artifact(&run, "d/f1")->size);
	assert_int_equal(3, artifact(&run, "d/f11")->size);
	assert_non_null(artifact(&run, "p")->skipped_reason);
	store_run_release(&run);
	rig_end(t, SIGKILL);
	rig_start(t);
	run_shell(t, three, "rm /artifacts/more /artifacts/p");
	check_text(t, three, "../latest/d/f1", "new\n");
	check_text(t, three, f2, "2\n");
	not_here = published(t, three, "d/f2");
	assert_false(io_exists(not_here));
	rig_read_run(t, three, &run);
	assert_int_equal(300, run.nartifacts);
}

/* Retention is no business of a doorbell's: it is looked for. */
static void wait_gone(const char *path)
{
	while (io_exists(path))
		poll(NULL, 0, 20);
}

static void what_later_runs_share_outlives_its_run(void **state)
{
	struct rig *t = *state;
	char one[ID_RUN_LEN + 1], two[ID_RUN_LEN + 1];
	AUTO_FREE char *first = NULL;
	AUTO_FREE char *f2 = unchanged("f2");
	AUTO_FREE char *base = NULL;

	run_shell(t, one, "cd /artifacts; for i in $(seq 300); do echo $i >f$i; done");
	run_shell(t, two, "echo new >/artifacts/f1");
	first = published(t, one, "f2");
	base = xasprintf("%s/artifacts/default/a/.base", t->dir);
	rig_end(t, SIGUSR1);
	t->conf.max_runs = 1;
	rig_start(t);
	wait_gone(first);
	check_text(t, two, f2, "2\n");
	check_text(t, two, "f1", "new\n");
	run_shell(t, one, "rm /artifacts/*; echo small >/artifacts/s");
	rig_end(t, SIGUSR1);
	rig_start(t);
	wait_gone(base);
	check_text(t, one, "../latest/s", "small\n");
}

static int entries_found;

static int count_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)path;
	(void)st;
	(void)type;
	(void)at;
	entries_found++;
	return 0;
}

/* A folder costs an inode of ours as a file does. */
static void folders_count_for_the_limit_of_files(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_STORE_RUN run = {0};
	AUTO_FREE char *root = NULL;

	rig_end(t, SIGUSR1);
	t->conf.artifacts_max_files = 10;
	rig_start(t);
	run_shell(t, id,
		  "for i in $(seq 50); do mkdir -p /artifacts/$i/x; echo y > "
		  "/artifacts/$i/x/f; done");
	rig_read_run(t, id, &run);
	assert_null(run.artifacts_error);
	root = published(t, id, ".");
	entries_found = 0;
	assert_int_equal(0, nftw(root, count_entry, 8, FTW_PHYS));
	assert_in_range(entries_found, 1 + 1, 1 + 10); /* and the root */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(files_come_out_and_latest_points_to_them),
		TEST(unchanged_files_are_links_and_changed_ones_are_new),
		TEST(links_survive_a_new_runner),
		TEST(what_is_no_file_is_skipped_with_a_reason),
		TEST(limits_skip_and_say_so),
		TEST(folders_count_for_the_limit_of_files),
		TEST(artifacts_come_out_of_a_failed_run_too),
		TEST(a_failing_disk_leaves_no_half_folder),
		TEST(many_files_come_whole),
		TEST(of_many_files_only_the_new_ones_take_room_and_all_are_listed),
		TEST(what_later_runs_share_outlives_its_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
