/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <sqlite3.h>

#define ROOT "'options':{'as_user':'root'}"

/* What is bounded, and what it says then. */

static void tune(struct conf *c)
{
	c->max_active_sandboxes = 2;
	c->max_queued_runs = 2;
	c->max_runs = 2;
}

static int setup(void **state)
{
	rig_tune = tune;
	return rig_setup(state);
}

static void check_refused(struct rig *t, const char *args, const char *words)
{
	char id[ID_RUN_LEN + 1];
	enum edgemsg_type got;
	json_t *answer;

	id_new_run(id);
	answer = rig_answer(t, rig_send(t, MSG_RUN, rig_run_body(id, args)), &got);
	assert_int_equal(MSG_ERR, got);
	assert_string_equal("limit", json_get_string(answer, "kind"));
	if (!strstr(json_get_string(answer, "message"), words))
		fail_msg("%s", json_get_string(answer, "message"));
	json_decref(answer);
}

/* A sysadmin's sqlite3 can write: what was refused holds no lock. */
static void check_unlocked(struct rig *t)
{
	sqlite3 *c = NULL;

	assert_int_equal(SQLITE_OK, sqlite3_open(t->db, &c));
	sqlite3_busy_timeout(c, WAIT_MS);
	assert_int_equal(SQLITE_OK,
			 sqlite3_exec(c, "BEGIN IMMEDIATE; ROLLBACK", NULL, NULL, NULL));
	sqlite3_close(c);
}

static void one_sandbox_too_many_is_refused_until_one_goes(void **state)
{
	static const char third[] =
		"{'identifier':'c','commands':[{'argv':['true']}]," ROOT "}";
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];

	rig_run(t, id, "{'identifier':'a','commands':[{'argv':['true']}]," ROOT "}");
	rig_run(t, id, "{'identifier':'b','commands':[{'argv':['true']}]," ROOT "}");
	rig_wait(t, id);
	check_refused(t, third, "MAX_SANDBOXES");
	check_unlocked(t);
	json_decref(rig_ask(t, MSG_DELETE,
			    json_pack("{s:s,s:{s:s}}", "tenant", "default", "args",
				      "identifier", "a")));
	rig_run(t, id, third);
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
}

/* What is refused takes no place. */
static void a_run_id_of_another_tenant_makes_no_sandbox(void **state)
{
	static const char *const bodies[] = {
		"{'identifier':'x','commands':[{'argv':['true']}]}",
		"{'identifier':'y','commands':[{'argv':['true']}]}"};
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];

	rig_run(t, id, "{'identifier':'a','commands':[{'argv':['true']}]," ROOT "}");
	rig_wait(t, id);
	for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
		json_t *body = rig_run_body(id, bodies[i]);
		enum edgemsg_type got;

		json_object_set_new(body, "tenant", json_string("other"));
		json_decref(rig_answer(t, rig_send(t, MSG_RUN, body), &got));
		assert_int_equal(MSG_ERR, got);
		check_unlocked(t);
	}
	rig_run(t, id, "{'identifier':'b','commands':[{'argv':['true']}]," ROOT "}");
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
}

static void one_waiting_run_too_many_is_refused(void **state)
{
#define LOCKED "'options':{'as_user':'root','lock_sandbox':true}"
	static const char locked[] =
		"{'identifier':'a','commands':[{'argv':['true']}]," LOCKED "}";
	struct rig *t = *state;
	char first[ID_RUN_LEN + 1], id[ID_RUN_LEN + 1];
	AUTO_FREE char *go = rig_folder(t, "a", "workspace/go");

	rig_run(t, first,
		"{'identifier':'a','commands':[{'shell':'mkfifo /workspace/go; echo; "
		"cat /workspace/go'}]," LOCKED "}");
	rig_wait_event(t, first, STORE_EVENT_COMMAND_STDOUT);
	rig_run(t, id, locked);
	rig_run(t, id, locked);
	check_refused(t, locked, "MAX_QUEUED_RUNS");
	close(open(go, O_WRONLY | O_CLOEXEC));
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, first));
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
}

static bool has_folder(struct rig *t, const char *id)
{
	AUTO_FREE char *path = xasprintf("%s/artifacts/default/a/%s", t->dir, id);

	return io_exists(path);
}

static void old_runs_go_with_their_files_and_newer_ones_stay(void **state)
{
	struct rig *t = *state;
	char ids[4][ID_RUN_LEN + 1], other[ID_RUN_LEN + 1];
	AUTO_FREE char *others = xasprintf("%s/artifacts/default/b", t->dir);

	rig_run(t, other,
		"{'identifier':'b','commands':[{'shell':'date > /artifacts/f'}]," ROOT
		"}");
	rig_wait(t, other);
	assert_true(io_exists(others));
	for (int i = 0; i < 4; i++) {
		rig_run(t, ids[i],
			"{'identifier':'a','commands':[{'shell':'date +%N > "
			"/artifacts/f'}]," ROOT "}");
		assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, ids[i]));
		assert_true(has_folder(t, ids[i]));
	}
	rig_end(t, SIGUSR1);
	rig_start(t); /* sweeps within its first seconds */
	RIG_UNTIL(!has_folder(t, ids[0]) && !has_folder(t, ids[1]));
	assert_true(has_folder(t, ids[2]));
	assert_true(has_folder(t, ids[3]));
	assert_true(has_folder(t, "latest"));
	/* Its only run is gone: nothing is left of it, not even the link. */
	RIG_UNTIL(!io_exists(others));
}

/* What a program started by the runner finds open: nothing of the runner's. */
static void a_child_of_the_runner_has_none_of_its_descriptors(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_FREE char *pid_path = rig_folder(t, "a", "pid");
	AUTO_FREE char *folder = NULL;
	AUTO_BUF pid = BUF_INIT(32);
	struct err e = ERR_INIT;
	struct dirent *de;
	DIR *d;

	rig_run(t, id, "{'identifier':'a','commands':[{'argv':['true']}]," ROOT "}");
	rig_wait(t, id);
	assert_int_equal(0, io_read_file(pid_path, &pid, &e));
	folder = xasprintf("/proc/%ld/fd", strtol(pid.p, NULL, 10));
	d = opendir(folder);
	assert_non_null(d);
	while ((de = readdir(d))) {
		char target[512] = "";

		if (readlinkat(dirfd(d), de->d_name, target, sizeof(target) - 1) < 0)
			continue;
		if (strstr(target, ".sqlite") || strstr(target, "/log") ||
		    strstr(target, "pipe:") || strstr(target, "[eventfd]") ||
		    strstr(target, "[io_uring]"))
			fail_msg("descriptor %s is %s", de->d_name, target);
	}
	closedir(d);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_sandbox_too_many_is_refused_until_one_goes),
		TEST(a_run_id_of_another_tenant_makes_no_sandbox),
		TEST(one_waiting_run_too_many_is_refused),
		TEST(old_runs_go_with_their_files_and_newer_ones_stay),
		TEST(a_child_of_the_runner_has_none_of_its_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
