/* SPDX-License-Identifier: MIT */
#ifndef TESTS_RUNNER_RIG_H
#define TESTS_RUNNER_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "../built.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "fakebackend.h"
#include "runner/runner.h"
#include "store/migrate.h"
#include "store/reader.h"
#include "tests/unit/testdir.h"
#include "wire/edgemsg.h"

/*
 * A runner in a process of its own over the fake backend, and this process in the
 * place of an edge: it asks over the pair, waits on the doorbell, reads the store.
 */
enum { WAIT_MS = 60000 }; /* a slow machine under a sanitizer, too */

struct rig {
	char dir[64];
	char db[128];
	struct conf conf;
	int pair[2], bell, life[2];
	pid_t runner;
	uint64_t next_id;
	struct store_reader *reader;
	int heir_fd; /* its end without a word tells the heir that we were killed */
	pid_t heir;
};

static void (*rig_tune)(struct conf *c); /* NULL: as it is */

static inline void rig_start(struct rig *t)
{
	int ready[2];
	char byte;

	assert_int_equal(0, pipe2(ready, O_CLOEXEC));
	assert_int_equal(0, pipe2(t->life, O_CLOEXEC));
	fflush(NULL);
	t->runner = fork();
	if (t->runner == 0) {
		struct runner_args a = {.life_fd = t->life[0],
					.ready_fd = ready[1],
					.nedges = 1,
					.edge_fds = &t->pair[1],
					.doorbell_fds = &t->bell,
					.db_path = t->db,
					.instance_id = "0123abcd"};
		char log_path[96];
		int quiet;

		snprintf(log_path, sizeof(log_path), "%s/log", t->dir);
		quiet = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

		dup2(quiet, 2);
		/* cmocka's handler would go on with the tests, here. */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGABRT, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		signal(SIGFPE, SIG_DFL);
		signal(SIGILL, SIG_DFL);
		close(t->life[1]);
		close(t->pair[0]);
		log_init("runner", LOG_LEVEL_INFO);
		/* Not _exit(): what it leaks is looked for at its end. */
		exit(runner_main_on(&a, &t->conf, &fake_ops));
	}
	close(ready[1]);
	close(t->life[0]);
	assert_int_equal(1, read(ready[0], &byte, 1));
	close(ready[0]);
	if (!t->reader) {
		struct err e = ERR_INIT;

		assert_int_equal(0, store_reader_open(t->db, &t->reader, &e));
	}
}

/* Whether a process sees a mount with that text in its line. */
static inline bool rig_has_mounted(const char *pid, const char *text)
{
	AUTO_FREE char *path = xasprintf("/proc/%s/mountinfo", pid);
	FILE *f = fopen(path, "re");
	char line[4096];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, text) != NULL;
	if (f)
		fclose(f);
	return found;
}

/*
 * Agents are in process groups and name spaces of their own, so nothing ends them with
 * us, and of one whose runner was killed nobody need know: they are found by their root.
 */
static inline void rig_kill_agents(const char *dir)
{
	AUTO_FREE char *text = xasprintf("%s/fake/", strrchr(dir, '/'));
	struct dirent *de;
	DIR *d = opendir("/proc");

	while (d && (de = readdir(d)))
		if (strtol(de->d_name, NULL, 10) > 1 && rig_has_mounted(de->d_name, text))
			kill((pid_t)strtol(de->d_name, NULL, 10), SIGKILL);
	if (d)
		closedir(d);
}

/* The agents that their runners have left to us. */
static inline void rig_kill_orphans(const struct rig *t)
{
	AUTO_FREE char *path = xasprintf("/proc/self/task/%d/children", (int)getpid());
	FILE *f = fopen(path, "re");
	int pid;

	while (f && fscanf(f, "%d", &pid) == 1)
		if (pid != t->heir)
			kill(pid, SIGKILL);
	if (f)
		fclose(f);
}

/* Waits beside a test for its end; one that was killed has left agents and files. */
static inline void rig_make_heir(struct rig *t)
{
	int life[2], null;
	struct err e = ERR_INIT;
	char word;

	assert_int_equal(0, pipe2(life, O_CLOEXEC));
	fflush(NULL);
	t->heir = fork();
	assert_true(t->heir >= 0);
	t->heir_fd = life[1];
	if (t->heir != 0) {
		close(life[0]);
		return;
	}
	setsid();
	close(life[1]);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3; fd++) /* whoever reads the output waits for no heir */
		dup2(null, fd);
	if (read(life[0], &word, 1) == 0) {
		rig_kill_agents(t->dir);
		io_rmtree(t->dir, &e);
	}
	_exit(0);
}

static inline void rig_end_heir(struct rig *t)
{
	assert_int_equal(1, write(t->heir_fd, "x", 1));
	close(t->heir_fd);
	waitpid(t->heir, NULL, 0);
}

/* How: SIGKILL a crash, SIGUSR1 leave, SIGTERM stop. */
static inline int rig_end(struct rig *t, int sig)
{
	int status = 0;

	kill(t->runner, sig);
	waitpid(t->runner, &status, 0);
	close(t->life[1]);
	return status;
}

static inline const char *rig_agent(void)
{
	static char path[300];

	built_program("mcp-sandboxd-agent", path, sizeof(path));
	return path;
}

/* Until cond holds, for what no event announces; fails the test at last. */
#define RIG_UNTIL(cond)                                                                  \
	do {                                                                             \
		for (int turns_ = 0; !(cond); turns_++) {                                \
			if (turns_ > WAIT_MS / 10)                                       \
				fail_msg("never: %s", #cond);                            \
			poll(NULL, 0, 10);                                               \
		}                                                                        \
	} while (0)

/* ---- asking */

static inline uint64_t rig_send(struct rig *t, enum edgemsg_type type, json_t *body)
{
	struct err e = ERR_INIT;
	uint64_t id = ++t->next_id;

	assert_int_equal(0, edgemsg_send(t->pair[0], type, id, body, &e));
	json_decref(body);
	return id;
}

/* The answer to that id; others are passed over. */
static inline json_t *rig_answer(struct rig *t, uint64_t id, enum edgemsg_type *ret_type)
{
	for (;;) {
		struct pollfd p = {.fd = t->pair[0], .events = POLLIN};
		struct edgemsg m = {0};
		struct err e = ERR_INIT;
		int eof = 0;

		assert_int_equal(1, poll(&p, 1, WAIT_MS));
		assert_int_equal(1, edgemsg_recv(t->pair[0], &m, &eof, &e));
		if (m.id == id && m.type != MSG_HELLO) {
			*ret_type = m.type;
			return m.body;
		}
		edgemsg_release(&m);
	}
}

static inline json_t *rig_ask(struct rig *t, enum edgemsg_type type, json_t *body)
{
	enum edgemsg_type got;
	json_t *answer = rig_answer(t, rig_send(t, type, body), &got);

	if (got != MSG_OK)
		print_error("%s\n",
			    json_string_value(json_object_get(answer, "message")));
	assert_int_equal(MSG_OK, got);
	return answer;
}

/* What the status says of that part. */
static inline bool rig_is_ok(struct rig *t, const char *what)
{
	json_t *answer = rig_ask(t, MSG_STATUS, json_object());
	bool ok = json_is_true(json_object_get(json_object_get(answer, what), "ok"));

	json_decref(answer);
	return ok;
}

/* args: JSON text with ' for ". Answers with what is to be waited for. */
static inline json_t *rig_run_body(const char *run_id, const char *args)
{
	AUTO_FREE char *text = xstrdup(args);
	json_t *parsed = NULL;
	struct err e = ERR_INIT;

	for (char *p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	if (json_parse(text, strlen(text), &parsed, &e) < 0)
		fail_msg("%s", e.msg);
	return json_pack("{s:s,s:s,s:o}", "tenant", "default", "run_id", run_id, "args",
			 parsed);
}

static inline void rig_run(struct rig *t, char run_id[ID_RUN_LEN + 1], const char *args)
{
	id_new_run(run_id);
	json_decref(rig_ask(t, MSG_RUN, rig_run_body(run_id, args)));
}

/* ---- looking */

static inline void rig_bell(struct rig *t)
{
	struct pollfd p = {.fd = t->bell, .events = POLLIN};
	uint64_t n;

	assert_int_equal(1, poll(&p, 1, WAIT_MS));
	assert_int_equal(8, read(t->bell, &n, 8));
}

static inline enum store_run_state rig_wait(struct rig *t, const char *run_id)
{
	enum store_run_state s;
	struct err e = ERR_INIT;

	for (;;) {
		assert_int_equal(
			0, store_read_run_state(t->reader, "default", run_id, &s, &e));
		if (store_run_ended(s))
			return s;
		rig_bell(t);
	}
}

static inline void rig_wait_event(struct rig *t, const char *run_id,
				  enum store_event_type type)
{
	for (;;) {
		AUTO_STORE_EVENTS l = {0};
		struct err e = ERR_INIT;

		assert_int_equal(0, store_read_run_events(t->reader,
							  &(struct store_run_query){
								  .run_id = run_id,
								  .max_events = 10000,
								  .max_bytes = 1 << 24},
							  &l, &e));
		for (size_t i = 0; i < l.n; i++)
			if (l.v[i].type == type)
				return;
		rig_bell(t);
	}
}

static inline void rig_read_run(struct rig *t, const char *run_id, struct store_run *ret)
{
	struct err e = ERR_INIT;

	assert_int_equal(0, store_read_run(t->reader, "default", run_id, ret, &e));
}

static inline char *rig_output(struct rig *t, const char *run_id, int64_t index)
{
	AUTO_BUF b = BUF_INIT(1 << 26);
	struct err e = ERR_INIT;
	size_t n = 1;

	while (n > 0) {
		const struct store_output_query q = {.run_id = run_id,
						     .command_index = index,
						     .stream = STORE_STDOUT,
						     .offset = (int64_t)b.len,
						     .max = 1 << 20};

		assert_int_equal(0, store_read_output(t->reader, &q, &b, &n, &e));
	}
	return xstrdup(b.p);
}

/* The names of a run's events, comma-joined, runs of output as one. */
static inline char *rig_events(struct rig *t, const char *run_id)
{
	AUTO_STORE_EVENTS l = {0};
	AUTO_BUF b = BUF_INIT(1 << 20);
	struct err e = ERR_INIT;

	assert_int_equal(
		0, store_read_run_events(t->reader,
					 &(struct store_run_query){.run_id = run_id,
								   .max_events = 10000,
								   .max_bytes = 1 << 24},
					 &l, &e));
	for (size_t i = 0; i < l.n; i++)
		if (i == 0 || l.v[i].type != l.v[i - 1].type)
			buf_printf(&b, "%s%s", i ? "," : "",
				   store_event_type_name(l.v[i].type));
	return xstrdup(b.p);
}

/* A path in the folder of a sandbox. */
static inline char *rig_folder(struct rig *t, const char *identifier, const char *what)
{
	char name[64];

	backend_sandbox_name(name, sizeof(name), "0123abcd", "default", identifier);
	return xasprintf("%s/fake/%s/%s", t->dir, name, what);
}

/* run_started tells why the sandbox was made again; words NULL: it was not. */
static inline void rig_check_recreated(struct rig *t, const char *run_id,
				       const char *words)
{
	AUTO_STORE_EVENTS l = {0};
	struct err e = ERR_INIT;
	const struct store_run_query q = {
		.run_id = run_id, .max_events = 1, .max_bytes = 1 << 20};

	assert_int_equal(0, store_read_run_events(t->reader, &q, &l, &e));
	assert_int_equal(1, l.n);
	assert_int_equal(STORE_EVENT_RUN_STARTED, l.v[0].type);
	if (words)
		assert_non_null(strstr(l.v[0].data, words));
	else
		assert_null(strstr(l.v[0].data, "recreated"));
}

/* ---- a test's begin and end */

static inline int rig_setup(void **state)
{
	struct rig *t = xcalloc(1, sizeof(*t));
	struct store_migrate_opts o = {.group = (gid_t)-1, .synchronous = "NORMAL"};
	struct err e = ERR_INIT;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	fake_create_delay_ms = fake_oom_delay_ms = 0;
	fake_create_fails = fake_open_fails = fake_create_words = NULL;
	fake_create_gate = NULL;
	fake_open_delay_ms = fake_remove_delay_ms = 0;
	fake_list_outdated = false;
	test_folder(t->dir, sizeof(t->dir), "rig");
	rig_make_heir(t);
	snprintf(t->db, sizeof(t->db), "%s/db/x.sqlite", t->dir);
	setenv("DATA_DIR", t->dir, 1);
	assert_int_equal(0, conf_load(NULL, &t->conf, &e));
	t->conf.kill_grace_ms = 300;
	t->conf.reaper_interval_ms = 200;
	if (rig_tune)
		rig_tune(&t->conf);
	assert_int_equal(0, store_migrate(t->db, &o, &e));
	assert_int_equal(0,
			 socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, t->pair));
	t->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fake_agent_path = rig_agent();
	*state = t;
	rig_start(t);
	RIG_UNTIL(rig_is_ok(t, "backend"));
	return 0;
}

static inline int rig_teardown(void **state)
{
	struct rig *t = *state;
	struct err e = ERR_INIT;
	int status = rig_end(t, SIGTERM);

	rig_kill_orphans(t);
	store_reader_close(t->reader);
	close(t->pair[0]);
	close(t->pair[1]);
	close(t->bell);
	conf_release(&t->conf);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
	if (!getenv("RIG_KEEP")) /* the log, when a test fails */
		io_rmtree(t->dir, &e);
	rig_end_heir(t);
	free(t);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return 0;
}

#endif
