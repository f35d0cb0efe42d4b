/* SPDX-License-Identifier: MIT */
#ifndef TESTS_EDGE_RIG_H
#define TESTS_EDGE_RIG_H

/*
 * An edge process of one's own: the test program executes itself as the edge role
 * (as root it becomes nobody, as in life), and the test plays nginx on the
 * FastCGI socket and the runner on the packet pair, step by step, so nothing
 * depends on timing. Waits are polls with a bound, never sleeps.
 */
#include <assert.h>
#include <errno.h>
#include <fastcgi.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/json.h"
#include "base/log.h"
#include "conf/conf.h"
#include "edge/edge.h"
#include "store/migrate.h"
#include "store/writer.h"
#include "tests/unit/testdir.h"
#include "wire/edgemsg.h"

enum { RIG_WAIT_MS = 60000, RIG_NOGROUP = 65534 };

struct rig {
	char dir[64], db[96], socket[96];
	int listen_fd, runner_fd, edge_fd, doorbell_fd, life_fd, stats_fd;
	pid_t pid;
	struct store *store;
	const struct rlimit *nofile; /* NULL: as it is */
};

static const char rig_run[] = "run_0123456789abcdef0123456789abcdef";
static const char rig_session[] = "0123456789abcdef0123456789abcdef";

/* ---- the edge process */

enum {
	RIG_FD_LIFE = 3,
	RIG_FD_READY,
	RIG_FD_LISTEN,
	RIG_FD_RUNNER,
	RIG_FD_BELL,
	RIG_FD_STATS
};

/* In the executed copy. before_serving runs as the edge would, for seccomp tests. */
static inline int rig_edge_process(char **argv)
{
	struct conf c = {0};
	struct err e = ERR_INIT;
	struct edge_args a = {
		.life_fd = RIG_FD_LIFE,
		.ready_fd = RIG_FD_READY,
		.listen_fd = RIG_FD_LISTEN,
		.runner_fd = RIG_FD_RUNNER,
		.doorbell_fd = RIG_FD_BELL,
		.stats_fd = RIG_FD_STATS,
		.db_path = argv[2],
		.keepalive_ms = getenv("RIG_KEEPALIVE_MS") ? 1 : 0,
		.stop_grace_ms = RIG_WAIT_MS,
	};

	log_init("edge0", LOG_LEVEL_WARN);
	if (conf_load(NULL, &c, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		_exit(9);
	}
	_exit(edge_main(&a, &c));
}

static inline void rig_exec(struct rig *r, int life, int ready)
{
	int fds[] = {life, ready, r->listen_fd, r->edge_fd, r->doorbell_fd, r->stats_fd};
	char *argv[] = {(char *)"edge", (char *)"edge", r->db, NULL};

	for (int i = 0; i < 6; i++)
		fds[i] = fcntl(fds[i], F_DUPFD, 100);
	for (int i = 0; i < 6; i++)
		dup2(fds[i], 3 + i);
	for (int fd = 9; fd < 200; fd++)
		close(fd);
	if (r->nofile)
		setrlimit(RLIMIT_NOFILE, r->nofile);
	execv("/proc/self/exe", argv);
	_exit(8);
}

static inline void rig_start_edge(struct rig *r)
{
	int life[2], ready[2];
	char byte;

	assert_int_equal(pipe2(life, O_CLOEXEC), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	r->pid = fork();
	assert_true(r->pid >= 0);
	if (r->pid == 0)
		rig_exec(r, life[0], ready[1]);
	close(life[0]);
	close(ready[1]);
	r->life_fd = life[1];
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
}

/* The exit status as waitpid() gives it. */
static inline int rig_wait_edge(struct rig *r)
{
	int status = 0;

	assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
	r->pid = 0;
	close(r->life_fd);
	return status;
}

/* Until SIGCONT it does nothing; what is sent to it meanwhile waits. */
static inline void rig_pause_edge(struct rig *r)
{
	int status = 0;

	kill(r->pid, SIGSTOP);
	assert_int_equal(waitpid(r->pid, &status, WUNTRACED), r->pid);
	assert_true(WIFSTOPPED(status));
}

static inline int rig_listen(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 4096), 0);
	return fd;
}

static inline void rig_open(struct rig *r)
{
	struct store_migrate_opts o = {.group = geteuid() == 0 ? RIG_NOGROUP : (gid_t)-1,
				       .synchronous = "NORMAL"};
	struct store_opts so = {.synchronous = "NORMAL"};
	struct err e = ERR_INIT;
	int pair[2];

	*r = (struct rig){.pid = 0};
	test_folder(r->dir, sizeof(r->dir), "edge");
	chmod(r->dir, 0755);
	snprintf(r->db, sizeof(r->db), "%s/db/mcp-sandboxd.sqlite", r->dir);
	snprintf(r->socket, sizeof(r->socket), "%s/fcgi.sock", r->dir);
	if (store_migrate(r->db, &o, &e) < 0 || store_open(r->db, &so, &r->store, &e) < 0)
		fail_msg("%s", e.msg);
	r->listen_fd = rig_listen(r->socket);
	assert_int_equal(socketpair(AF_UNIX,
				    SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
				    pair),
			 0);
	r->runner_fd = pair[0];
	r->edge_fd = pair[1];
	r->doorbell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->stats_fd = memfd_create("edge-stats", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	rig_start_edge(r);
}

static inline void rig_close(struct rig *r)
{
	struct err e = ERR_INIT;

	if (r->pid) {
		kill(r->pid, SIGTERM);
		assert_int_equal(rig_wait_edge(r), 0);
	}
	store_close(r->store);
	close(r->listen_fd);
	close(r->runner_fd);
	close(r->edge_fd);
	close(r->doorbell_fd);
	close(r->stats_fd);
	assert_int_equal(io_rmtree(r->dir, &e), 0);
}

/* ---- nginx's side */

struct answer {
	int status;
	char *head; /* NUL-terminated, from "Status:" to the empty line */
	char *body;
	size_t n;
	bool is_whole; /* FCGI_END_REQUEST came */
};

static inline void rig_param(struct buf *b, const char *name, const char *value)
{
	size_t n = strlen(name), v = strlen(value);
	unsigned char len[8] = {(unsigned char)n};

	assert_true(n < 128);
	buf_add(b, len, 1);
	len[0] = (unsigned char)(0x80 | v >> 24);
	len[1] = (unsigned char)(v >> 16);
	len[2] = (unsigned char)(v >> 8);
	len[3] = (unsigned char)v;
	buf_add(b, len, 4);
	buf_puts(b, name);
	buf_puts(b, value);
}

static inline void rig_record(struct buf *b, int type, const char *p, size_t n)
{
	unsigned char h[8] = {1, (unsigned char)type,     0,
			      1, (unsigned char)(n >> 8), (unsigned char)n};

	buf_add(b, h, 8);
	buf_add(b, p, n);
}

/* A request as nginx sends it; pairs: name, value, ..., NULL. Connected socket. */
static inline int rig_send(struct rig *r, const char *method, const char *uri,
			   const char *body, size_t n, const char *const *pairs)
{
	static const char begin[8] = {0, FCGI_RESPONDER};
	AUTO_BUF out = BUF_INIT(64 * 1024 * 1024);
	AUTO_BUF params = BUF_INIT(65535);
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct err e = ERR_INIT;
	char length[24];

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", r->socket);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	snprintf(length, sizeof(length), "%zu", n);
	rig_param(&params, "REQUEST_METHOD", method);
	rig_param(&params, "REQUEST_URI", uri);
	rig_param(&params, "CONTENT_LENGTH", n ? length : "");
	for (; *pairs; pairs += 2)
		rig_param(&params, pairs[0], pairs[1]);
	rig_record(&out, FCGI_BEGIN_REQUEST, begin, 8);
	rig_record(&out, FCGI_PARAMS, params.p, params.len);
	rig_record(&out, FCGI_PARAMS, "", 0);
	for (size_t at = 0; at < n; at += 32768)
		rig_record(&out, FCGI_STDIN, body + at, n - at < 32768 ? n - at : 32768);
	rig_record(&out, FCGI_STDIN, "", 0);
	assert_int_equal(io_write_all(fd, out.p, out.len, &e), 0);
	return fd;
}

static inline bool rig_readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) > 0;
}

static inline bool rig_read_n(int fd, void *dst, size_t n)
{
	char *p = dst;

	while (n) {
		ssize_t got = rig_readable(fd, RIG_WAIT_MS) ? read(fd, p, n) : -1;

		if (got <= 0)
			return false;
		p += got;
		n -= (size_t)got;
	}
	return true;
}

/* One record; stdout content is added to b. 1: STDOUT, 0: the end, -1: broken. */
static inline int rig_read_record(int fd, struct buf *b)
{
	unsigned char h[8];
	static char content[65535 + 255]; /* one thread */
	size_t n;

	if (!rig_read_n(fd, h, 8))
		return -1;
	n = (size_t)h[4] << 8 | h[5];
	if (!rig_read_n(fd, content, n + h[6]))
		return -1;
	if (h[1] == FCGI_END_REQUEST)
		return 0;
	if (h[1] == FCGI_STDOUT)
		buf_add(b, content, n);
	return 1;
}

/* Reads until `until` (NULL: the end) was seen in what came so far. */
static inline bool rig_read_until(int fd, struct buf *b, const char *until)
{
	int rc = 1;

	while (!(until && memmem(b->p, b->len, until, strlen(until))))
		if ((rc = rig_read_record(fd, b)) <= 0)
			return rc == 0 && !until;
	return true;
}

static inline struct answer rig_answer(int fd)
{
	AUTO_BUF b = BUF_INIT(256 * 1024 * 1024);
	struct answer a = {.is_whole = rig_read_until(fd, &b, NULL)};
	char *end;

	close(fd);
	end = strstr(b.p, "\r\n\r\n");
	if (end && sscanf(b.p, "Status: %d", &a.status) == 1) {
		size_t head = (size_t)(end - b.p) + 4;

		a.head = strndup(b.p, head);
		a.n = b.len - head;
		a.body = malloc(a.n + 1);
		memcpy(a.body, b.p + head, a.n + 1);
	}
	return a;
}

static inline void answer_free(struct answer *a)
{
	free(a->head);
	free(a->body);
}
#define AUTO_ANSWER __attribute__((cleanup(answer_free))) struct answer

#define HOST "HTTP_HOST", "localhost:8080"

static inline struct answer rig_get(struct rig *r, const char *uri)
{
	const char *const pairs[] = {HOST, NULL};

	return rig_answer(rig_send(r, "GET", uri, "", 0, pairs));
}

static inline int rig_post(struct rig *r, const char *body)
{
	const char *const pairs[] = {HOST,
				     "CONTENT_TYPE",
				     "application/json",
				     "HTTP_MCP_SESSION_ID",
				     rig_session,
				     "HTTP_MCP_PROTOCOL_VERSION",
				     "2025-11-25",
				     NULL};

	return rig_send(r, "POST", "/mcp", body, strlen(body), pairs);
}

/* ---- the runner's side */

static inline void rig_commit(struct rig *r)
{
	struct store_commit_info info;
	struct err e = ERR_INIT;

	if (store_commit(r->store, &info, &e) < 0)
		fail_msg("%s", e.msg);
	eventfd_write(r->doorbell_fd, 1);
}

/* The edge's next message, which must be of this type. */
static inline struct edgemsg rig_expect(struct rig *r, enum edgemsg_type type)
{
	struct edgemsg m = {0};
	struct err e = ERR_INIT;
	int eof = 0;

	if (!rig_readable(r->runner_fd, RIG_WAIT_MS)) {
		int status = 0;
		pid_t gone = waitpid(r->pid, &status, WNOHANG);

		fail_msg("no message of type %d; the edge %s (%x)", (int)type,
			 gone ? "is gone" : "lives", (unsigned)status);
	}
	if (edgemsg_recv(r->runner_fd, &m, &eof, &e) != 1)
		fail_msg("%s", e.msg);
	assert_int_equal(m.type, type);
	return m;
}

static inline void rig_reply(struct rig *r, enum edgemsg_type type, uint64_t id,
			     json_t *body)
{
	struct err e = ERR_INIT;

	if (edgemsg_send(r->runner_fd, type, id, body, &e) < 0)
		fail_msg("%s", e.msg);
	json_decref(body);
}

static inline void rig_add_session(struct rig *r)
{
	struct store_session s = {.id = rig_session,
				  .tenant = STORE_TENANT_DEFAULT,
				  .protocol_version = "2025-11-25",
				  .client_name = "test",
				  .client_version = "1",
				  .created_at = clock_now_ms(),
				  .last_seen_at = clock_now_ms()};
	struct err e = ERR_INIT;

	if (store_session_open(r->store, &s, &e) < 0)
		fail_msg("%s", e.msg);
	rig_commit(r);
}

static inline void rig_add_run(struct rig *r, const char *run_id)
{
	struct store_command command = {.shell = "true",
					.cwd = "/",
					.env_json = "{}",
					.timeout_ms = 1000,
					.exit_code = -1};
	struct store_run run = {.run_id = run_id,
				.tenant = STORE_TENANT_DEFAULT,
				.identifier = "a",
				.sandbox_name = "mcp-sbx-a",
				.created_at = clock_now_ms(),
				.ttl_s = 60,
				.commands = &command,
				.ncommands = 1};
	struct err e = ERR_INIT;
	bool existed;

	if (store_run_insert(r->store, &run, &existed, &e) < 0 ||
	    store_run_start(r->store, run_id, "mcp-sbx-a", "c1", clock_now_ms(), &e) <
		    0 ||
	    store_event_add(r->store,
			    &(struct store_new_event){.run_id = run_id,
						      .type = STORE_EVENT_RUN_STARTED,
						      .at = clock_now_ms(),
						      .command_index = -1,
						      .json = "{\"run_id\":\"x\"}"},
			    &e) < 0)
		fail_msg("%s", e.msg);
	rig_commit(r);
}

static inline void rig_add_output(struct rig *r, const char *run_id, int64_t offset,
				  const char *p, size_t n)
{
	struct store_output o = {.run_id = run_id,
				 .stream = STORE_STDOUT,
				 .at = clock_now_ms(),
				 .offset = offset,
				 .data = p,
				 .n = n};
	struct err e = ERR_INIT;
	int64_t stored;

	if (store_output_add(r->store, &o, &stored, &e) < 0)
		fail_msg("%s", e.msg);
}

static inline void rig_end_run(struct rig *r, const char *run_id)
{
	struct err e = ERR_INIT;

	if (store_run_finish(r->store, run_id, STORE_RUN_COMPLETED, clock_now_ms(), NULL,
			     &e) < 0 ||
	    store_event_add(
		    r->store,
		    &(struct store_new_event){.run_id = run_id,
					      .type = STORE_EVENT_RUN_FINISHED,
					      .at = clock_now_ms(),
					      .command_index = -1,
					      .json = "{\"run_id\":\"x\",\"end\":1}"},
		    &e) < 0)
		fail_msg("%s", e.msg);
	rig_commit(r);
}

/* main() of a test program: the edge when executed as such, else the tests. */
#define RIG_MAIN(tests)                                                                  \
	int main(int argc, char **argv)                                                  \
	{                                                                                \
		if (argc == 3 && strcmp(argv[1], "edge") == 0)                           \
			return rig_edge_process(argv);                                   \
		setenv("EDGE_USER", "nobody", 1);                                        \
		setenv("EDGE_THREADS", "2", 1);                                          \
		if (argc == 2)                                                           \
			cmocka_set_test_filter(argv[1]);                                 \
		return cmocka_run_group_tests(tests, NULL, NULL);                        \
	}

/* Answers MSG_RUN as the runner would; the run_id it was given. */
static inline void rig_accept_run(struct rig *r, char run_id[64])
{
	struct edgemsg m = rig_expect(r, MSG_RUN);

	snprintf(run_id, 64, "%s", json_string_value(json_object_get(m.body, "run_id")));
	rig_add_run(r, run_id);
	rig_reply(r, MSG_OK, m.id,
		  json_pack("{s:s,s:s,s:s}", "run_id", run_id, "identifier", "a",
			    "sandbox_name", "mcp-sbx-a"));
	edgemsg_release(&m);
}

#endif
