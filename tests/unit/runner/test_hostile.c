/* SPDX-License-Identifier: MIT */
#include "falseagent.h"

/* ---- the lies; each ends when the runner closes the connection */

/* The command is told of by START, and by RESUME when it is known to run. */
static bool until_told(struct liar *a)
{
	struct ap_offsets o;
	struct ap_msg m;

	if (!liar_hello(a, 1) || !liar_hear(a, AP_RESUME, &m))
		return false;
	if (ap_offsets_next(&m.u.resume.offsets, &o) > 0) {
		a->id = o.id;
		return true;
	}
	return liar_hear(a, AP_START_END, &m);
}

static bool until_started(struct liar *a)
{
	return until_told(a) && liar_started(a);
}

static void listen_on(struct liar *a)
{
	struct ap_msg m;

	liar_hear(a, AP_BYE, &m); /* the runner says none: until the end */
}

static void say_garbage(struct liar *a)
{
	char garbage[4096];

	memset(garbage, 0xa5, sizeof(garbage));
	if (until_started(a) && liar_raw(a, garbage, sizeof(garbage)))
		listen_on(a);
}

static void speak_another_version(struct liar *a)
{
	struct ap_msg m = ap_hello_init();

	m.u.hello.version_min = m.u.hello.version_max = 99;
	if (liar_say(a, &m))
		listen_on(a);
}

static void hang_up(struct liar *a)
{
	liar_hello(a, 1);
}

static void leave_a_gap(struct liar *a)
{
	if (until_started(a) && liar_output(a, 100, "x", 1))
		listen_on(a);
}

static void pass_the_cap(struct liar *a)
{
	char much[4096];
	struct ap_msg m;

	memset(much, 'x', sizeof(much));
	if (until_started(a) && liar_output(a, 0, much, sizeof(much)) &&
	    liar_output(a, sizeof(much), much, sizeof(much)) &&
	    liar_exit(a, 2 * sizeof(much)) && liar_hear(a, AP_FS_LIST, &m) &&
	    liar_fs_end(a, m.u.fs_list.req, ENOENT))
		listen_on(a);
}

static void tell_an_impossible_end(struct liar *a)
{
	struct ap_msg m = {.type = AP_EXIT};

	if (!until_started(a))
		return;
	m.u.exit.id = a->id;
	m.u.exit.value = UINT32_MAX;
	if (liar_say(a, &m))
		listen_on(a);
}

static void forget_what_runs(struct liar *a)
{
	struct ap_msg m = {.type = AP_GONE};

	if (!until_told(a))
		return;
	m.u.ref.id = a->id;
	while (liar_say(a, &m))
		continue;
}

static void be_born_again(struct liar *a)
{
	struct ap_msg m;

	if (!liar_hello(a, (uint8_t)a->nth))
		return;
	if (a->nth > 1) {
		listen_on(a);
	} else if (liar_hear(a, AP_START_END, &m)) {
		liar_started(a);
	}
}

static bool until_listed(struct liar *a, struct ap_msg *m)
{
	if (!liar_hello(a, 1))
		return false;
	if (a->nth == 1 &&
	    !(liar_hear(a, AP_START_END, m) && liar_started(a) && liar_exit(a, 0)))
		return false;
	return liar_hear(a, AP_FS_LIST, m);
}

static void list_for_ever(struct liar *a)
{
	char path[AP_PATH_MAX];
	struct ap_entry entry = {.type = AP_FILE_DIRECTORY};
	struct ap_msg m;

	memset(path, 'd', sizeof(path));
	for (size_t i = 200; i < sizeof(path); i += 200)
		path[i] = '/';
	entry.path = (struct ap_bytes){(const uint8_t *)path, sizeof(path)};
	if (until_listed(a, &m))
		while (liar_entry(a, m.u.fs_list.req, &entry))
			continue;
}

static void list_nothing_for_ever(struct liar *a)
{
	struct ap_msg m, said = {.type = AP_FS_ENTRIES};

	if (!until_listed(a, &m))
		return;
	said.u.fs_entries.req = m.u.fs_list.req;
	while (liar_say(a, &said))
		continue;
}

static void give_more_than_asked(struct liar *a)
{
	struct ap_entry entry = {.size = 3};
	struct ap_msg m, said = {.type = AP_FS_DATA};

	entry.path = (struct ap_bytes){(const uint8_t *)"f", 1};
	if (!until_listed(a, &m) || !liar_entry(a, m.u.fs_list.req, &entry) ||
	    !liar_fs_end(a, m.u.fs_list.req, 0) || !liar_hear(a, AP_FS_READ, &m))
		return;
	said.u.fs_data.req = m.u.fs_read.req;
	said.u.fs_data.bytes = (struct ap_bytes){(const uint8_t *)"abcdef", 6};
	if (liar_say(a, &said))
		listen_on(a);
}

/* Tells true things too often, and numbers nobody can have. */
static void exaggerate(struct liar *a)
{
	struct ap_msg m, x = {.type = AP_EXIT};

	if (!until_started(a))
		return;
	liar_output(a, 0, "abc", 3);
	liar_output(a, 0, "abcdef", 6);
	liar_output(a, 2, "c", 1);
	memset(x.u.exit.id.run, 0xee, sizeof(x.u.exit.id.run));
	liar_say(a, &x);
	x.u.exit.id = a->id;
	x.u.exit.stdout_total = AP_OFFSET_MAX;
	x.u.exit.stdout_kept = 6;
	x.u.exit.user_us = x.u.exit.sys_us = x.u.exit.max_rss_kib = AP_OFFSET_MAX;
	x.u.exit.duration_us = AP_OFFSET_MAX;
	x.u.exit.background = UINT32_MAX;
	liar_say(a, &x);
	liar_say(a, &x);
	if (liar_hear(a, AP_FS_LIST, &m)) {
		struct ap_entry entry = {.size = INT64_MAX};

		entry.path = (struct ap_bytes){(const uint8_t *)"f", 1};
		liar_entry(a, m.u.fs_list.req, &entry);
		liar_fs_end(a, m.u.fs_list.req, 0);
		listen_on(a);
	}
}

/* Lies until it is given up, and is a good agent after it. */
static void reform(struct liar *a)
{
	struct ap_msg m;

	if (a->nth <= 6)
		hang_up(a);
	else if (until_started(a) && liar_exit(a, 0) && liar_hear(a, AP_FS_LIST, &m) &&
		 liar_fs_end(a, m.u.fs_list.req, ENOENT))
		listen_on(a);
}

/* Asks without end and reads nothing. */
static void ask_and_not_listen(struct liar *a)
{
	struct ap_msg ping = {.type = AP_PING};

	if (until_started(a))
		while (liar_say(a, &ping))
			continue;
}

/* The start got lost: its runner was killed, having written down that it runs. */
static void lose_the_start(struct liar *a, uint8_t boot)
{
	struct ap_msg m, gone = {.type = AP_GONE};
	struct ap_offsets o;

	if (!liar_hello(a, boot) || !liar_hear(a, AP_RESUME, &m))
		return;
	if (ap_offsets_next(&m.u.resume.offsets, &o) <= 0) {
		listen_on(a);
		return;
	}
	gone.u.ref.id = o.id;
	if (!liar_say(a, &gone) || !liar_hear(a, AP_START_END, &m))
		return;
	if (liar_started(a) && liar_exit(a, 0) && liar_hear(a, AP_FS_LIST, &m) &&
	    liar_fs_end(a, m.u.fs_list.req, ENOENT))
		listen_on(a);
}

/* Takes the start, and never says a word of it, to no runner. */
static void say_nothing(struct liar *a)
{
	if (liar_hello(a, 1))
		listen_on(a);
}

/*
 * True, and twice: the command was known already when its start came (an earlier runner
 * had said it), and the end of an older telling was on its way.
 */
static void tell_the_rest_first(struct liar *a)
{
	struct ap_msg m;

	if (liar_hello(a, 1) && liar_hear(a, AP_START_END, &m) &&
	    liar_output(a, 2, "c", 1) && liar_exit(a, 3) && liar_started(a) &&
	    liar_output(a, 0, "abc", 3) && liar_exit(a, 3) &&
	    liar_hear(a, AP_FS_LIST, &m) && liar_fs_end(a, m.u.fs_list.req, ENOENT))
		listen_on(a);
}

struct lie {
	const char *name;
	void (*tell)(struct liar *);
	enum store_run_state state;
	enum store_command_status status;
	const char *words; /* in what the run says about it */
};

static const struct lie lies[] = {
	{"garbage", say_garbage, STORE_RUN_FAILED, STORE_COMMAND_LOST, "malformed"},
	{"hangup", hang_up, STORE_RUN_FAILED, STORE_COMMAND_LOST, "closed"},
	{"gap", leave_a_gap, STORE_RUN_FAILED, STORE_COMMAND_LOST, "left out output"},
	{"cap", pass_the_cap, STORE_RUN_COMPLETED, STORE_COMMAND_COMPLETED, NULL},
	{"end", tell_an_impossible_end, STORE_RUN_FAILED, STORE_COMMAND_LOST,
	 "cannot be"},
	{"gone", forget_what_runs, STORE_RUN_FAILED, STORE_COMMAND_LOST, "forgot"},
	{"boot", be_born_again, STORE_RUN_FAILED, STORE_COMMAND_LOST, "started again"},
	{"entries", list_for_ever, STORE_RUN_COMPLETED, STORE_COMMAND_COMPLETED,
	 "/artifacts has more"},
	{"nothing", list_nothing_for_ever, STORE_RUN_COMPLETED, STORE_COMMAND_COMPLETED,
	 "malformed"},
	{"read", give_more_than_asked, STORE_RUN_COMPLETED, STORE_COMMAND_COMPLETED,
	 "not asked for"},
	{"version", speak_another_version, STORE_RUN_FAILED, STORE_COMMAND_QUEUED,
	 "another version"},
	{"numbers", exaggerate, STORE_RUN_COMPLETED, STORE_COMMAND_COMPLETED, NULL},
};
enum { NLIES = sizeof(lies) / sizeof(lies[0]) };

static void tell_lies(const char *name, int fd, int nth)
{
	struct liar *a = xcalloc(1, sizeof(*a));

	a->fd = fd;
	a->nth = nth;
	for (size_t i = 0; i < NLIES; i++)
		if (strcmp(lies[i].name, name) == 0)
			lies[i].tell(a);
	if (strcmp(name, "flood") == 0)
		ask_and_not_listen(a);
	else if (strcmp(name, "reformed") == 0)
		reform(a);
	else if (strcmp(name, "twice") == 0)
		tell_the_rest_first(a);
	else if (strcmp(name, "deaf") == 0)
		lose_the_start(a, 1);
	else if (strcmp(name, "new") == 0)
		lose_the_start(a, (uint8_t)nth);
	else if (strcmp(name, "mute") == 0)
		say_nothing(a);
	free(a);
}

static void tune(struct conf *c)
{
	c->stdout_max_bytes = 1024;
}

static int setup(void **state)
{
	fake_evil = tell_lies;
	rig_tune = tune;
	return rig_setup(state);
}

static void check_lie(struct rig *t, const struct lie *lie, const char *id)
{
	AUTO_STORE_RUN run = {0};
	enum store_run_state s = rig_wait(t, id);
	const char *said;

	rig_read_run(t, id, &run);
	said = run.error ? run.error : run.artifacts_error;
	if (s != lie->state || run.commands[0].status != lie->status ||
	    (lie->words && (!said || !strstr(said, lie->words))))
		fail_msg("%s: %d, %d, %s", lie->name, s, run.commands[0].status,
			 said ? said : "nothing");
}

static void check_numbers(struct rig *t, const char *id)
{
	const int64_t most = (INT64_C(1) << 53) - 1;
	AUTO_FREE char *out = rig_output(t, id, 0);
	AUTO_STORE_RUN run = {0};

	rig_read_run(t, id, &run);
	assert_string_equal("abcdef", out);
	assert_int_equal(most, run.commands[0].bytes[STORE_STDOUT]);
	assert_int_equal(most, run.commands[0].max_rss_kb);
	assert_in_range(run.commands[0].cpu_ms, 1, (uint64_t)most);
	assert_int_equal(1, run.nartifacts);
	assert_int_equal(INT64_MAX, run.artifacts[0].size);
	assert_non_null(run.artifacts[0].skipped_reason);
}

static int64_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? 0 : st.st_size;
}

static int64_t connects(struct rig *t, const char *identifier)
{
	char name[64];
	AUTO_FREE char *path = NULL;

	backend_sandbox_name(name, sizeof(name), "0123abcd", "default", identifier);
	path = xasprintf("%s/fake/%s/connects", t->dir, name);
	return size_of(path);
}

static void every_lie_ends_in_a_true_sentence(void **state)
{
	struct rig *t = *state;
	char ids[NLIES][ID_RUN_LEN + 1], good[ID_RUN_LEN + 1], flood[ID_RUN_LEN + 1];

	rig_run(t, flood, "{'identifier':'evil-flood','commands':[{'argv':['true']}]}");
	for (size_t i = 0; i < NLIES; i++) {
		AUTO_FREE char *args = xasprintf("{'identifier':'evil-%s','commands':[{"
						 "'argv':['true']}]}",
						 lies[i].name);
		rig_run(t, ids[i], args);
	}
	for (int i = 0; i < 5; i++) {
		rig_run(t, good,
			"{'identifier':'a','commands':[{'argv':['true']}],'options':{"
			"'as_user':'root'}}");
		assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, good));
	}
	for (size_t i = 0; i < NLIES; i++)
		check_lie(t, &lies[i], ids[i]);
	check_numbers(t, ids[NLIES - 1]);
	assert_in_range(connects(t, "evil-hangup"), 4, 8);
	assert_in_range(connects(t, "evil-garbage"), 4, 8);
}

static void a_given_up_sandbox_is_made_again_at_its_next_use(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1], next[ID_RUN_LEN + 1];
	AUTO_FREE char *creates = xasprintf("%s/fake/creates", t->dir);

	rig_run(t, id, "{'identifier':'evil-reformed','commands':[{'argv':['true']}]}");
	assert_int_equal(STORE_RUN_FAILED, rig_wait(t, id));
	rig_run(t, next, "{'identifier':'evil-reformed','commands':[{'argv':['true']}]}");
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, next));
	assert_int_equal(2, size_of(creates));
	rig_check_recreated(t, id, NULL);
	rig_check_recreated(t, next, "could not be relied on");
}

static enum store_run_state killed_at_the_start(struct rig *t, const char *who)
{
	AUTO_FREE char *args =
		xasprintf("{'identifier':'evil-%s','commands':[{'argv':['true']}]}", who);
	char id[ID_RUN_LEN + 1];

	rig_run(t, id, args);
	rig_wait_event(t, id, STORE_EVENT_COMMAND_STARTED);
	rig_end(t, SIGKILL);
	rig_start(t);
	return rig_wait(t, id);
}

static void a_start_lost_with_its_runner_is_said_again_to_the_same_agent(void **state)
{
	assert_int_equal(STORE_RUN_COMPLETED, killed_at_the_start(*state, "deaf"));
}

static void what_another_agent_does_not_know_may_have_run(void **state)
{
	assert_int_equal(STORE_RUN_FAILED, killed_at_the_start(*state, "new"));
}

/* So that the runner waits for half a second and not for twenty. */
static void tune_guard(struct conf *c)
{
	tune(c);
	c->kill_grace_ms = -19500;
}

static int setup_guard(void **state)
{
	fake_evil = tell_lies;
	rig_tune = tune_guard;
	return rig_setup(state);
}

static void the_next_runner_waits_no_longer_for_an_end_than_the_first(void **state)
{
	struct rig *t = *state;
	AUTO_STORE_RUN run = {0};
	char id[ID_RUN_LEN + 1];

	rig_run(t, id,
		"{'identifier':'evil-mute','commands':[{'argv':['true'],"
		"'timeout_ms':1000}]}");
	rig_wait_event(t, id, STORE_EVENT_COMMAND_STARTED);
	rig_end(t, SIGKILL);
	rig_start(t);
	assert_int_equal(STORE_RUN_FAILED, rig_wait(t, id));
	rig_read_run(t, id, &run);
	assert_int_equal(STORE_COMMAND_LOST, run.commands[0].status);
	assert_non_null(strstr(run.error, "at its time limit"));
}

static void the_rest_of_an_older_telling_does_not_count(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1];
	AUTO_FREE char *out = NULL;
	AUTO_STORE_RUN run = {0};

	rig_run(t, id, "{'identifier':'evil-twice','commands':[{'argv':['true']}]}");
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	rig_read_run(t, id, &run);
	out = rig_output(t, id, 0);
	assert_string_equal("abc", out);
	assert_false(run.commands[0].truncated[STORE_STDOUT]);
	assert_int_equal(1, connects(t, "evil-twice"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_lie_ends_in_a_true_sentence),
		TEST(a_given_up_sandbox_is_made_again_at_its_next_use),
		TEST(a_start_lost_with_its_runner_is_said_again_to_the_same_agent),
		TEST(the_rest_of_an_older_telling_does_not_count),
		TEST(what_another_agent_does_not_know_may_have_run),
		cmocka_unit_test_setup_teardown(
			the_next_runner_waits_no_longer_for_an_end_than_the_first,
			setup_guard, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
