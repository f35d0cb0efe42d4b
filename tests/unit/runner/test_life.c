/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <sqlite3.h>

#define ROOT "'options':{'as_user':'root'}"

/* What an admin does in the sqlite3 shell. */
static void admin(struct rig *t, const char *sql)
{
	sqlite3 *db = NULL;
	char *words = NULL;

	assert_int_equal(SQLITE_OK, sqlite3_open(t->db, &db));
	sqlite3_busy_timeout(db, WAIT_MS);
	if (sqlite3_exec(db, sql, NULL, NULL, &words) != SQLITE_OK)
		fail_msg("%s", words);
	sqlite3_close(db);
}

static size_t count_sandboxes(struct rig *t)
{
	AUTO_STORE_SANDBOXES l = {0};
	struct err e = ERR_INIT;

	assert_int_equal(0, store_read_sandboxes(t->reader, NULL, &l, &e));
	return l.n;
}

static const char counting[] =
	"{'identifier':'a','commands':[{'shell':'for i in $(seq 1 20000); do echo line "
	"$i; done; read x < /workspace/go; for i in $(seq 20001 30000); do echo line $i; "
	"done'}]," ROOT "}";

static void check_counted(struct rig *t, const char *id)
{
	AUTO_FREE char *out = rig_output(t, id, 0);
	const char *p = out;

	for (int i = 1; i <= 30000; i++) {
		char want[32];
		size_t n = (size_t)snprintf(want, sizeof(want), "line %d\n", i);

		if (strncmp(p, want, n) != 0)
			fail_msg("line %d is not there once", i);
		p += n;
	}
	assert_int_equal('\0', *p);
}

/* Crash or leave: the command goes on, its output comes whole and once. */
static void taken_up_after(struct rig *t, int sig)
{
	char id[ID_RUN_LEN + 1];
	AUTO_FREE char *go = rig_folder(t, "a", "workspace/go");

	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'mkfifo /workspace/go'}]," ROOT
		"}");
	rig_wait(t, id);
	rig_run(t, id, counting);
	rig_wait_event(t, id, STORE_EVENT_COMMAND_STDOUT);
	for (int i = 0; i < 5; i++) {
		rig_end(t, sig);
		rig_start(t);
	}
	close(open(go, O_WRONLY | O_CLOEXEC));
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	check_counted(t, id);
}

static void a_killed_runner_loses_and_doubles_nothing(void **state)
{
	taken_up_after(*state, SIGKILL);
}

static void a_runner_that_leaves_is_taken_over(void **state)
{
	taken_up_after(*state, SIGUSR1);
}

static void a_sandbox_that_dies_ends_its_run_as_lost(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1], next[ID_RUN_LEN + 1];
	AUTO_FREE char *pid_path = rig_folder(t, "a", "pid");
	AUTO_STORE_RUN run = {0};
	AUTO_BUF pid = BUF_INIT(32);
	struct err e = ERR_INIT;

	rig_run(t, id, "{'identifier':'a','commands':[{'shell':'sleep 60'}]," ROOT "}");
	rig_wait_event(t, id, STORE_EVENT_COMMAND_STARTED);
	assert_int_equal(0, io_read_file(pid_path, &pid, &e));
	kill((pid_t)strtol(pid.p, NULL, 10), SIGKILL);
	assert_int_equal(STORE_RUN_FAILED, rig_wait(t, id));
	rig_read_run(t, id, &run);
	assert_int_equal(STORE_COMMAND_LOST, run.commands[0].status);
	assert_non_null(strstr(run.commands[0].reason, "run the command again"));
	rig_run(t, next, "{'identifier':'a','commands':[{'argv':['true']}]," ROOT "}");
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, next));
}

static void a_backend_that_knows_says_why_and_what_is_left(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1], next[ID_RUN_LEN + 1];
	AUTO_FREE char *pid_path = rig_folder(t, "a", "pid");
	AUTO_FREE char *ended_path = rig_folder(t, "a", "ended");
	AUTO_STORE_RUN run = {0};
	AUTO_BUF pid = BUF_INIT(32);
	struct err e = ERR_INIT;

	rig_run(t, id, "{'identifier':'a','commands':[{'shell':'sleep 60'}]," ROOT "}");
	rig_wait_event(t, id, STORE_EVENT_COMMAND_STARTED);
	assert_int_equal(0, io_read_file(pid_path, &pid, &e));
	assert_int_equal(0, io_write_file_atomic(ended_path, "1", 1, 0600, &e));
	kill((pid_t)strtol(pid.p, NULL, 10), SIGKILL);
	assert_int_equal(STORE_RUN_FAILED, rig_wait(t, id));
	rig_read_run(t, id, &run);
	assert_string_equal(run.commands[0].reason, "the node took it away");
	rig_run(t, next, "{'identifier':'a','commands':[{'argv':['true']}]," ROOT "}");
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, next));
	rig_check_recreated(t, next, "only half of it is kept");
}

/* gVisor ends as one when memory is short. */
static void a_sandbox_that_dies_of_its_memory_limit_says_so(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_FREE char *pid_path = rig_folder(t, "a", "pid");
	AUTO_FREE char *oom_path = rig_folder(t, "a", "oom");
	AUTO_STORE_RUN run = {0};
	AUTO_BUF pid = BUF_INIT(32);
	struct err e = ERR_INIT;

	rig_run(t, id, "{'identifier':'a','commands':[{'shell':'sleep 60'}]," ROOT "}");
	rig_wait_event(t, id, STORE_EVENT_COMMAND_STARTED);
	assert_int_equal(0, io_read_file(pid_path, &pid, &e));
	assert_int_equal(0, io_write_file_atomic(oom_path, "1", 1, 0600, &e));
	kill((pid_t)strtol(pid.p, NULL, 10), SIGKILL);
	assert_int_equal(STORE_RUN_FAILED, rig_wait(t, id));
	rig_read_run(t, id, &run);
	assert_int_equal(STORE_COMMAND_LOST, run.commands[0].status);
	assert_non_null(strstr(run.commands[0].reason, "memory limit"));
}

static void a_delete_ends_what_runs(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_FREE char *folder = rig_folder(t, "a", "pid");
	AUTO_STORE_RUN run = {0};
	json_t *answer;

	rig_run(t, id, "{'identifier':'a','commands':[{'shell':'sleep 60'}]," ROOT "}");
	rig_wait_event(t, id, STORE_EVENT_COMMAND_STARTED);
	answer = rig_ask(t, MSG_DELETE,
			 json_pack("{s:s,s:{s:s}}", "tenant", "default", "args",
				   "identifier", "a"));
	assert_true(json_is_true(json_object_get(answer, "deleted")));
	json_decref(answer);
	assert_int_equal(STORE_RUN_CANCELED, rig_wait(t, id));
	rig_read_run(t, id, &run);
	assert_non_null(strstr(run.error, "deleted"));
	assert_false(io_exists(folder));
	assert_int_equal(0, count_sandboxes(t));
	answer = rig_ask(t, MSG_DELETE,
			 json_pack("{s:s,s:{s:s}}", "tenant", "default", "args",
				   "identifier", "a"));
	assert_true(json_is_false(json_object_get(answer, "deleted")));
	json_decref(answer);
}

static void a_restart_makes_a_fresh_sandbox(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	json_t *answer;

	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'touch /workspace/f'}]," ROOT
		"}");
	rig_wait(t, id);
	answer = rig_ask(t, MSG_RESTART,
			 json_pack("{s:s,s:{s:s}}", "tenant", "default", "args",
				   "identifier", "a"));
	assert_string_equal("fake",
			    json_string_value(json_object_get(
				    json_object_get(answer, "sandbox"), "image")));
	json_decref(answer);
	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'ls /workspace/f'}]," ROOT "}");
	assert_int_equal(STORE_RUN_FAILED, rig_wait(t, id));
}

static json_t *only(int64_t made_at)
{
	return json_pack("{s:s,s:{s:s},s:I}", "tenant", "default", "args", "identifier",
			 "a", "only", (json_int_t)made_at);
}

static int64_t made_at(struct rig *t)
{
	struct err e = ERR_INIT;
	int64_t at = -1;

	assert_int_equal(0,
			 store_read_sandbox_created(t->reader, "default", "a", &at, &e));
	return at;
}

/* The words that refuse it, and nothing is done. */
static void check_refused(struct rig *t, enum edgemsg_type type, int64_t asked_for)
{
	enum edgemsg_type got;
	AUTO_JSON *answer = rig_answer(t, rig_send(t, type, only(asked_for)), &got);
	int64_t before = made_at(t);

	assert_int_equal(MSG_ERR, got);
	assert_string_equal("denied", json_get_string(answer, "kind"));
	assert_non_null(strstr(json_get_string(answer, "message"), "another one"));
	assert_int_equal(before, made_at(t));
}

static void what_was_agreed_to_for_one_sandbox_ends_no_other(void **state)
{
	static const enum edgemsg_type both[] = {MSG_RESTART, MSG_DELETE};
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	int64_t was;

	/* Before the backend is ready, a delete is refused for that. */
	rig_run(t, id, "{'identifier':'other','commands':[{'shell':'true'}]}");
	rig_wait(t, id);
	/* It was agreed to when there was none: nothing is lost. */
	json_decref(rig_ask(t, MSG_DELETE, only(0)));
	for (size_t i = 0; i < 2; i++) {
		rig_run(t, id, "{'identifier':'a','commands':[{'shell':'true'}]}");
		rig_wait(t, id);
		was = made_at(t);
		assert_true(was > 0);
		check_refused(t, both[i], 0);
		check_refused(t, both[i], was - 1);
		json_decref(rig_ask(t, both[i], only(was)));
		if (both[i] == MSG_RESTART)
			check_refused(t, MSG_RESTART, was); /* it was good once */
	}
	assert_int_equal(0, made_at(t));
	json_decref(rig_ask(t, MSG_DELETE, only(was)));
}

/* Fails unless there is exactly one such row. */
static void check_audited(struct rig *t, const char *where)
{
	AUTO_FREE char *sql = xasprintf("SELECT count(*) FROM audit WHERE %s", where);
	sqlite3 *db = NULL;
	sqlite3_stmt *st = NULL;

	assert_int_equal(SQLITE_OK, sqlite3_open(t->db, &db));
	sqlite3_busy_timeout(db, WAIT_MS);
	assert_int_equal(SQLITE_OK, sqlite3_prepare_v2(db, sql, -1, &st, NULL));
	assert_int_equal(SQLITE_ROW, sqlite3_step(st));
	if (sqlite3_column_int(st, 0) != 1)
		fail_msg("%d rows of audit have %s", sqlite3_column_int(st, 0), where);
	sqlite3_finalize(st);
	sqlite3_close(db);
}

/* The one in use began first: its time is over before the idle one's is. */
static void an_expired_sandbox_goes_but_not_one_in_use(void **state)
{
	struct rig *t = *state;
	char busy[ID_RUN_LEN + 1], idle[ID_RUN_LEN + 1];
	AUTO_FREE char *idle_folder = rig_folder(t, "idle", "pid");
	AUTO_FREE char *busy_folder = rig_folder(t, "busy", "pid");
	AUTO_FREE char *go = rig_folder(t, "busy", "workspace/go");

	rig_run(t, busy,
		"{'identifier':'busy','commands':[{'shell':'mkfifo /workspace/go; echo; "
		"cat /workspace/go'}],"
		"'options':{'as_user':'root','ttl_seconds':1}}");
	rig_wait_event(t, busy, STORE_EVENT_COMMAND_STDOUT);
	rig_run(t, idle,
		"{'identifier':'idle','commands':[{'argv':['true']}],"
		"'options':{'as_user':'root','ttl_seconds':1}}");
	rig_wait(t, idle);
	RIG_UNTIL(!io_exists(idle_folder));
	assert_true(io_exists(busy_folder));
	close(open(go, O_WRONLY | O_CLOEXEC));
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, busy));
	check_audited(t, "actor = 'server' AND action = 'expire_sandbox' AND subject = "
			 "'idle'");
}

static void an_admins_update_cancels_a_run(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];

	rig_run(t, id, "{'identifier':'a','commands':[{'shell':'sleep 60'}]," ROOT "}");
	rig_wait_event(t, id, STORE_EVENT_COMMAND_STARTED);
	admin(t, "UPDATE runs SET cancel_requested = 1");
	assert_int_equal(STORE_RUN_CANCELED, rig_wait(t, id));
	check_audited(t, "actor = 'admin' AND action = 'cancel_run'");
}

static void a_stop_ends_runs_and_keeps_files(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_STORE_RUN run = {0};
	AUTO_FREE char *out = NULL;

	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'echo kept > /workspace/f; trap "
		": TERM; echo x; while :; do sleep 1; done'}]," ROOT "}");
	rig_wait_event(t, id, STORE_EVENT_COMMAND_STDOUT);
	rig_end(t, SIGTERM);
	rig_read_run(t, id, &run);
	assert_int_equal(STORE_RUN_CANCELED, run.state);
	assert_string_equal("the server was stopped", run.error);
	rig_start(t);
	rig_run(t, id,
		"{'identifier':'a','commands':[{'shell':'cat /workspace/f'}]," ROOT "}");
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	out = rig_output(t, id, 0);
	assert_string_equal("kept\n", out);
}

/* How many creates the fake backend was asked for. */
static int64_t creates(struct rig *t)
{
	AUTO_FREE char *path = xasprintf("%s/fake/creates", t->dir);
	struct stat st;

	return stat(path, &st) < 0 ? 0 : st.st_size;
}

/* It ends when the gate is opened. */
static void begin_slow_create(struct rig *t, char id[ID_RUN_LEN + 1])
{
	static char gate[100];

	rig_end(t, SIGUSR1);
	snprintf(gate, sizeof(gate), "%s/gate", t->dir);
	fake_create_gate = gate;
	rig_start(t);
	rig_run(t, id, "{'identifier':'a','commands':[{'argv':['true']}]," ROOT "}");
	RIG_UNTIL(creates(t) > 0);
}

static void open_gate(void)
{
	close(open(fake_create_gate, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

/* Ends the runner by that signal; the create ends after it is sent. */
static void end_in_create(struct rig *t, int sig)
{
	kill(t->runner, sig);
	open_gate();
	waitpid(t->runner, NULL, 0);
	close(t->life[1]);
}

static void a_runner_that_leaves_ends_its_creates_first(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];

	begin_slow_create(t, id);
	end_in_create(t, SIGUSR1);
	rig_start(t);
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	assert_int_equal(1, creates(t));
}

static void a_runner_killed_in_a_create_is_followed_by_one_that_creates(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];

	begin_slow_create(t, id);
	rig_end(t, SIGKILL);
	open_gate();
	rig_start(t);
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	assert_int_equal(2, creates(t));
}

static void a_stop_in_a_create_leaves_no_sandbox_running(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1], proc[64];
	AUTO_FREE char *pid_path = rig_folder(t, "a", "pid");
	AUTO_BUF pid = BUF_INIT(32);
	struct err e = ERR_INIT;

	begin_slow_create(t, id);
	kill(t->runner, SIGTERM);
	assert_int_equal(STORE_RUN_CANCELED, rig_wait(t, id));
	end_in_create(t, SIGTERM);
	assert_int_equal(0, io_read_file(pid_path, &pid, &e));
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
	snprintf(proc, sizeof(proc), "/proc/%ld", strtol(pid.p, NULL, 10));
	assert_false(io_exists(proc));
	rig_start(t);
}

static void an_unknown_sandbox_is_removed_at_the_start(void **state)
{
	struct rig *t = *state;
	AUTO_FREE char *orphan = xasprintf("%s/fake/mcp-sbx-orphan-00000000", t->dir);
	struct err e = ERR_INIT;
	char id[ID_RUN_LEN + 1];

	rig_end(t, SIGKILL);
	assert_int_equal(0, io_mkdirs(orphan, 0700, &e));
	rig_start(t);
	rig_run(t, id, "{'identifier':'a','commands':[{'argv':['true']}]," ROOT "}");
	rig_wait(t, id);
	RIG_UNTIL(!io_exists(orphan));
}

static void assert_event(const struct store_event *ev, enum store_event_type type,
			 const char *words)
{
	assert_int_equal(ev->type, type);
	assert_non_null(memmem(ev->data, ev->n, words, strlen(words)));
}

static void what_a_sandbox_waits_for_is_told_before_the_run_starts(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_STORE_EVENTS l = {0};
	struct err e = ERR_INIT;

	rig_end(t, SIGUSR1);
	fake_create_words = "half of it\xff is there";
	rig_start(t);
	rig_run(t, id, "{'identifier':'a','commands':[{'argv':['true']}]," ROOT "}");
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	assert_int_equal(
		0, store_read_run_events(t->reader,
					 &(struct store_run_query){.run_id = id,
								   .max_events = 100,
								   .max_bytes = 1 << 20},
					 &l, &e));
	assert_int_equal(l.n, 7);
	assert_event(&l.v[0], STORE_EVENT_SANDBOX_PROGRESS,
		     "half of it\xef\xbf\xbd is there");
	assert_event(&l.v[1], STORE_EVENT_SANDBOX_PROGRESS, "for this one");
	assert_event(&l.v[2], STORE_EVENT_RUN_STARTED, "fresh_sandbox");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_killed_runner_loses_and_doubles_nothing),
		TEST(a_runner_that_leaves_is_taken_over),
		TEST(a_sandbox_that_dies_ends_its_run_as_lost),
		TEST(a_backend_that_knows_says_why_and_what_is_left),
		TEST(a_sandbox_that_dies_of_its_memory_limit_says_so),
		TEST(a_delete_ends_what_runs),
		TEST(a_restart_makes_a_fresh_sandbox),
		TEST(what_was_agreed_to_for_one_sandbox_ends_no_other),
		TEST(an_expired_sandbox_goes_but_not_one_in_use),
		TEST(an_admins_update_cancels_a_run),
		TEST(a_stop_ends_runs_and_keeps_files),
		TEST(a_runner_that_leaves_ends_its_creates_first),
		TEST(a_runner_killed_in_a_create_is_followed_by_one_that_creates),
		TEST(a_stop_in_a_create_leaves_no_sandbox_running),
		TEST(what_a_sandbox_waits_for_is_told_before_the_run_starts),
		TEST(an_unknown_sandbox_is_removed_at_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
