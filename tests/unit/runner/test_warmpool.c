/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <sqlite3.h>
#include <sys/resource.h>

#include "base/clock.h"

#define ROOT "'options':{'as_user':'root'}"

static void small_pool(struct conf *c)
{
	c->warm_pool_size = 2;
}

/* ---- looking */

/* The first column of the first row, as a number; no row: -1. */
static int64_t sql(struct rig *t, const char *text)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *st = NULL;
	int64_t n = -1;

	assert_int_equal(SQLITE_OK, sqlite3_open(t->db, &db));
	sqlite3_busy_timeout(db, WAIT_MS);
	if (sqlite3_prepare_v2(db, text, -1, &st, NULL) != SQLITE_OK)
		fail_msg("%s", sqlite3_errmsg(db));
	if (sqlite3_step(st) == SQLITE_ROW)
		n = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	sqlite3_close(db);
	return n;
}

static int64_t metric(struct rig *t, const char *name)
{
	json_t *answer = rig_ask(t, MSG_STATUS, json_object());
	const char *text = json_string_value(json_object_get(answer, "metrics"));
	AUTO_FREE char *line = xasprintf("\n%s ", name);
	const char *at = strstr(text, line);
	int64_t n;

	assert_non_null(at);
	n = strtoll(at + strlen(line), NULL, 10);
	json_decref(answer);
	return n;
}

static void wait_ready(struct rig *t, int64_t n)
{
	RIG_UNTIL(metric(t, "mcp_warm_pool_ready") == n);
}

/* Sandboxes that the fake backend holds. */
static size_t folders(struct rig *t)
{
	AUTO_FREE char *dir = xasprintf("%s/fake", t->dir);
	DIR *d = opendir(dir);
	struct dirent *de;
	size_t n = 0;

	assert_non_null(d);
	while ((de = readdir(d)))
		n += strncmp(de->d_name, "mcp-sbx-", 8) == 0;
	closedir(d);
	return n;
}

static int64_t creates(struct rig *t)
{
	AUTO_FREE char *path = xasprintf("%s/fake/creates", t->dir);
	struct stat st;

	return stat(path, &st) < 0 ? 0 : st.st_size;
}

/* The name of the sandbox that a run is told and stored to be in. */
static void run_in(struct rig *t, const char *identifier, const char *shell,
		   char name[64])
{
	AUTO_FREE char *args =
		xasprintf("{'identifier':'%s','commands':[{'shell':'%s'}]," ROOT "}",
			  identifier, shell);
	AUTO_STORE_RUN run = {0};
	char id[ID_RUN_LEN + 1];
	json_t *answer;

	id_new_run(id);
	answer = rig_ask(t, MSG_RUN, rig_run_body(id, args));
	snprintf(name, 64, "%s",
		 json_string_value(json_object_get(answer, "sandbox_name")));
	json_decref(answer);
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	rig_read_run(t, id, &run);
	assert_string_equal(name, run.sandbox_name);
}

static bool is_warm_name(const char *name)
{
	return strncmp(name, "mcp-sbx-warm-", 13) == 0 && strlen(name) == 25;
}

static json_t *ask_of(const char *identifier)
{
	return json_pack("{s:s,s:{s:s}}", "tenant", "default", "args", "identifier",
			 identifier);
}

/* ---- tests */

static void a_new_identifier_is_given_one_that_stands_ready(void **state)
{
	struct rig *t = *state;
	char name[64], again[64];
	int64_t before;

	wait_ready(t, 2);
	before = creates(t);
	run_in(t, "a", "true", name);
	assert_true(is_warm_name(name));
	assert_int_equal(1, metric(t, "mcp_warm_pool_hits_total"));
	assert_int_equal(0, metric(t, "mcp_warm_pool_misses_total"));
	run_in(t, "a", "true", again);
	assert_string_equal(name, again);
	wait_ready(t, 2); /* another one in its place */
	assert_int_equal(before + 1, creates(t));
	assert_int_equal(2, sql(t, "SELECT count(*) FROM warm_sandboxes"));
	assert_int_equal(1,
			 sql(t, "SELECT count(*) FROM sandboxes WHERE identifier = 'a'"
				" AND state = 'ready' AND name LIKE 'mcp-sbx-warm-%'"));
}

static void more_identifiers_than_stand_ready_are_served_all_the_same(void **state)
{
	enum { N = 6 };
	struct rig *t = *state;
	char ids[N][ID_RUN_LEN + 1];
	uint64_t asked[N];

	wait_ready(t, 2);
	for (int i = 0; i < N; i++) {
		AUTO_FREE char *args = xasprintf(
			"{'identifier':'n%d','commands':[{'argv':['true']}]," ROOT "}",
			i);

		id_new_run(ids[i]);
		asked[i] = rig_send(t, MSG_RUN, rig_run_body(ids[i], args));
	}
	for (int i = 0; i < N; i++) {
		enum edgemsg_type type;

		json_decref(rig_answer(t, asked[i], &type));
		assert_int_equal(MSG_OK, type);
	}
	for (int i = 0; i < N; i++)
		assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, ids[i]));
	assert_int_equal(N, metric(t, "mcp_warm_pool_hits_total") +
				    metric(t, "mcp_warm_pool_misses_total"));
	assert_true(metric(t, "mcp_warm_pool_hits_total") >= 2);
	assert_int_equal(N, sql(t, "SELECT count(DISTINCT name) FROM sandboxes"));
	wait_ready(t, 2);
}

static void first_calls_at_once_for_one_identifier_take_one(void **state)
{
	enum { N = 20 };
	struct rig *t = *state;
	char ids[N][ID_RUN_LEN + 1];
	uint64_t asked[N];

	wait_ready(t, 2);
	for (int i = 0; i < N; i++) {
		id_new_run(ids[i]);
		asked[i] = rig_send(
			t, MSG_RUN,
			rig_run_body(ids[i],
				     "{'identifier':'a','commands':["
				     "{'shell':'echo x >>/workspace/all'}]," ROOT "}"));
	}
	for (int i = 0; i < N; i++) {
		enum edgemsg_type type;

		json_decref(rig_answer(t, asked[i], &type));
	}
	for (int i = 0; i < N; i++)
		assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, ids[i]));
	assert_int_equal(1, metric(t, "mcp_warm_pool_hits_total"));
	assert_int_equal(1, sql(t, "SELECT count(*) FROM sandboxes"));
}

static void a_file_that_is_written_takes_one_too(void **state)
{
	struct rig *t = *state;
	char name[64];

	wait_ready(t, 2);
	json_decref(rig_ask(t, MSG_FILE_WRITE,
			    json_pack("{s:s,s:{s:s,s:s,s:s}}", "tenant", "default",
				      "args", "identifier", "a", "path", "/workspace/f",
				      "text", "written")));
	assert_int_equal(1, metric(t, "mcp_warm_pool_hits_total"));
	run_in(t, "a", "grep -qx written /workspace/f", name);
	assert_true(is_warm_name(name));
}

static void files_of_an_earlier_sandbox_are_kept_not_exchanged(void **state)
{
	struct rig *t = *state;
	char name[64], again[64];

	wait_ready(t, 2);
	run_in(t, "a", "echo kept >/workspace/f", name);
	rig_end(t, SIGTERM);
	rig_start(t);
	wait_ready(t, 2);
	run_in(t, "a", "grep -qx kept /workspace/f", again);
	assert_string_equal(name, again);
	assert_int_equal(0, metric(t, "mcp_warm_pool_hits_total"));
}

static void a_restart_takes_another_one(void **state)
{
	struct rig *t = *state;
	char name[64], again[64];
	const char *told;
	json_t *answer;

	wait_ready(t, 2);
	run_in(t, "a", "touch /workspace/f", name);
	answer = rig_ask(t, MSG_RESTART, ask_of("a"));
	told = json_string_value(
		json_object_get(json_object_get(answer, "sandbox"), "name"));
	assert_true(is_warm_name(told));
	run_in(t, "a", "! [ -e /workspace/f ]", again);
	assert_string_equal(told, again);
	assert_string_not_equal(name, again);
	json_decref(answer);
	wait_ready(t, 2);
	RIG_UNTIL(folders(t) == 3);
}

static void a_deleted_one_never_comes_back(void **state)
{
	struct rig *t = *state;
	char name[64], again[64];

	wait_ready(t, 2);
	run_in(t, "a", "true", name);
	json_decref(rig_ask(t, MSG_DELETE, ask_of("a")));
	run_in(t, "b", "true", again);
	assert_string_not_equal(name, again);
	wait_ready(t, 2);
	RIG_UNTIL(folders(t) == 3);
}

/* Whatever ends the runner: what stands is used by the next one. */
static void taken_over_after(struct rig *t, int sig)
{
	char name[64];
	int64_t made;

	wait_ready(t, 2);
	made = creates(t);
	rig_end(t, sig);
	rig_start(t);
	wait_ready(t, 2);
	assert_int_equal(made, creates(t));
	run_in(t, "a", "true", name);
	assert_true(is_warm_name(name));
}

static void a_killed_runners_pool_is_taken_over(void **state)
{
	taken_over_after(*state, SIGKILL);
}

static void a_leaving_runners_pool_is_taken_over(void **state)
{
	taken_over_after(*state, SIGUSR1);
}

static void a_runner_killed_while_it_fills_leaves_nothing_over(void **state)
{
	struct rig *t = *state;

	wait_ready(t, 2);
	for (int i = 0; i < 6; i++) {
		rig_end(t, SIGKILL);
		fake_create_delay_ms = 50;
		sql(t, "DELETE FROM warm_sandboxes"); /* so it fills again */
		rig_start(t);
		poll(NULL, 0, 30 * i);
	}
	wait_ready(t, 2);
	RIG_UNTIL(folders(t) == 2);
}

/* Killed at any moment around the binding: the run is accepted or not at all. */
static void a_runner_killed_at_binding_gives_no_sandbox_to_two(void **state)
{
	struct rig *t = *state;
	char name[64];

	for (int i = 0; i < 10; i++) {
		AUTO_FREE char *args = xasprintf(
			"{'identifier':'k%d','commands':[{'shell':'[ ! -e /workspace/f ] "
			"&& touch /workspace/f'}]," ROOT "}",
			i);
		char id[ID_RUN_LEN + 1];

		wait_ready(t, 2);
		id_new_run(id);
		rig_send(t, MSG_RUN, rig_run_body(id, args));
		for (int us = i * 150; us > 0; us--)
			sched_yield();
		rig_end(t, SIGKILL);
		rig_start(t);
		/* An edge asks again; what was accepted is not done twice. */
		json_decref(rig_ask(t, MSG_RUN, rig_run_body(id, args)));
		assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	}
	wait_ready(t, 2);
	run_in(t, "last", "! [ -e /workspace/f ]", name);
	assert_int_equal(sql(t, "SELECT count(*) FROM sandboxes"),
			 sql(t, "SELECT count(DISTINCT name) FROM sandboxes"));
	assert_int_equal(0, sql(t, "SELECT count(*) FROM sandboxes JOIN warm_sandboxes"
				   " USING (name)"));
}

static bool is_in_one(struct rig *t, const char *what)
{
	AUTO_FREE char *dir = xasprintf("%s/fake", t->dir);
	DIR *d = opendir(dir);
	struct dirent *de;
	bool found = false;

	while ((de = readdir(d))) {
		AUTO_FREE char *path = xasprintf("%s/%s/%s", dir, de->d_name, what);

		found |= io_exists(path);
	}
	closedir(d);
	return found;
}

/* Between the start of a command and the commit that says so. */
static void whose_it_is_is_stored_before_its_agent_hears_a_word(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	enum store_run_state s;
	struct err e = ERR_INIT;

	wait_ready(t, 2);
	rig_end(t, SIGUSR1);
	fake_oom_delay_ms = 3600 * 1000; /* it is killed in it */
	rig_start(t);
	wait_ready(t, 2);
	id_new_run(id);
	rig_send(t, MSG_RUN,
		 rig_run_body(id, "{'identifier':'a','commands':[{'shell':'touch "
				  "/workspace/began'}]," ROOT "}"));
	RIG_UNTIL(is_in_one(t, "workspace/began"));
	rig_end(t, SIGKILL);
	assert_int_equal(0, store_read_run_state(t->reader, "default", id, &s, &e));
	assert_int_equal(STORE_RUN_QUEUED, s);
	assert_int_equal(1, sql(t, "SELECT count(*) FROM sandboxes"));
	fake_oom_delay_ms = 0;
	rig_start(t);
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	wait_ready(t, 2);
	assert_int_equal(0, metric(t, "mcp_warm_pool_failures_total"));
}

/* A full disk, by the limit on the size of a file: the commit fails, not the write. */
static void limit_files(struct rig *t, rlim_t bytes)
{
	struct rlimit r = {bytes, RLIM_INFINITY};

	assert_int_equal(0, prlimit(t->runner, RLIMIT_FSIZE, &r, NULL));
}

static enum edgemsg_type try_run(struct rig *t, const char *identifier)
{
	AUTO_FREE char *args =
		xasprintf("{'identifier':'%s','commands':[{'argv':['true']}]," ROOT "}",
			  identifier);
	enum edgemsg_type got;
	char id[ID_RUN_LEN + 1];

	id_new_run(id);
	json_decref(rig_answer(t, rig_send(t, MSG_RUN, rig_run_body(id, args)), &got));
	return got;
}

static void a_binding_that_could_not_be_stored_did_not_happen(void **state)
{
	struct rig *t = *state;
	int64_t made;
	char name[64];

	wait_ready(t, 2);
	made = creates(t);
	limit_files(t, 4096);
	assert_int_equal(MSG_ERR, try_run(t, "a"));
	limit_files(t, RLIM_INFINITY);
	wait_ready(t, 2);
	assert_int_equal(made, creates(t));
	assert_int_equal(0, metric(t, "mcp_warm_pool_failures_total"));
	assert_int_equal(0, sql(t, "SELECT count(*) FROM sandboxes"));
	run_in(t, "b", "true", name);
	assert_true(is_warm_name(name));
}

static void a_delete_finds_one_also_when_nothing_can_be_stored(void **state)
{
	struct rig *t = *state;
	AUTO_FREE char *dir = NULL;
	char name[64];
	json_t *answer;

	wait_ready(t, 2);
	run_in(t, "a", "true", name);
	dir = xasprintf("%s/fake/%s", t->dir, name);
	assert_true(io_exists(dir));
	wait_ready(t, 2);
	limit_files(t, 4096);
	assert_int_equal(MSG_ERR, try_run(t, "b"));
	answer = rig_ask(t, MSG_DELETE, ask_of("a"));
	assert_true(json_is_true(json_object_get(answer, "deleted")));
	json_decref(answer);
	assert_false(io_exists(dir));
	limit_files(t, RLIM_INFINITY);
	wait_ready(t, 2);
}

/* Asked for again by an edge that did not hear the answer. */
static void a_run_that_has_ended_is_given_none(void **state)
{
	static const char args[] =
		"{'identifier':'a','commands':[{'argv':['true']}]," ROOT "}";
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];

	wait_ready(t, 2);
	rig_run(t, id, args);
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	json_decref(rig_ask(t, MSG_DELETE, ask_of("a")));
	wait_ready(t, 2);
	json_decref(rig_ask(t, MSG_RUN, rig_run_body(id, args)));
	assert_int_equal(0, sql(t, "SELECT count(*) FROM sandboxes"));
	assert_int_equal(1, metric(t, "mcp_warm_pool_hits_total"));
}

/* Restarted as changed: none of what stood is there any more, 2 others are. */
static void replaced_after(struct rig *t, void (*change)(struct rig *t))
{
	AUTO_FREE char *old = NULL;
	int64_t made;

	wait_ready(t, 2);
	sql(t, "UPDATE warm_sandboxes SET created_at = 1");
	made = creates(t);
	rig_end(t, SIGUSR1);
	change(t);
	rig_start(t);
	fake_list_outdated = false;
	wait_ready(t, 2);
	assert_int_equal(made + 2, creates(t));
	assert_int_equal(0, sql(t, "SELECT count(*) FROM warm_sandboxes WHERE "
				   "created_at = 1"));
	RIG_UNTIL(folders(t) == 2);
}

static void change_policy(struct rig *t)
{
	(void)t;
	fake_list_outdated = true;
}

static void change_image(struct rig *t)
{
	(void)t;
	fake_list_old_image = true;
}

static void change_limits(struct rig *t)
{
	t->conf.default_memory_mb++;
}

static void boot_again(struct rig *t)
{
	sql(t, "UPDATE warm_sandboxes SET host_boot = 'another'");
}

static void another_policy_replaces_them(void **state)
{
	replaced_after(*state, change_policy);
}

static void another_image_replaces_them(void **state)
{
	replaced_after(*state, change_image);
	fake_list_old_image = false;
}

static void other_limits_replace_them(void **state)
{
	replaced_after(*state, change_limits);
}

static void after_a_boot_of_the_host_none_is_trusted(void **state)
{
	replaced_after(*state, boot_again);
}

static void a_smaller_pool_lets_the_others_go(void **state)
{
	struct rig *t = *state;

	wait_ready(t, 2);
	rig_end(t, SIGUSR1);
	t->conf.warm_pool_size = 1;
	rig_start(t);
	wait_ready(t, 1);
	RIG_UNTIL(folders(t) == 1);
	assert_int_equal(1, metric(t, "mcp_warm_pool_size"));
}

static void a_stop_removes_them(void **state)
{
	struct rig *t = *state;

	wait_ready(t, 2);
	rig_end(t, SIGTERM);
	assert_int_equal(0, folders(t));
	assert_int_equal(0, sql(t, "SELECT count(*) FROM warm_sandboxes"));
	rig_start(t);
}

static void a_stop_while_it_fills_removes_what_was_begun(void **state)
{
	struct rig *t = *state;
	int64_t made;

	wait_ready(t, 2);
	rig_end(t, SIGTERM);
	made = creates(t);
	fake_create_delay_ms = 500;
	rig_start(t);
	RIG_UNTIL(creates(t) > made);
	rig_end(t, SIGTERM);
	assert_int_equal(0, folders(t));
	rig_start(t);
}

static void kill_one(struct rig *t)
{
	AUTO_FREE char *dir = xasprintf("%s/fake", t->dir);
	DIR *d = opendir(dir);
	struct dirent *de;

	while ((de = readdir(d)))
		if (strncmp(de->d_name, "mcp-sbx-warm-", 13) == 0)
			break;
	assert_non_null(de);
	AUTO_FREE char *path = xasprintf("%s/%s/pid", dir, de->d_name);
	AUTO_BUF pid = BUF_INIT(32);
	struct err e = ERR_INIT;

	assert_int_equal(0, io_read_file(path, &pid, &e));
	kill((pid_t)strtol(pid.p, NULL, 10), SIGKILL);
	closedir(d);
}

static void one_that_dies_is_replaced(void **state)
{
	struct rig *t = *state;
	int64_t made;

	wait_ready(t, 2);
	made = creates(t);
	kill_one(t);
	RIG_UNTIL(creates(t) > made);
	wait_ready(t, 2);
	assert_int_equal(made + 1, creates(t));
	assert_int_equal(1, metric(t, "mcp_warm_pool_failures_total"));
	RIG_UNTIL(folders(t) == 2);
}

static void failures_are_waited_out(void **state)
{
	struct rig *t = *state;
	int64_t made, began, most;

	wait_ready(t, 2);
	rig_end(t, SIGTERM);
	fake_create_fails = "no room";
	made = creates(t);
	began = clock_mono_ms();
	rig_start(t);
	RIG_UNTIL(creates(t) >= made + 2);
	poll(NULL, 0, 2500);
	/* Two at once, again after 1 s or more, never in a loop. */
	made = creates(t) - made;
	most = 2 + 2 * ((clock_mono_ms() - began) / 1000);
	assert_in_range(made, 2, most);
	RIG_UNTIL(metric(t, "mcp_warm_pool_failures_total") >= 2);
	fake_create_fails = NULL;
}

static void together_they_keep_to_the_limit(void **state)
{
	struct rig *t = *state;
	char name[64];

	wait_ready(t, 2);
	rig_end(t, SIGUSR1);
	t->conf.max_active_sandboxes = 3;
	rig_start(t);
	wait_ready(t, 2);
	run_in(t, "a", "true", name);
	wait_ready(t, 2);
	run_in(t, "b", "true", name);
	poll(NULL, 0, 1500); /* nothing is to come */
	assert_int_equal(1, metric(t, "mcp_warm_pool_ready"));
	run_in(t, "c", "true", name);
	assert_true(is_warm_name(name));
	assert_int_equal(0, metric(t, "mcp_warm_pool_ready"));
	assert_int_equal(3, folders(t));
}

static void one_that_leaves_needs_its_place_until_it_is_gone(void **state)
{
	struct rig *t = *state;
	int64_t made;

	wait_ready(t, 2);
	rig_end(t, SIGUSR1);
	t->conf.max_active_sandboxes = 2;
	fake_remove_delay_ms = 3000; /* longer than the pause after a failure */
	rig_start(t);
	wait_ready(t, 2);
	made = creates(t);
	kill_one(t);
	for (int i = 0; i < WAIT_MS / 10; i++) {
		assert_in_range(folders(t), 0, 2);
		if (creates(t) > made && metric(t, "mcp_warm_pool_ready") == 2)
			break;
		poll(NULL, 0, 10);
	}
	assert_int_equal(made + 1, creates(t));
	assert_int_equal(2, metric(t, "mcp_warm_pool_ready"));
}

static int pool_setup(void **state)
{
	rig_tune = small_pool;
	return rig_setup(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, pool_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_identifier_is_given_one_that_stands_ready),
		TEST(more_identifiers_than_stand_ready_are_served_all_the_same),
		TEST(first_calls_at_once_for_one_identifier_take_one),
		TEST(a_file_that_is_written_takes_one_too),
		TEST(files_of_an_earlier_sandbox_are_kept_not_exchanged),
		TEST(a_restart_takes_another_one),
		TEST(a_deleted_one_never_comes_back),
		TEST(a_killed_runners_pool_is_taken_over),
		TEST(a_leaving_runners_pool_is_taken_over),
		TEST(a_runner_killed_while_it_fills_leaves_nothing_over),
		TEST(a_runner_killed_at_binding_gives_no_sandbox_to_two),
		TEST(whose_it_is_is_stored_before_its_agent_hears_a_word),
		TEST(a_binding_that_could_not_be_stored_did_not_happen),
		TEST(a_delete_finds_one_also_when_nothing_can_be_stored),
		TEST(a_run_that_has_ended_is_given_none),
		TEST(another_policy_replaces_them),
		TEST(another_image_replaces_them),
		TEST(other_limits_replace_them),
		TEST(after_a_boot_of_the_host_none_is_trusted),
		TEST(a_smaller_pool_lets_the_others_go),
		TEST(a_stop_removes_them),
		TEST(a_stop_while_it_fills_removes_what_was_begun),
		TEST(one_that_dies_is_replaced),
		TEST(failures_are_waited_out),
		TEST(together_they_keep_to_the_limit),
		TEST(one_that_leaves_needs_its_place_until_it_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
