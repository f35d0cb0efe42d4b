/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "runner/agentconn.h"

/* What goes wrong around a run: the store, the backend, the agent, the time. */

#define ROOT "'options':{'as_user':'root'}"
#define TRUE "{'identifier':'a','commands':[{'argv':['true']}]," ROOT "}"

static sqlite3 *admin_open(struct rig *t)
{
	sqlite3 *db = NULL;

	assert_int_equal(SQLITE_OK, sqlite3_open(t->db, &db));
	sqlite3_busy_timeout(db, WAIT_MS);
	return db;
}

static void admin_exec(sqlite3 *db, const char *sql)
{
	char *words = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &words) != SQLITE_OK)
		fail_msg("%s", words);
}

static void admin(struct rig *t, const char *sql)
{
	sqlite3 *db = admin_open(t);

	admin_exec(db, sql);
	sqlite3_close(db);
}

/* Until the status says so, looked at once in a while. */
static void wait_until(struct rig *t, const char *what, bool ok)
{
	RIG_UNTIL(rig_is_ok(t, what) == ok);
}

/* MSG_OK or MSG_ERR: it may be refused. */
static enum edgemsg_type try_run(struct rig *t, char id[ID_RUN_LEN + 1])
{
	enum edgemsg_type got;
	json_t *answer;

	id_new_run(id);
	answer = rig_answer(t, rig_send(t, MSG_RUN, rig_run_body(id, TRUE)), &got);
	if (got == MSG_ERR)
		print_message("refused: %s\n", json_get_string(answer, "message"));
	json_decref(answer);
	return got;
}

static void a_delete_that_waits_for_a_backend_that_fails_kills_nobody(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];

	rig_run(t, id, TRUE);
	rig_wait(t, id);
	rig_end(t, SIGKILL);
	admin(t, "UPDATE sandboxes SET state = 'deleting'");
	fake_open_fails = "no runtime is here";
	rig_start(t);
	rig_run(t, id, TRUE);
	assert_int_equal(STORE_RUN_FAILED, rig_wait(t, id));
	assert_false(rig_is_ok(t, "backend"));
	assert_int_equal(0, waitpid(t->runner, NULL, WNOHANG));
}

static void a_lock_held_by_another_program_is_got_over(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	sqlite3 *db = admin_open(t);

	admin_exec(db, "BEGIN IMMEDIATE");
	assert_int_equal(MSG_ERR, try_run(t, id));
	wait_until(t, "store", false);
	admin_exec(db, "COMMIT");
	sqlite3_close(db);
	wait_until(t, "store", true);
	assert_int_equal(MSG_OK, try_run(t, id));
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
}

static void limit_files(struct rig *t, rlim_t bytes)
{
	struct rlimit r = {bytes, RLIM_INFINITY};

	assert_int_equal(0, prlimit(t->runner, RLIMIT_FSIZE, &r, NULL));
}

/* A full disk, by the limit on the size of a file. */
static void a_full_disk_is_said_until_it_is_over(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	int64_t until;

	rig_end(t, SIGUSR1);
	signal(SIGXFSZ, SIG_IGN);
	rig_start(t);
	limit_files(t, 4096);
	assert_int_equal(MSG_ERR, try_run(t, id));
	wait_until(t, "store", false);
	for (until = clock_mono_ms() + 3000; clock_mono_ms() < until; poll(NULL, 0, 50))
		assert_false(rig_is_ok(t, "store"));
	limit_files(t, RLIM_INFINITY);
	wait_until(t, "store", true);
	RIG_UNTIL(try_run(t, id) == MSG_OK);
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
}

/* What was accepted goes on, and its output is there whole and once. */
static void a_disk_that_is_full_meanwhile_loses_and_doubles_nothing(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1], name[64];
	AUTO_FREE char *go = NULL;
	AUTO_FREE char *out = NULL;
	const char *p;

	rig_end(t, SIGUSR1);
	signal(SIGXFSZ, SIG_IGN);
	rig_start(t);
	backend_sandbox_name(name, sizeof(name), "0123abcd", "default", "a");
	go = xasprintf("%s/fake/%s/workspace/go", t->dir, name);
	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'mkfifo /workspace/go'}]," ROOT
		"}");
	rig_wait(t, id);
	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'seq 1 20000; read x < "
		"/workspace/go; seq 20001 30000'},{'shell':'seq 5'}]," ROOT "}");
	rig_wait_event(t, id, STORE_EVENT_COMMAND_STDOUT);
	limit_files(t, 4096);
	close(open(go, O_WRONLY | O_CLOEXEC));
	wait_until(t, "store", false);
	poll(NULL, 0, 1200);
	limit_files(t, RLIM_INFINITY);
	wait_until(t, "store", true);
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	p = out = rig_output(t, id, 0);
	for (int i = 1; i <= 30000; i++) {
		char want[16];
		size_t n = (size_t)snprintf(want, sizeof(want), "%d\n", i);

		if (strncmp(p, want, n) != 0)
			fail_msg("line %d is not there once", i);
		p += n;
	}
	assert_int_equal('\0', *p);
}

/*
 * The start of the second command is said to the agent before the commit that
 * fails: it must not run twice, nor be ended as one that nobody knows.
 */
static void what_was_started_before_a_failed_commit_runs_once(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_FREE char *go = rig_folder(t, "a", "workspace/go");
	AUTO_FREE char *second = NULL;
	sqlite3 *db = admin_open(t);

	rig_end(t, SIGUSR1);
	fake_oom_delay_ms = 200; /* the agent has time to start it */
	rig_start(t);
	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'mkfifo /workspace/go; echo a; "
		"cat /workspace/go'},{'shell':'echo once >> /workspace/n; "
		"sleep 2; seq 1 2000; cat /workspace/n'}]," ROOT "}");
	rig_wait_event(t, id, STORE_EVENT_COMMAND_STDOUT);
	admin_exec(db, "BEGIN IMMEDIATE");
	close(open(go, O_WRONLY | O_CLOEXEC));
	wait_until(t, "store", false);
	admin_exec(db, "COMMIT");
	sqlite3_close(db);
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	second = rig_output(t, id, 1);
	assert_int_equal(8893 + 5, strlen(second));
	assert_string_equal("\n2000\nonce\n", second + 8893 - 6);
}

/*
 * The runner dies when the command is over and its run is not stored yet. The edge asks
 * again, perhaps late: the agent tells what it did.
 */
static void a_run_that_was_never_stored_is_asked_for_again_and_runs_once(void **state)
{
	static const char args[] =
		"{'identifier':'a','commands':[{'shell':"
		"'echo once >> /workspace/n; cat /workspace/n'}]," ROOT "}";
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1], other[ID_RUN_LEN + 1];
	AUTO_FREE char *n = rig_folder(t, "a", "workspace/n");
	AUTO_FREE char *out = NULL;

	rig_end(t, SIGUSR1);
	fake_oom_delay_ms = 500; /* it hangs between start and commit */
	rig_start(t);
	rig_run(t, other, TRUE);
	rig_wait(t, other);
	id_new_run(id);
	rig_send(t, MSG_RUN, rig_run_body(id, args));
	while (!io_exists(n))
		poll(NULL, 0, 1);
	poll(NULL, 0, 100); /* it ends; only the agent knows */
	rig_end(t, SIGKILL);
	fake_oom_delay_ms = 0;
	rig_start(t);
	rig_run(t, other, TRUE); /* the new runner has heard of the command */
	rig_wait(t, other);
	json_decref(rig_ask(t, MSG_RUN, rig_run_body(id, args)));
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	out = rig_output(t, id, 0);
	assert_string_equal("once\n", out);
}

static const char half_a_character[] =
	"{'identifier':'a','commands':[{'shell':'printf x\\\\\\\\342\\\\\\\\202; "
	"read x < /workspace/go; printf \\\\\\\\254y'}]," ROOT "}";

/*
 * Half a character waits in the runner's memory. Two connections to one agent
 * and then another runner: it must come from the agent once more.
 */
static void half_a_character_outlives_connection_and_runner(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1], name[64];
	AUTO_FREE char *go = NULL;
	AUTO_FREE char *out = NULL;
	struct err e = ERR_INIT;
	struct backend *b = NULL;
	int fd = -1;

	backend_sandbox_name(name, sizeof(name), "0123abcd", "default", "a");
	go = xasprintf("%s/fake/%s/workspace/go", t->dir, name);
	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'mkfifo /workspace/go'}]," ROOT
		"}");
	rig_wait(t, id);
	rig_run(t, id, half_a_character);
	rig_wait_event(t, id, STORE_EVENT_COMMAND_STDOUT);
	/* Evicts the runner's connection, which comes back at once. */
	assert_int_equal(0, fake_open(&t->conf, "0123abcd", fake_progress, NULL, &b, &e));
	assert_int_equal(0, fake_connect(b, name, &fd, &e));
	poll(NULL, 0, 1500);
	close(fd);
	b->ops->close(b);
	rig_end(t, SIGKILL);
	rig_start(t);
	close(open(go, O_WRONLY | O_CLOEXEC));
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	out = rig_output(t, id, 0);
	assert_string_equal("x\xe2\x82\xacy", out);
}

/* The cap of a command is the one it was started with; ours may be another now. */
static void a_lowered_cap_cuts_what_runs_and_breaks_nothing(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1], name[64];
	AUTO_STORE_RUN run = {0};
	AUTO_FREE char *go = NULL;
	AUTO_FREE char *out = NULL;

	backend_sandbox_name(name, sizeof(name), "0123abcd", "default", "a");
	go = xasprintf("%s/fake/%s/workspace/go", t->dir, name);
	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'mkfifo /workspace/go'}]," ROOT
		"}");
	rig_wait(t, id);
	/* 4000 bytes are one write of head, and so one event. */
	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'head -c 4000 /dev/zero; read x "
		"< /workspace/go; head -c 4000 /dev/zero'},{'argv':['true']}]," ROOT "}");
	rig_wait_event(t, id, STORE_EVENT_COMMAND_STDOUT);
	rig_end(t, SIGUSR1);
	t->conf.stdout_max_bytes = 1000;
	rig_start(t);
	close(open(go, O_WRONLY | O_CLOEXEC));
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	rig_read_run(t, id, &run);
	assert_int_equal(4000, run.commands[0].stored[STORE_STDOUT]);
	assert_int_equal(8000, run.commands[0].bytes[STORE_STDOUT]);
	assert_true(run.commands[0].truncated[STORE_STDOUT]);
}

static pid_t agent_of(struct rig *t, const char *identifier)
{
	struct fake_backend f = {.dir = xasprintf("%s/fake", t->dir)};
	char name[64];
	pid_t pid;

	backend_sandbox_name(name, sizeof(name), "0123abcd", "default", identifier);
	pid = fake_pid(&f.b, name);
	free(f.dir);
	return pid;
}

/* Nothing is adopted yet when TERM comes. */
static void a_stop_while_the_backend_opens_leaves_nothing_running(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_STORE_RUN run = {0};

	rig_run(t, id, "{'identifier':'a','commands':[{'shell':'sleep 60'}]," ROOT "}");
	rig_wait_event(t, id, STORE_EVENT_COMMAND_STARTED);
	rig_end(t, SIGKILL);
	assert_true(agent_of(t, "a") > 0);
	fake_open_delay_ms = 500;
	rig_start(t);
	rig_end(t, SIGTERM);
	assert_int_equal(-1, agent_of(t, "a"));
	rig_read_run(t, id, &run);
	assert_int_equal(STORE_RUN_CANCELED, run.state);
	fake_open_delay_ms = 0;
	rig_start(t);
}

/* Its sandbox would else be removed as the unknown one. */
static void a_run_waits_for_the_removal_of_an_unknown_sandbox_of_its_name(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];

	rig_run(t, id, TRUE);
	rig_wait(t, id);
	rig_end(t, SIGKILL);
	admin(t, "DELETE FROM sandboxes");
	fake_remove_delay_ms = 500;
	rig_start(t);
	wait_until(t, "backend", true);
	rig_run(t, id, "{'identifier':'a','commands':[{'argv':['sleep','1']}]," ROOT "}");
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
}

static bool was_closed(struct rig *t)
{
	AUTO_FREE char *mark = xasprintf("%s/fake/closed", t->dir);

	return io_exists(mark);
}

/* What the backend holds for itself goes only when it is closed. */
static void a_stop_waits_for_what_is_at_work_and_closes_the_backend(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];

	rig_run(t, id, TRUE);
	rig_wait(t, id);
	rig_end(t, SIGKILL);
	admin(t, "DELETE FROM sandboxes");
	fake_remove_delay_ms = 1000;
	rig_start(t);
	wait_until(t, "backend", true); /* the unknown one is being removed */
	rig_end(t, SIGTERM);
	assert_true(was_closed(t));
	assert_int_equal(-1, agent_of(t, "a"));
	rig_start(t);
}

/* Nobody has a record of it any more, and it is not there yet. */
static void a_stop_ends_a_create_that_a_failing_store_had_dropped(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];

	rig_end(t, SIGUSR1);
	signal(SIGXFSZ, SIG_IGN);
	fake_create_delay_ms = 1500;
	rig_start(t);
	wait_until(t, "backend", true);
	limit_files(t, 4096);
	assert_int_equal(MSG_ERR, try_run(t, id));
	rig_end(t, SIGTERM);
	assert_true(was_closed(t));
	assert_int_equal(-1, agent_of(t, "a"));
	fake_create_delay_ms = 0;
	rig_start(t);
}

/* What runs may end as it began; what comes then begins under the new policy. */
static void a_sandbox_of_another_policy_is_started_again_when_it_is_idle(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1], next[ID_RUN_LEN + 1];
	AUTO_STORE_RUN run = {0};
	pid_t before;

	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'echo x; sleep 1; echo kept > "
		"/workspace/f'}]," ROOT "}");
	rig_wait_event(t, id, STORE_EVENT_COMMAND_STDOUT);
	before = agent_of(t, "a");
	rig_end(t, SIGUSR1);
	fake_list_outdated = true;
	rig_start(t);
	rig_run(t, next,
		"{'identifier':'a','commands':[{'shell':'cat /workspace/f'}]," ROOT "}");
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, next));
	rig_read_run(t, next, &run);
	assert_int_equal(5, run.commands[0].bytes[STORE_STDOUT]);
	assert_int_not_equal(before, agent_of(t, "a"));
	rig_check_recreated(t, next, "policy");
	rig_run(t, next, "{'identifier':'a','commands':[{'argv':['true']}]," ROOT "}");
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, next));
	rig_check_recreated(t, next, NULL);
}

/* Found by trying: their names are the same, 8 hex digits of a hash included. */
static void two_identifiers_never_share_a_sandbox(void **state)
{
#define FORTY "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1], a[64], b[64];
	enum edgemsg_type got;
	json_t *answer;

	backend_sandbox_name(a, sizeof(a), "0123abcd", "default", FORTY "371c");
	backend_sandbox_name(b, sizeof(b), "0123abcd", "default", FORTY "ae64");
	assert_string_equal(a, b);
	rig_run(t, id,
		"{'identifier':'" FORTY "371c','commands':[{'argv':['true']}]," ROOT "}");
	rig_wait(t, id);
	id_new_run(id);
	answer = rig_answer(t,
			    rig_send(t, MSG_RUN,
				     rig_run_body(id, "{'identifier':'" FORTY
						      "ae64','commands':[{'argv':"
						      "['true']}]," ROOT "}")),
			    &got);
	assert_int_equal(MSG_ERR, got);
	assert_string_equal("conflict", json_get_string(answer, "kind"));
	json_decref(answer);
}

/* More megabytes of script than wait for one agent: the rest waits its turn. */
static void many_large_scripts_at_once_all_run(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	/* A sanitizer takes a minute for all; that there is no room is release's. */
	enum { RUNS = 3, FILLER = 7 * 1024 * 1024 };
#else
	enum { RUNS = 20, FILLER = 7 * 1024 * 1024 };
#endif
	struct rig *t = *state;
	AUTO_FREE char *script = xcalloc(1, FILLER + 32);
	AUTO_FREE char *log_path = xasprintf("%s/log", t->dir);
	AUTO_BUF log = BUF_INIT(1 << 20);
	char ids[RUNS][ID_RUN_LEN + 1];
	struct err e = ERR_INIT;
	int64_t stopped_ms;
	pid_t agent;

	memset(script, '#', FILLER);
	memcpy(script + FILLER, "\necho end\n", 11);
	rig_run(t, ids[0], TRUE);
	rig_wait(t, ids[0]);
	agent = agent_of(t, "a");
	stopped_ms = clock_mono_ms();
	kill(agent, SIGSTOP);
	for (size_t i = 0; i < RUNS; i++) {
		id_new_run(ids[i]);
		json_decref(
			rig_ask(t, MSG_RUN,
				json_pack("{s:s,s:s,s:{s:s,s:[{s:s}],s:{s:s}}}", "tenant",
					  "default", "run_id", ids[i], "args",
					  "identifier", "a", "commands", "shell", script,
					  "options", "as_user", "root")));
	}
	kill(agent, SIGCONT);
	stopped_ms = clock_mono_ms() - stopped_ms;
	for (size_t i = 0; i < RUNS; i++)
		assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, ids[i]));
	assert_int_equal(0, io_read_file(log_path, &log, &e));
	/* On a very slow machine its silence alone was too long. */
	if (stopped_ms < AGENTCONN_SILENCE_MS / 2)
		assert_null(strstr(log.p, "connecting again"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_delete_that_waits_for_a_backend_that_fails_kills_nobody),
		TEST(a_lock_held_by_another_program_is_got_over),
		TEST(a_full_disk_is_said_until_it_is_over),
		TEST(what_was_started_before_a_failed_commit_runs_once),
		TEST(a_disk_that_is_full_meanwhile_loses_and_doubles_nothing),
		TEST(a_run_that_was_never_stored_is_asked_for_again_and_runs_once),
		TEST(half_a_character_outlives_connection_and_runner),
		TEST(a_stop_while_the_backend_opens_leaves_nothing_running),
		TEST(a_sandbox_of_another_policy_is_started_again_when_it_is_idle),
		TEST(a_run_waits_for_the_removal_of_an_unknown_sandbox_of_its_name),
		TEST(a_stop_waits_for_what_is_at_work_and_closes_the_backend),
		TEST(a_stop_ends_a_create_that_a_failing_store_had_dropped),
		TEST(two_identifiers_never_share_a_sandbox),
		TEST(many_large_scripts_at_once_all_run),
		TEST(a_lowered_cap_cuts_what_runs_and_breaks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
