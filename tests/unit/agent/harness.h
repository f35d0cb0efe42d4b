/* SPDX-License-Identifier: MIT */
#ifndef TESTS_AGENT_HARNESS_H
#define TESTS_AGENT_HARNESS_H

/*
 * A real agent process in a pid namespace of its own (where that may be made),
 * and a client that speaks to it. Used by the test programs of this folder.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../built.h"
#include "agent/loop.h"
#include "tests/unit/testdir.h"
#include "wire/agentproto.h"

/* Whoever says nothing for so long hangs, on a busy machine and under a sanitizer too. */
enum { PATIENCE_MS = 60000 };

struct client {
	int fd;
	struct ap_reader in;
	struct ap_hello hello;
	bool may_be_over; /* a send may find the connection ended */
};

/* Everything one command said. */
struct result {
	struct ap_id id;
	char *out[AP_STREAM_COUNT];
	uint64_t len[AP_STREAM_COUNT], room[AP_STREAM_COUNT];
	struct ap_exit exit;
	bool is_started, is_ended, is_gone, no_artifacts;
	uint64_t took_us;
};

struct command_spec {
	const char *const *argv;
	const char *const *env; /* NULL: none */
	const char *cwd;        /* NULL: / */
	const char *script;     /* goes through a memfd as the last argument */
	size_t script_n;
	uint32_t uid, timeout_ms, grace_ms;
	uint64_t cap; /* 0: 1 MiB; UINT64_MAX: nothing is kept */
	bool has_stdin;
};

static struct {
	pid_t pid;
	char dir[64], socket[100], binary[512];
	uint32_t next_index;
	uint16_t hello_version; /* the newest the client says it speaks; 0: as it is */
	bool own_socket;        /* the agent makes it, the client comes through connect */
	bool drop_cap_kill;     /* start the agent without it */
	struct client c;
} h;

static inline void agent_binary(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	built_program("agent-plain", h.binary, sizeof(h.binary));
#else
	built_program("mcp-sandboxd-agent", h.binary, sizeof(h.binary));
#endif
}

static inline int agent_child(void *arg)
{
	int fd = *(int *)arg;

	/* A net under the tests that fork without end; does not bind root. */
	struct rlimit processes = {400, 400};

	/* As glibc's posix_spawn leaves its own two signals. */
	const long ignored[4] = {(long)SIG_IGN};

	syscall(SYS_rt_sigaction, 32, ignored, NULL, 8);
	syscall(SYS_rt_sigaction, 33, ignored, NULL, 8);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_NPROC, &processes);
	if (h.drop_cap_kill)
		prctl(PR_CAPBSET_DROP, CAP_KILL);
	if (getpid() == 1) {
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
		mount("proc", "/proc", "proc", 0, NULL);
	}
	if (h.own_socket) {
		execl(h.binary, h.binary, "init", "--socket", h.socket, (char *)NULL);
		_exit(127);
	}
	if (dup2(fd, 3) < 0 || (fd == 3 && fcntl(3, F_SETFD, 0) < 0))
		_exit(126);
	execl(h.binary, h.binary, "init", "--listen-fd", "3", (char *)NULL);
	_exit(127);
}

static inline int agent_start(void **state)
{
	static char stack[256 * 1024] __attribute__((aligned(64)));
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	agent_binary();
	test_folder(h.dir, sizeof(h.dir), "agent");
	assert_int_equal(chmod(h.dir, 0755), 0);
	snprintf(h.socket, sizeof(h.socket), "%s/s", h.dir);
	if (h.own_socket) {
		snprintf(h.socket, sizeof(h.socket), "%s/private/s", h.dir);
	} else {
		snprintf(a.sun_path, sizeof(a.sun_path), "%s", h.socket);
		assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
		assert_int_equal(listen(fd, 8), 0);
	}
	h.pid = clone(agent_child, stack + sizeof(stack),
		      CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, &fd);
	if (h.pid < 0)
		h.pid = clone(agent_child, stack + sizeof(stack), SIGCHLD, &fd);
	assert_true(h.pid > 0);
	close(fd);
	h.c.fd = -1;
	return 0;
}

static inline int agent_stop(void **state)
{
	int status;

	(void)state;
	if (h.c.fd >= 0)
		close(h.c.fd);
	kill(h.pid, SIGTERM);
	assert_int_equal(waitpid(h.pid, &status, 0), h.pid);
	unlink(h.socket);
	rmdir(h.dir);
	/* As its signal would have ended it; one that is not PID 1 just leaves. */
	if (WIFEXITED(status) &&
	    (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 128 + SIGTERM))
		return 0;
	fprintf(stderr, "# the agent ended with wait status %d\n", status);
	return -1;
}

/* The client. */

static inline void client_send(const struct ap_msg *m)
{
	static uint8_t frame[AP_FRAME_MAX];
	size_t n = ap_encode(m, frame, sizeof(frame)), done = 0;
	ssize_t rc;

	assert_true(n > 0);
	while (done < n) {
		rc = send(h.c.fd, frame + done, n - done, MSG_NOSIGNAL);
		if (rc < 0 && h.c.may_be_over)
			return;
		assert_true(rc > 0);
		done += (size_t)rc;
	}
}

/* The next message; false: nothing within the time, or the end (fd is closed). */
static inline bool client_next(struct ap_msg *ret, int timeout_ms)
{
	struct pollfd p = {.fd = h.c.fd, .events = POLLIN};
	enum ap_result rc;
	size_t room;
	ssize_t n;
	void *at;

	while ((rc = ap_reader_next(&h.c.in, AP_FROM_AGENT, ret)) == AP_MORE) {
		at = ap_reader_space(&h.c.in, &room);
		if (h.c.fd < 0 || poll(&p, 1, timeout_ms) < 1)
			return false;
		n = recv(h.c.fd, at, room, 0);
		if (n <= 0) {
			close(h.c.fd);
			h.c.fd = -1;
			return false;
		}
		ap_reader_fed(&h.c.in, (size_t)n);
	}
	assert_int_equal(rc, AP_OK);
	return true;
}

/* A connection that the agent may not have taken yet. */
static inline int client_dial(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", h.socket);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static inline void client_greet(int fd)
{
	struct ap_msg m;

	if (h.c.fd >= 0)
		close(h.c.fd);
	h.c.in.start = h.c.in.end = 0;
	h.c.fd = fd;
	assert_true(client_next(&m, PATIENCE_MS));
	assert_int_equal(m.type, AP_HELLO);
	h.c.hello = m.u.hello;
	m = ap_hello_init();
	if (h.hello_version)
		m.u.hello.version_max = h.hello_version;
	client_send(&m);
}

static inline void client_connect_only(void)
{
	client_greet(client_dial());
}

static inline void client_resume(const struct ap_offsets *o, size_t n)
{
	static uint8_t list[AP_PAYLOAD_MAX];
	struct ap_msg m = {.type = AP_RESUME};
	size_t used = 0;

	for (size_t i = 0; i < n; i++)
		used += ap_offsets_put(list + used, sizeof(list) - used, &o[i]);
	m.u.resume.offsets = (struct ap_bytes){list, used};
	client_send(&m);
}

/* Connect, and resume what is given. */
static inline void client_connect(const struct ap_offsets *o, size_t n)
{
	client_connect_only();
	client_resume(o, n);
}

static inline size_t add_string(char *data, size_t at, const char *s)
{
	memcpy(data + at, s, strlen(s) + 1);
	return at + strlen(s) + 1;
}

static inline struct ap_id next_id(void)
{
	return (struct ap_id){.run = {0xab, 1}, .index = h.next_index++};
}

static inline void send_data(const char *p, size_t n)
{
	struct ap_msg m = {.type = AP_START_DATA};
	size_t piece;

	for (size_t at = 0; at < n; at += piece) {
		piece = n - at < AP_CHUNK_MAX ? n - at : AP_CHUNK_MAX;
		m.u.data.bytes = (struct ap_bytes){(const uint8_t *)p + at, piece};
		client_send(&m);
	}
}

static inline void send_start(const struct command_spec *s, struct ap_id id)
{
	static char data[AP_STRINGS_MAX];
	struct ap_msg m = {.type = AP_START_BEGIN};
	struct ap_start *b = &m.u.start;
	size_t n = add_string(data, 0, s->cwd ? s->cwd : "/");

	*b = (struct ap_start){.id = id,
			       .uid = s->uid,
			       .gid = AP_GID_OF_USER,
			       .timeout_ms = s->timeout_ms,
			       .kill_grace_ms = s->grace_ms,
			       .stdout_cap = s->cap ? s->cap : 1 << 20};
	if (s->cap == UINT64_MAX)
		b->stdout_cap = 0;
	b->stderr_cap = b->stdout_cap;
	for (; s->argv[b->argc]; b->argc++)
		n = add_string(data, n, s->argv[b->argc]);
	for (; s->env && s->env[b->envc]; b->envc++)
		n = add_string(data, n, s->env[b->envc]);
	b->strings_bytes = (uint32_t)n;
	if (s->script) {
		b->flags |= AP_START_SCRIPT;
		b->script_arg = b->argc - 1;
		b->script_bytes = (uint32_t)s->script_n;
	}
	if (s->has_stdin)
		b->flags |= AP_START_STDIN;
	client_send(&m);
	send_data(data, n);
	if (s->script)
		send_data(s->script, s->script_n);
	m = (struct ap_msg){.type = AP_START_END};
	client_send(&m);
}

static inline void result_free(struct result *r)
{
	free(r->out[0]);
	free(r->out[1]);
	*r = (struct result){.id = r->id};
}

static inline void send_ack(const struct result *r)
{
	struct ap_msg m = {.type = AP_ACK, .u.ack = {r->id, r->len[0], r->len[1]}};

	client_send(&m);
}

/* Take one message into the result. */
static inline void result_take(struct result *r, const struct ap_msg *m)
{
	const struct ap_output *o = &m->u.output;

	if (m->type == AP_STARTED && ap_id_equal(&m->u.started.id, &r->id)) {
		r->is_started = true;
	} else if (m->type == AP_GONE && ap_id_equal(&m->u.ref.id, &r->id)) {
		r->is_gone = true;
	} else if (m->type == AP_EXIT && ap_id_equal(&m->u.exit.id, &r->id)) {
		r->exit = m->u.exit;
		/* As the machine is, which is of no concern to most. */
		r->no_artifacts = r->exit.flags & AP_EXIT_NO_ARTIFACTS;
		r->exit.flags &= AP_EXIT_FLAGS_V1;
		r->is_ended = true;
	} else if (m->type == AP_OUTPUT && ap_id_equal(&o->id, &r->id)) {
		uint64_t *len = &r->len[o->stream], *room = &r->room[o->stream];

		assert_int_equal(o->offset, *len);
		if (*len + o->bytes.n + 1 > *room) {
			*room = 2 * (*len + o->bytes.n + 1);
			r->out[o->stream] = realloc(r->out[o->stream], *room);
		}
		memcpy(r->out[o->stream] + *len, o->bytes.p, o->bytes.n);
		*len += o->bytes.n;
		r->out[o->stream][*len] = '\0';
		send_ack(r);
	}
}

/* Until EXIT; fails after PATIENCE_MS of silence. */
static inline void await_exit(struct result *r)
{
	struct ap_msg m;

	while (!r->is_ended) {
		assert_true(client_next(&m, PATIENCE_MS));
		result_take(r, &m);
	}
	assert_int_equal(r->len[0], r->exit.stdout_kept);
	assert_int_equal(r->len[1], r->exit.stderr_kept);
}

/* A round trip: everything sent before was handled. */
static inline void sync_agent(void)
{
	static uint64_t value;
	struct ap_msg m = {.type = AP_PING, .u.ping = {++value}};

	client_send(&m);
	do {
		assert_true(client_next(&m, PATIENCE_MS));
	} while (m.type != AP_PONG || m.u.ping.value != value);
}

static inline void send_forget(const struct ap_id *id)
{
	struct ap_msg m = {.type = AP_FORGET, .u.ref = {*id}};

	client_send(&m);
}

/* With a round trip: a new connection would take over before it is read. */
static inline void forget(const struct ap_id *id)
{
	send_forget(id);
	sync_agent();
}

static inline void send_cancel(const struct ap_id *id, uint32_t grace_ms)
{
	struct ap_msg m = {.type = AP_CANCEL, .u.cancel = {*id, grace_ms}};

	client_send(&m);
}

/* Start, wait, forget. */
static inline struct result run(const struct command_spec *s)
{
	struct result r = {.id = next_id()};
	uint64_t from = now_us();

	if (h.c.fd < 0)
		client_connect(NULL, 0);
	send_start(s, r.id);
	await_exit(&r);
	r.took_us = now_us() - from;
	forget(&r.id);
	return r;
}

static inline struct result run_sh(const char *script)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	struct command_spec s = {.argv = argv};

	return run(&s);
}

/* Runs the text until it prints that, and asserts that it does: for what takes a while.
 */
static inline void await_output(const char *script, const char *want)
{
	uint64_t until = now_us() + UINT64_C(1000) * PATIENCE_MS;
	bool is_there = false;
	struct result r;

	while (!is_there) {
		r = run_sh(script);
		is_there = r.out[0] && strcmp(r.out[0], want) == 0;
		if (!is_there && now_us() > until)
			assert_string_equal(r.out[0] ? r.out[0] : "", want);
		result_free(&r);
	}
}

/* A file that a command of the test waits for, in a folder that it can see. */
static inline void touch_in_dir(const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", h.dir, name);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
}

static inline void unlink_in_dir(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", h.dir, name);
	unlink(path);
}

/*
 * The command prints a line when it has made ready to ignore TERM, and is killed at its
 * end. One that was not so far when its time was over gets more.
 */
static inline struct result run_until_killed(struct command_spec s)
{
	struct result r;

	for (;;) {
		r = run(&s);
		assert_int_equal(r.exit.how, AP_SIGNALED);
		if (r.exit.value == SIGKILL || s.timeout_ms >= PATIENCE_MS)
			break;
		assert_int_equal(r.exit.value, SIGTERM);
		s.timeout_ms *= 4;
		result_free(&r);
	}
	assert_int_equal(r.exit.value, SIGKILL);
	assert_int_equal(r.exit.flags & AP_EXIT_TIMED_OUT, AP_EXIT_TIMED_OUT);
	assert_true(r.exit.duration_us >= UINT64_C(1000) * (s.timeout_ms + s.grace_ms));
	return r;
}

#endif
