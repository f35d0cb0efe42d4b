/* SPDX-License-Identifier: MIT */
#include "tests/unit/store/rig.h"

static struct store_sandbox a_sandbox(const char *identifier, int64_t expires_at)
{
	return (struct store_sandbox){.tenant = T,
				      .identifier = identifier,
				      .name = "mcp-sbx-x",
				      .backend = "local",
				      .image = "default",
				      .state = STORE_SANDBOX_CREATING,
				      .created_at = 100,
				      .expires_at = expires_at,
				      .ttl_s = 60};
}

static void a_session_lives_from_open_to_close(void **state)
{
	struct rig *g = *state;
	struct store_session s = {.id = "s1",
				  .tenant = T,
				  .protocol_version = "2025-11-25",
				  .client_name = "test",
				  .created_at = 10,
				  .last_seen_at = 10};
	const char *ids[] = {"s1", "unknown"};
	AUTO_STORE_SESSION got = {0};
	bool closed = false;

	OK(store_session_open(g->s, &s, &err));
	OK(store_session_open(g->s, &s, &err));
	OK(store_sessions_touch(g->s, ids, 2, 50, &err));
	OK(store_sessions_touch(g->s, ids, 2, 40, &err)); /* time does not go back */
	rig_commit(g);
	OK(store_read_session(g->r, T, "s1", &got, &err));
	assert_string_equal(got.protocol_version, "2025-11-25");
	assert_string_equal(got.client_name, "test");
	assert_null(got.client_version);
	assert_int_equal(got.last_seen_at, 50);
	FAILS(ERR_NOT_FOUND, store_read_session(g->r, "other", "s1", &got, &err));
	OK(store_session_close(g->s, "other", "s1", &closed, &err));
	assert_false(closed);
	OK(store_session_close(g->s, T, "s1", &closed, &err));
	assert_true(closed);
	OK(store_session_close(g->s, T, "s1", &closed, &err));
	assert_false(closed);
}

static void a_session_has_subscriptions_which_end_with_it(void **state)
{
	struct rig *g = *state;
	struct store_session s = {.id = "s1",
				  .tenant = T,
				  .protocol_version = "x",
				  .client_can = "elicitation"};
	struct store_subscription v = {T, "s1", "sandbox://a"};
	AUTO_STORE_WORDS got = {0};
	AUTO_STORE_WORDS none = {0};
	AUTO_STORE_SESSION row = {0};
	bool closed;

	FAILS(ERR_LIMIT, store_subscribe(g->s, &v, 2, &err));
	OK(store_session_open(g->s, &s, &err));
	OK(store_subscribe(g->s, &v, 2, &err));
	OK(store_subscribe(g->s, &v, 2, &err)); /* again is fine */
	v.uri = "sandbox://b";
	OK(store_subscribe(g->s, &v, 2, &err));
	OK(store_subscribe(g->s, &v, 2, &err)); /* also when there is no room */
	v.uri = "sandbox://c";
	FAILS(ERR_LIMIT, store_subscribe(g->s, &v, 2, &err));
	v.tenant = "other", v.uri = "sandbox://a";
	OK(store_unsubscribe(g->s, &v, &err)); /* not theirs: nothing happens */
	v.tenant = T;
	OK(store_unsubscribe(g->s, &v, &err));
	FAILS(ERR_NOT_FOUND, store_session_log_level(g->s, "other", "s1", "info", &err));
	OK(store_session_log_level(g->s, T, "s1", "info", &err));
	rig_commit(g);
	OK(store_read_subscriptions(g->r, "s1", 10, &got, &err));
	assert_int_equal(got.n, 1);
	assert_string_equal(got.v[0], "sandbox://b");
	OK(store_read_session(g->r, T, "s1", &row, &err));
	assert_string_equal(row.client_can, "elicitation");
	assert_string_equal(row.log_level, "info");
	OK(store_session_close(g->s, T, "s1", &closed, &err));
	rig_commit(g);
	OK(store_read_subscriptions(g->r, "s1", 10, &none, &err));
	assert_int_equal(none.n, 0);
}

static void sessions_expire_when_they_were_not_seen(void **state)
{
	struct rig *g = *state;
	struct store_session s = {
		.id = "old", .tenant = T, .protocol_version = "x", .last_seen_at = 10};
	int64_t n = 0;

	OK(store_session_open(g->s, &s, &err));
	s.id = "new", s.last_seen_at = 20;
	OK(store_session_open(g->s, &s, &err));
	OK(store_sessions_expire(g->s, 20, 1, &n, &err));
	assert_int_equal(n, 1);
	s.id = "newer", s.last_seen_at = 30;
	OK(store_session_open(g->s, &s, &err));
	s.id = "older", s.last_seen_at = 25;
	OK(store_session_open(g->s, &s, &err));
	OK(store_sessions_expire(g->s, 20, 1, &n, &err)); /* all but the last seen */
	assert_int_equal(n, 2);
	rig_commit(g);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM sessions WHERE session_id = "
				    "'newer'"),
			 1);
	struct store_counts c;
	OK(store_read_counts(g->r, &c, &err));
	assert_int_equal(c.sessions, 1);
}

static void an_unknown_tenant_is_refused_and_the_turn_goes_on(void **state)
{
	struct rig *g = *state;
	struct store_session s = {.id = "s", .tenant = "nobody", .protocol_version = "x"};
	struct store_run run = {.run_id = "r", .tenant = "nobody", .identifier = "i"};
	bool existed;

	rig_run(g, "kept");
	FAILS(ERR_NOT_FOUND, store_session_open(g->s, &s, &err));
	FAILS(ERR_NOT_FOUND, store_run_insert(g->s, &run, &existed, &err));
	assert_true(rig_commit(g).wrote);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM runs"), 1);
}

static void a_sandbox_goes_through_its_states(void **state)
{
	struct rig *g = *state;
	struct store_sandbox s = a_sandbox("chat", 1000);
	AUTO_STORE_SANDBOXES all = {0};
	AUTO_STORE_SANDBOXES seen = {0};
	AUTO_STORE_SANDBOXES none = {0};

	OK(store_sandbox_put(g->s, &s, &err));
	s.container_id = "c1";
	s.agent_boot = "00112233445566778899aabbccddeeff";
	OK(store_sandbox_put(g->s, &s, &err));
	OK(store_sandbox_set_state(g->s, T, "chat", STORE_SANDBOX_FAILED, "no disk",
				   &err));
	FAILS(ERR_NOT_FOUND,
	      store_sandbox_set_state(g->s, T, "x", STORE_SANDBOX_READY, NULL, &err));
	rig_commit(g);
	OK(store_sandboxes_all(g->s, &all, &err));
	assert_int_equal(all.n, 1);
	assert_string_equal(all.v[0].agent_boot, s.agent_boot);
	OK(store_read_sandboxes(g->r, NULL, &seen, &err));
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.v[0].state, STORE_SANDBOX_FAILED);
	assert_string_equal(seen.v[0].error, "no disk");
	assert_string_equal(seen.v[0].container_id, "c1");
	assert_int_equal(seen.v[0].ttl_s, 60);
	OK(store_read_sandboxes(g->r, "other", &none, &err));
	assert_int_equal(none.n, 0);
	OK(store_sandbox_remove(g->s, T, "chat", &err));
	OK(store_sandbox_remove(g->s, T, "chat", &err));
	rig_commit(g);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM sandboxes"), 0);
}

static void extending_never_shortens(void **state)
{
	struct rig *g = *state;
	struct store_sandbox s = a_sandbox("chat", 1000);
	int64_t now_is = 0;

	OK(store_sandbox_put(g->s, &s, &err));
	OK(store_sandbox_extend(g->s,
				&(struct store_lease){.tenant = T,
						      .identifier = "chat",
						      .expires_at = 2000,
						      .used_at = 5},
				&now_is, &err));
	assert_int_equal(now_is, 2000);
	OK(store_sandbox_extend(g->s,
				&(struct store_lease){.tenant = T,
						      .identifier = "chat",
						      .expires_at = 1500,
						      .used_at = 6},
				&now_is, &err));
	assert_int_equal(now_is, 2000);
	FAILS(ERR_NOT_FOUND, store_sandbox_extend(g->s,
						  &(struct store_lease){.tenant = T,
									.identifier = "x",
									.expires_at = 1,
									.used_at = 1},
						  &now_is, &err));
	rig_commit(g);
	assert_int_equal(rig_sql(g, "SELECT last_used_at FROM sandboxes"), 6);
}

static void due_sandboxes_come_longest_overdue_first(void **state)
{
	struct rig *g = *state;
	struct store_sandbox a = a_sandbox("a", 30), b = a_sandbox("b", 20),
			     c = a_sandbox("c", 31);
	AUTO_STORE_SANDBOXES due = {0};

	OK(store_sandbox_put(g->s, &a, &err));
	OK(store_sandbox_put(g->s, &b, &err));
	OK(store_sandbox_put(g->s, &c, &err));
	OK(store_sandboxes_due(g->s, 30, &due, &err));
	assert_int_equal(due.n, 2);
	assert_string_equal(due.v[0].identifier, "b");
	assert_string_equal(due.v[1].identifier, "a");
	rig_commit(g);
}

static void a_run_is_inserted_once_and_belongs_to_its_tenant(void **state)
{
	struct rig *g = *state;
	struct store_run again = {.run_id = "r", .tenant = T, .identifier = "other"};
	bool existed = false;

	rig_run(g, "r");
	OK(store_run_insert(g->s, &again, &existed, &err));
	assert_true(existed);
	again.tenant = "other";
	FAILS(ERR_CONFLICT, store_run_insert(g->s, &again, &existed, &err));
	rig_commit(g);

	AUTO_STORE_RUN run = {0};
	OK(store_read_run(g->r, T, "r", &run, &err));
	assert_string_equal(run.identifier, "chat");
	assert_int_equal(run.state, STORE_RUN_QUEUED);
	assert_true(run.as_root && run.continue_on_error && !run.lock_sandbox);
	assert_int_equal(run.ncommands, 2);
	assert_string_equal(run.commands[0].shell, "make");
	assert_string_equal(run.commands[0].env_json, "{\"A\":\"b\"}");
	assert_null(run.commands[0].argv_json);
	assert_string_equal(run.commands[1].argv_json, "[\"true\"]");
	assert_true(run.commands[1].allow_failure);
	assert_int_equal(run.commands[1].exit_code, -1);
	assert_int_equal(run.commands[1].oom, -1);
	FAILS(ERR_NOT_FOUND, store_read_run(g->r, "other", "r", &run, &err));
}

static void a_run_with_a_bad_command_leaves_nothing(void **state)
{
	struct rig *g = *state;
	struct store_command c[] = {{.shell = "a"}, {.shell = "b"}}; /* the same index */
	struct store_run run = {.run_id = "r",
				.tenant = T,
				.identifier = "i",
				.commands = c,
				.ncommands = 2};
	bool existed;

	FAILS(ERR_CONFLICT, store_run_insert(g->s, &run, &existed, &err));
	rig_commit(g);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM runs"), 0);
}

/* Runs "r" to its end, with output, events and artifacts. */
static void whole_run(struct rig *g)
{
	struct store_command done = {.status = STORE_COMMAND_TIMED_OUT,
				     .exit_code = -1,
				     .signal = 9,
				     .reason = "ran longer than 5 ms",
				     .oom = 0,
				     .started_at = 21,
				     .ended_at = 30,
				     .bytes = {9, 4},
				     .truncated = {true, false},
				     .background_left = 2,
				     .cpu_ms = 3,
				     .max_rss_kb = 4};
	struct store_artifact files[] = {
		{.path = "a.txt", .size = 3, .mtime_ns = 77},
		{.path = "sub/link", .skipped_reason = "a symbolic link"}};

	rig_run(g, "r");
	OK(store_run_start(g->s, "r", "sbx", "c1", 20, &err));
	OK(store_event_add(g->s,
			   &(struct store_new_event){.run_id = "r",
						     .type = STORE_EVENT_RUN_STARTED,
						     .at = 20,
						     .command_index = -1,
						     .json = "{}"},
			   &err));
	OK(store_command_start(g->s, "r", 0, 20, &err));
	rig_output(g, "r", 0, "hello", 5);
	OK(store_command_finish(g->s, "r", &done, &err));
	done.status = STORE_COMMAND_COMPLETED;
	OK(store_command_finish(g->s, "r", &done, &err)); /* too late: no effect */
	OK(store_artifacts_add(g->s, "r", NULL, files, 2, &err));
	OK(store_run_artifacts_error(g->s, "r", "one was skipped", &err));
	OK(store_run_finish(g->s, "r", STORE_RUN_FAILED, 40, "command 0 failed", &err));
	OK(store_run_finish(g->s, "r", STORE_RUN_COMPLETED, 50, NULL, &err));
	OK(store_event_add(g->s,
			   &(struct store_new_event){.run_id = "r",
						     .type = STORE_EVENT_RUN_FAILED,
						     .at = 40,
						     .command_index = -1,
						     .json = "{\"x\":1}"},
			   &err));
	rig_commit(g);
}

static void a_whole_run_reads_back_as_it_was_written(void **state)
{
	struct rig *g = *state;
	AUTO_STORE_RUN run = {0};

	whole_run(g);
	OK(store_read_run(g->r, T, "r", &run, &err));
	assert_int_equal(run.state, STORE_RUN_FAILED);
	assert_int_equal(run.started_at, 20);
	assert_int_equal(run.ended_at, 40);
	assert_string_equal(run.error, "command 0 failed");
	assert_string_equal(run.sandbox_name, "sbx");
	assert_string_equal(run.sandbox_container_id, "c1");
	assert_string_equal(run.artifacts_error, "one was skipped");
	assert_int_equal(run.nartifacts, 2);
	assert_string_equal(run.artifacts[1].skipped_reason, "a symbolic link");
	const struct store_command *c = &run.commands[0];
	assert_int_equal(c->status, STORE_COMMAND_TIMED_OUT);
	assert_int_equal(c->exit_code, -1);
	assert_int_equal(c->signal, 9);
	assert_string_equal(c->reason, "ran longer than 5 ms");
	assert_int_equal(c->oom, 0);
	assert_int_equal(c->started_at, 21);
	assert_int_equal(c->ended_at, 30);
	assert_int_equal(c->bytes[STORE_STDOUT], 9);
	assert_int_equal(c->bytes[STORE_STDERR], 4);
	assert_int_equal(c->stored[STORE_STDOUT], 5);
	assert_true(c->truncated[STORE_STDOUT] && !c->truncated[STORE_STDERR]);
	assert_int_equal(c->background_left, 2);
	assert_int_equal(c->cpu_ms, 3);
	assert_int_equal(c->max_rss_kb, 4);
	assert_int_equal(run.commands[1].status, STORE_COMMAND_QUEUED);
}

static void a_run_and_a_command_end_only_in_an_end_state(void **state)
{
	struct rig *g = *state;
	struct store_command c = {.status = STORE_COMMAND_RUNNING};

	rig_run(g, "r");
	FAILS(ERR_INVALID, store_run_finish(g->s, "r", STORE_RUN_RUNNING, 1, NULL, &err));
	FAILS(ERR_INVALID, store_command_finish(g->s, "r", &c, &err));
	c = (struct store_command){.status = STORE_COMMAND_LOST, .index = 2};
	FAILS(ERR_NOT_FOUND, store_command_finish(g->s, "r", &c, &err));
	FAILS(ERR_INVALID, store_event_add(g->s,
					   &(struct store_new_event){
						   .run_id = "r",
						   .type = STORE_EVENT_COMMAND_STDOUT,
						   .at = 1,
						   .command_index = 0,
						   .json = ""},
					   &err));
	FAILS(ERR_NOT_FOUND,
	      store_event_add(g->s,
			      &(struct store_new_event){.run_id = "x",
							.type = STORE_EVENT_RUN_STARTED,
							.at = 1,
							.command_index = -1,
							.json = "{}"},
			      &err));
	rig_commit(g);
}

static void events_are_numbered_per_run_from_one(void **state)
{
	struct rig *g = *state;
	AUTO_STORE_EVENTS l = {0};
	AUTO_STORE_EVENTS rest = {0};

	whole_run(g);
	OK(store_read_run_events(g->r,
				 &(struct store_run_query){.run_id = "r",
							   .max_events = 10,
							   .max_bytes = 1000},
				 &l, &err));
	assert_int_equal(l.n, 3);
	assert_false(l.more);
	for (size_t i = 0; i < l.n; i++)
		assert_int_equal(l.v[i].seq, i + 1);
	assert_int_equal(l.v[0].type, STORE_EVENT_RUN_STARTED);
	assert_int_equal(l.v[0].command_index, -1);
	assert_int_equal(l.v[0].out_offset, -1);
	assert_int_equal(l.v[1].type, STORE_EVENT_COMMAND_STDOUT);
	assert_int_equal(l.v[1].command_index, 0);
	assert_int_equal(l.v[1].out_offset, 0);
	assert_true(store_event_is_terminal(l.v[2].type));
	assert_string_equal(l.v[2].data, "{\"x\":1}");
	OK(store_read_run_events(g->r,
				 &(struct store_run_query){.run_id = "r",
							   .after_seq = 2,
							   .max_events = 10,
							   .max_bytes = 1000},
				 &rest, &err));
	assert_int_equal(rest.n, 1);
}

static void a_run_has_the_artifacts_of_its_base_but_for_its_own(void **state)
{
	struct rig *g = *state;
	struct store_artifact files[] = {
		{.path = "a", .size = 1, .mtime_ns = 5, .ctime_ns = 6},
		{.path = "b", .size = 2, .ctime_ns = 7},
		{.path = "fifo", .skipped_reason = "a fifo"}};
	struct store_artifact own[] = {
		{.path = "b", .size = 9, .ctime_ns = 9, .in_base = STORE_BASE_OTHER},
		{.path = "Z", .size = 4, .ctime_ns = 9},
		{.path = "link", .skipped_reason = "a link"}};
	AUTO_STORE_RUN run = {0}, prev = {0};

	rig_run(g, "r1");
	rig_run(g, "r2");
	OK(store_artifacts_add(g->s, "r1", NULL, files, 3, &err));
	OK(store_artifacts_add(g->s, "r2", "r1", own, 3, &err));
	OK(store_artifacts_add(g->s, "r2", "r1", own, 3, &err)); /* after a crash */
	OK(store_run_finish(g->s, "r1", STORE_RUN_COMPLETED, 100, NULL, &err));
	OK(store_run_finish(g->s, "r2", STORE_RUN_COMPLETED, 200, NULL, &err));
	rig_commit(g);
	OK(store_read_run(g->r, T, "r2", &run, &err));
	assert_int_equal(run.nartifacts, 4); /* sorted */
	assert_string_equal(run.artifacts[0].path, "Z");
	assert_int_equal(run.artifacts[0].in_base, STORE_BASE_NONE);
	assert_string_equal(run.artifacts[1].path, "a");
	assert_int_equal(run.artifacts[1].mtime_ns, 5);
	assert_int_equal(run.artifacts[1].ctime_ns, 6);
	assert_int_equal(run.artifacts[1].in_base, STORE_BASE_SAME);
	assert_int_equal(run.artifacts[2].size, 9);
	assert_int_equal(run.artifacts[2].in_base, STORE_BASE_OTHER);
	assert_string_equal(run.artifacts[3].skipped_reason, "a link");
	OK(store_artifacts_previous(g->s, T, "chat", &prev, &err));
	assert_string_equal(prev.run_id, "r2");
	assert_int_equal(prev.nartifacts, 4);
	assert_int_equal(rig_sql(g, "SELECT artifacts FROM v_runs WHERE run_id = 'r2'"),
			 3);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM v_artifacts"), 3 + 4);
	assert_int_equal(rig_sql(g, "SELECT sum(size) FROM v_artifacts WHERE run_id = "
				    "'r2'"),
			 1 + 9 + 4);
}

static void only_runs_with_copied_files_count_as_latest(void **state)
{
	struct rig *g = *state;
	struct store_artifact a = {.path = "a", .size = 1, .mtime_ns = 5};
	struct store_artifact skipped = {.path = "b", .skipped_reason = "a fifo"};
	AUTO_STORE_RUN prev = {0};
	char latest[STORE_RUN_ID_SIZE], *ignored = NULL;
	AUTO_FREE char *identifier = NULL;

	FAILS(ERR_NOT_FOUND, store_artifacts_previous(g->s, T, "chat", &prev, &err));
	FAILS(ERR_NOT_FOUND, store_read_latest_artifacts(g->r, T, "chat", latest, &err));
	rig_run(g, "r1");
	rig_run(g, "r2");
	rig_run(g, "r3");
	OK(store_artifacts_add(g->s, "r1", NULL, &a, 1, &err));
	OK(store_artifacts_add(g->s, "r2", NULL, &skipped, 1, &err));
	OK(store_artifacts_add(g->s, "r3", NULL, &a, 1, &err));
	OK(store_run_finish(g->s, "r1", STORE_RUN_COMPLETED, 100, NULL, &err));
	OK(store_run_finish(g->s, "r2", STORE_RUN_COMPLETED, 200, NULL, &err));
	rig_commit(g); /* r3 goes on */
	OK(store_artifacts_previous(g->s, T, "chat", &prev, &err));
	assert_string_equal(prev.run_id, "r1");
	assert_int_equal(prev.nartifacts, 1);
	assert_int_equal(prev.artifacts[0].mtime_ns, 5);
	OK(store_read_latest_artifacts(g->r, T, "chat", latest, &err));
	assert_string_equal(latest, "r1");
	OK(store_read_latest_of(g->r, T, "r1", &identifier, &err));
	assert_string_equal(identifier, "chat");
	FAILS(ERR_NOT_FOUND, store_read_latest_of(g->r, T, "r2", &ignored, &err));
	FAILS(ERR_NOT_FOUND, store_read_latest_of(g->r, T, "r3", &ignored, &err));
	FAILS(ERR_NOT_FOUND, store_read_latest_of(g->r, "other", "r1", &ignored, &err));
	OK(store_run_finish(g->s, "r3", STORE_RUN_COMPLETED, 300, NULL, &err));
	rig_commit(g);
	FAILS(ERR_NOT_FOUND, store_read_latest_of(g->r, T, "r1", &ignored, &err));
	FAILS(ERR_NOT_FOUND, store_artifacts_add(g->s, "none", NULL, &a, 1, &err));
	rig_commit(g);
}

static void unfinished_runs_are_listed_oldest_first(void **state)
{
	struct rig *g = *state;
	AUTO_STORE_RUNS l = {0};

	rig_run_of(g, "late", "i", 30);
	rig_run_of(g, "early", "i", 10);
	rig_run_of(g, "ended", "i", 20);
	OK(store_run_finish(g->s, "ended", STORE_RUN_CANCELED, 40, NULL, &err));
	OK(store_runs_unfinished(g->s, &l, &err));
	assert_int_equal(l.n, 2);
	assert_string_equal(l.v[0].run_id, "early");
	assert_string_equal(l.v[1].run_id, "late");
	assert_string_equal(l.v[1].commands[0].cwd, "/w");
	rig_commit(g);
}

static void states_lists_and_counts_are_read(void **state)
{
	struct rig *g = *state;
	struct store_sandbox s = a_sandbox("chat", 1);
	enum store_run_state st;
	struct store_counts c;
	AUTO_STORE_RUNS recent = {0};

	whole_run(g);
	rig_run_of(g, "r2", "i", 2000);
	OK(store_sandbox_put(g->s, &s, &err));
	rig_commit(g);
	OK(store_read_run_state(g->r, T, "r", &st, &err));
	assert_int_equal(st, STORE_RUN_FAILED);
	FAILS(ERR_NOT_FOUND, store_read_run_state(g->r, T, "none", &st, &err));
	OK(store_read_counts(g->r, &c, &err));
	assert_int_equal(c.runs[STORE_RUN_FAILED], 1);
	assert_int_equal(c.runs[STORE_RUN_QUEUED], 1);
	assert_int_equal(c.sandboxes[STORE_SANDBOX_CREATING], 1);
	OK(store_read_recent_runs(g->r, NULL, 1, &recent, &err));
	assert_int_equal(recent.n, 1);
	assert_string_equal(recent.v[0].run_id, "r2");
}

static void a_warm_sandbox_is_nobodys_until_it_is_bound(void **state)
{
	struct rig *g = *state;
	struct store_warm w = {.name = "mcp-sbx-warm-0123456789ab",
			       .backend = "local",
			       .image = "default/r-1",
			       .made_with = "default 1 1024 256",
			       .host_boot = "b",
			       .created_at = 100};
	struct store_sandbox s = a_sandbox("chat", 1000);
	AUTO_STORE_WARMS all = {0}, none = {0};
	struct store_counts counts;
	AUTO_STORE_SANDBOXES seen = {0};
	AUTO_FREE char *name = NULL, *other = NULL;
	int64_t created = -1;

	OK(store_warm_put(g->s, &w, &err));
	OK(store_warm_put(g->s, &w, &err));
	rig_commit(g);
	OK(store_read_counts(g->r, &counts, &err));
	assert_int_equal(counts.warm, 1);
	OK(store_warm_all(g->s, &all, &err));
	assert_int_equal(all.n, 1);
	assert_string_equal(all.v[0].name, w.name);
	assert_string_equal(all.v[0].made_with, w.made_with);
	assert_string_equal(all.v[0].host_boot, "b");
	assert_null(all.v[0].container_id);
	assert_int_equal(all.v[0].created_at, 100);
	OK(store_read_sandboxes(g->r, NULL, &seen, &err));
	assert_int_equal(seen.n, 0);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM v_sandboxes WHERE state = "
				    "'warm' AND identifier IS NULL"),
			 1);
	s.name = w.name;
	OK(store_warm_remove(g->s, w.name, &err));
	OK(store_sandbox_put(g->s, &s, &err));
	rig_commit(g);
	OK(store_warm_all(g->s, &none, &err));
	assert_int_equal(none.n, 0);
	OK(store_sandbox_name(g->s, T, "chat", &name, &created, &err));
	assert_string_equal(name, w.name);
	assert_int_equal(created, s.created_at);
	OK(store_sandbox_name(g->s, T, "other", &other, &created, &err));
	assert_null(other);
	assert_int_equal(created, 0);
	OK(store_read_sandbox_created(g->r, T, "chat", &created, &err));
	assert_int_equal(created, s.created_at);
	OK(store_read_sandbox_created(g->r, "tenant b", "chat", &created, &err));
	assert_int_equal(created, 0);
}

static void every_word_of_the_schema_is_accepted(void **state)
{
	struct rig *g = *state;

	for (int i = 0; i < STORE_SANDBOX_STATE_COUNT; i++) {
		struct store_sandbox s = a_sandbox("chat", 1);
		s.state = (enum store_sandbox_state)i;
		OK(store_sandbox_put(g->s, &s, &err));
	}
	for (int i = STORE_COMMAND_COMPLETED; i < STORE_COMMAND_STATUS_COUNT; i++) {
		struct store_command c = {.status = (enum store_command_status)i};
		char id[16];

		snprintf(id, sizeof id, "r%d", i);
		rig_run(g, id);
		OK(store_command_finish(g->s, id, &c, &err));
		OK(store_run_finish(g->s, id, STORE_RUN_COMPLETED + i % 3, 1, NULL,
				    &err));
	}
	rig_commit(g);
	/* The writer does not look at the CHECKs; this does. */
	assert_int_equal(rig_sql(g, "SELECT integrity_check = 'ok'"
				    " FROM pragma_integrity_check"),
			 1);
}

static void audit_rows_are_kept(void **state)
{
	struct rig *g = *state;
	struct store_audit_row a = {.at = 1,
				    .tenant = T,
				    .actor = "runner",
				    .action = "sandbox.delete",
				    .subject = "chat"};

	OK(store_audit(g->s, &a, &err));
	rig_commit(g);
	assert_int_equal(
		rig_sql(g, "SELECT count(*) FROM v_audit WHERE actor = 'runner'"), 1);
}

static void what_an_admin_changes_is_noticed_once(void **state)
{
	struct rig *g = *state;
	struct store_sandbox s = a_sandbox("chat", 1000);
	struct store_changes c = {0};
	bool changed = false;
	int64_t before = 0, after = 0;

	rig_run(g, "r");
	rig_run(g, "other");
	OK(store_sandbox_put(g->s, &s, &err));
	rig_commit(g);
	OK(store_changes_poll(g->s, &changed, &c, &err)); /* the first one looks anyway */
	assert_true(changed);
	assert_int_equal(c.cancel.n, 0);
	store_changes_release(&c);
	rig_run(g, "own"); /* its own writes are no news */
	rig_commit(g);
	OK(store_changes_poll(g->s, &changed, &c, &err));
	assert_false(changed);
	OK(store_read_data_version(g->r, &before, &err));

	rig_sql(g, "UPDATE runs SET cancel_requested = 1 WHERE run_id = 'r'");
	rig_sql(g, "UPDATE sandboxes SET expires_at = expires_at + 500");
	OK(store_read_data_version(g->r, &after, &err));
	assert_int_not_equal(before, after);
	OK(store_changes_poll(g->s, &changed, &c, &err));
	assert_true(changed);
	assert_int_equal(c.cancel.n, 1);
	assert_string_equal(c.cancel.v[0].run_id, "r");
	assert_int_equal(c.sandboxes.v[0].expires_at, 1500);
	store_changes_release(&c);
	OK(store_changes_poll(g->s, &changed, &c, &err));
	assert_false(changed);
}

static void a_commit_without_writes_does_nothing(void **state)
{
	struct rig *g = *state;
	struct store_stats st;
	struct store_commit_info info = rig_commit(g);

	assert_false(info.wrote);
	assert_int_equal(info.newest_event_id, 0);
	store_stats(g->s, &st);
	assert_int_equal(st.commits, 0);
	rig_run(g, "r");
	info = rig_commit(g);
	assert_true(info.wrote);
	store_stats(g->s, &st);
	assert_int_equal(st.commits, 1);
	assert_true(st.wal_bytes > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(a_session_lives_from_open_to_close),
		RIG_TEST(a_session_has_subscriptions_which_end_with_it),
		RIG_TEST(sessions_expire_when_they_were_not_seen),
		RIG_TEST(an_unknown_tenant_is_refused_and_the_turn_goes_on),
		RIG_TEST(a_sandbox_goes_through_its_states),
		RIG_TEST(extending_never_shortens),
		RIG_TEST(due_sandboxes_come_longest_overdue_first),
		RIG_TEST(a_run_is_inserted_once_and_belongs_to_its_tenant),
		RIG_TEST(a_run_with_a_bad_command_leaves_nothing),
		RIG_TEST(a_whole_run_reads_back_as_it_was_written),
		RIG_TEST(a_run_and_a_command_end_only_in_an_end_state),
		RIG_TEST(events_are_numbered_per_run_from_one),
		RIG_TEST(a_run_has_the_artifacts_of_its_base_but_for_its_own),
		RIG_TEST(only_runs_with_copied_files_count_as_latest),
		RIG_TEST(unfinished_runs_are_listed_oldest_first),
		RIG_TEST(states_lists_and_counts_are_read),
		RIG_TEST(a_warm_sandbox_is_nobodys_until_it_is_bound),
		RIG_TEST(every_word_of_the_schema_is_accepted),
		RIG_TEST(audit_rows_are_kept),
		RIG_TEST(what_an_admin_changes_is_noticed_once),
		RIG_TEST(a_commit_without_writes_does_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
