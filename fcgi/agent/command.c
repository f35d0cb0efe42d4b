/* SPDX-License-Identifier: MIT */
#include "agent/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/fs.h"
#include "agent/oom.h"
#include "agent/spawn.h"
#include "base/auto.h"

enum {
	DRAIN_SILENCE_US = 100 * 1000, /* after the leader's exit: nothing came */
	DRAIN_TOTAL_US = 500 * 1000,
	KILL_AGAIN_US = 20 * 1000,
	KILL_ROUNDS = 100,
	/* Most commands that matter for speed are over by then: their output is read
	 * when they have ended, and nobody is woken for it. */
	TELL_US = 5 * 1000,
};

struct command *command_find(struct commands *all, const struct ap_id *id)
{
	for (size_t i = 0; i < all->n; i++) {
		if (ap_id_equal(&all->v[i]->id, id))
			return all->v[i];
	}
	return NULL;
}

static void close_stdin(struct command *c)
{
	if (c->stdin_watch.fd >= 0) {
		loop_watch(c->all->loop, &c->stdin_watch, 0);
		close(c->stdin_watch.fd);
	}
	c->stdin_watch.fd = -1;
	/* Nobody reads any more: as if everything had been taken. */
	ring_drop(&c->stdin_ring, c->stdin_ring.end);
	ring_release(&c->stdin_ring);
}

static void command_free(struct command *c)
{
	close_stdin(c);
	for (int i = 0; i < AP_STREAM_COUNT; i++)
		stream_release(&c->streams[i]);
	free(c);
}

/* The end of a command. */

static uint64_t timeval_us(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

static void fill_exit(struct command *c)
{
	const struct stream *out = &c->streams[AP_STDOUT], *err = &c->streams[AP_STDERR];
	struct ap_exit *x = &c->exit;

	x->id = c->id;
	if (x->how != AP_SPAWN_FAILED) {
		x->how = WIFSIGNALED(c->status) ? AP_SIGNALED : AP_EXITED;
		x->value = (uint32_t)(WIFSIGNALED(c->status) ? WTERMSIG(c->status)
							     : WEXITSTATUS(c->status));
	}
	if (out->total > out->cap)
		x->flags |= AP_EXIT_STDOUT_TRUNCATED;
	if (err->total > err->cap)
		x->flags |= AP_EXIT_STDERR_TRUNCATED;
	x->stdout_total = out->total;
	x->stderr_total = err->total;
	x->stdout_kept = out->ring.end;
	x->stderr_kept = err->ring.end;
	x->user_us = timeval_us(c->usage.ru_utime);
	x->sys_us = timeval_us(c->usage.ru_stime);
	x->max_rss_kib = (uint64_t)c->usage.ru_maxrss;
	x->duration_us = c->exited_us - c->started_us;
}

static void note_oom(struct command *c)
{
	uint64_t now;

	if (!c->oom_known || !oom_read(c->all->oom_fd, &now))
		return;
	c->exit.flags |= AP_EXIT_OOM_KNOWN;
	if (now > c->oom_before)
		c->exit.flags |= AP_EXIT_OOM;
}

static void end(struct command *c)
{
	int fd;

	if (c->is_reaped && tree_has_orphan(&c->tree))
		c->exit.background = (uint32_t)tree_count(&c->tree);
	for (int i = 0; i < AP_STREAM_COUNT; i++) {
		fd = stream_detach(&c->streams[i]);
		if (fd < 0)
			continue;
		c->exit.flags |= AP_EXIT_OUTPUT_OPEN;
		drain_start(c->all->loop, fd);
	}
	close_stdin(c);
	if (fs_is_empty(AP_ARTIFACTS))
		c->exit.flags |= AP_EXIT_NO_ARTIFACTS;
	note_oom(c);
	fill_exit(c);
	c->timeout_at = c->kill_at = c->silence_at = c->drain_at = c->tell_at = 0;
	c->state = AP_ENDED;
}

static bool is_output_over(const struct command *c, uint64_t now)
{
	bool open = false;

	for (int i = 0; i < AP_STREAM_COUNT; i++) {
		/* What waits in a full ring's pipe was written before: keep it. */
		if (c->streams[i].is_blocked)
			return false;
		open = open || stream_is_open(&c->streams[i]);
	}
	return !open || now >= c->silence_at || now >= c->drain_at;
}

static void end_if_over(struct command *c)
{
	if (c->state == AP_ENDED || !c->is_reaped)
		return;
	if (c->is_killing && !c->is_killed)
		return;
	if (is_output_over(c, now_us()))
		end(c);
}

static void output_event(struct watch *w, uint32_t events)
{
	struct command *c = w->arg;
	struct stream *s = (struct stream *)(void *)w; /* its first member */

	(void)events;
	if (stream_pump(s) && c->is_reaped)
		c->silence_at = now_us() + DRAIN_SILENCE_US;
	end_if_over(c);
}

/* Killing. */

/*
 * Gone means reaped: a zombie still has its place in the limit of processes, and the
 * next command may need it. Who dies with its parents is our child by then; SIGCHLD
 * is on its way for what waits here.
 */
static bool is_gone(const struct command *c)
{
	siginfo_t zombie = {0};

	return c->is_reaped && tree_count(&c->tree) == 0 &&
	       (waitid(P_ALL, 0, &zombie, WEXITED | WNOHANG | WNOWAIT) < 0 ||
		zombie.si_pid == 0);
}

static void kill_now(struct command *c)
{
	tree_kill(&c->tree);
	c->kill_rounds++;
	c->is_killed = is_gone(c);
	if (c->kill_rounds >= KILL_ROUNDS)
		c->is_killed = c->is_reaped; /* in the kernel's hands; counted */
	c->kill_at = c->is_killed ? 0 : now_us() + KILL_AGAIN_US;
	end_if_over(c);
}

static void kill_begin(struct command *c, uint32_t flag, uint32_t grace_ms)
{
	uint64_t at = now_us() + (uint64_t)grace_ms * 1000;

	if (c->state == AP_ENDED)
		return;
	c->timeout_at = 0;
	if (!c->is_killing) {
		c->is_killing = true;
		c->exit.flags |= flag;
		if (flag == AP_EXIT_TIMED_OUT && spawn_is_full())
			c->exit.flags |= AP_EXIT_NO_PROCESSES;
		c->kill_at = at;
		if (grace_ms > 0) {
			tree_signal(&c->tree, SIGTERM);
			tree_signal(&c->tree, SIGCONT);
		}
	}
	if (at < c->kill_at)
		c->kill_at = at;
	if (grace_ms == 0)
		kill_now(c);
}

void command_cancel(struct command *c, uint32_t grace_ms)
{
	kill_begin(c, AP_EXIT_CANCELED, grace_ms);
}

/* Starting. */

static void stdin_event(struct watch *w, uint32_t events);

/* Of every command that is given none; opened once. */
static int empty_input(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd;
}

static int open_stdin(struct command *c, int *ret_child_fd)
{
	int fds[2];

	if (ring_init(&c->stdin_ring, AP_STDIN_WINDOW) < 0)
		return -1;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	*ret_child_fd = fds[0];
	c->stdin_watch = (struct watch){.fd = fds[1], .fn = stdin_event, .arg = c};
	return fcntl(fds[1], F_SETFL, O_NONBLOCK);
}

static int open_output(struct command *c, enum ap_stream which, uint64_t cap,
		       int *ret_child_fd)
{
	struct stream *s = &c->streams[which];

	s->watch.fn = output_event;
	s->watch.arg = c;
	return stream_open(s, c->all->loop, cap, ret_child_fd);
}

static void spawn_failed(struct command *c, enum ap_stage stage, int error)
{
	c->exit.how = AP_SPAWN_FAILED;
	c->exit.stage = (uint8_t)stage;
	c->exit.value = (uint32_t)error;
	c->started_us = c->exited_us = now_us();
	end(c);
	c->exit.flags = 0; /* its pipes ended unused */
}

static void start(struct command *c, struct plan *p)
{
	const bool is_fed = p->head.flags & AP_START_STDIN;
	AUTO_CLOSE int in = -1;
	AUTO_CLOSE int out = -1;
	AUTO_CLOSE int err = -1;
	struct spawn s = {.argv = p->argv,
			  .envp = p->envp,
			  .cwd = p->cwd,
			  .user = &p->user,
			  .script_fd = p->script_fd,
			  .mark = c->tree.mark};

	if (p->error) {
		spawn_failed(c, p->stage, p->error);
		return;
	}
	if ((is_fed && open_stdin(c, &in) < 0) || (!is_fed && empty_input() < 0) ||
	    open_output(c, AP_STDOUT, p->head.stdout_cap, &out) < 0 ||
	    open_output(c, AP_STDERR, p->head.stderr_cap, &err) < 0) {
		spawn_failed(c, AP_STAGE_PIPE, errno);
		return;
	}
	s.fds[0] = is_fed ? in : empty_input();
	s.fds[1] = out;
	s.fds[2] = err;
	c->oom_known = oom_read(c->all->oom_fd, &c->oom_before);
	c->tree.leader = spawn(&s);
	if (c->tree.leader < 0) {
		spawn_failed(c, s.stage, s.error);
		return;
	}
	c->started_us = now_us();
	c->tell_at = c->started_us + TELL_US;
	c->kill_grace_ms = p->head.kill_grace_ms;
	if (p->head.timeout_ms)
		c->timeout_at = c->started_us + (uint64_t)p->head.timeout_ms * 1000;
}

static struct command *command_new(struct commands *all, const struct ap_start *head)
{
	struct command *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->id = head->id;
	c->all = all;
	c->tree.mark = tree_mark(all->boot_id, ++all->serial);
	c->tree.uid = head->uid;
	c->stdin_watch.fd = -1;
	for (int i = 0; i < AP_STREAM_COUNT; i++)
		c->streams[i].watch.fd = -1;
	all->v[all->n++] = c;
	return c;
}

struct command *command_start(struct commands *all, struct plan *p,
			      struct ap_exit *ret_refusal)
{
	struct command *c = NULL;

	*ret_refusal = (struct ap_exit){.id = p->head.id,
					.how = AP_SPAWN_FAILED,
					.stage = AP_STAGE_LIMIT,
					.value = EAGAIN};
	if (all->n < AP_COMMANDS_MAX) {
		ret_refusal->stage = AP_STAGE_MEMORY;
		ret_refusal->value = ENOMEM;
		c = command_new(all, &p->head);
	}
	if (c)
		start(c, p);
	return c;
}

/* What the runner sends. */

void command_ack(struct command *c, const struct ap_offsets *stored)
{
	bool was_blocked = c->streams[0].is_blocked || c->streams[1].is_blocked;

	stream_acked(&c->streams[AP_STDOUT], stored->stdout_off);
	stream_acked(&c->streams[AP_STDERR], stored->stderr_off);
	if (was_blocked && c->is_reaped) {
		c->silence_at = now_us() + DRAIN_SILENCE_US;
		c->drain_at = now_us() + DRAIN_TOTAL_US;
	}
}

/* Hand on what the pipe takes; the end of input closes it. */
static void feed_stdin(struct command *c)
{
	const uint8_t *p;
	ssize_t n = 0;
	size_t len;

	while ((p = ring_at(&c->stdin_ring, c->stdin_ring.base, &len))) {
		n = write(c->stdin_watch.fd, p, len);
		if (n < 0)
			break;
		ring_drop(&c->stdin_ring, c->stdin_ring.base + (uint64_t)n);
	}
	if ((n < 0 && errno != EAGAIN && errno != EINTR) || (!p && c->stdin_eof))
		close_stdin(c);
	else
		loop_watch(c->all->loop, &c->stdin_watch, p ? EPOLLOUT : 0);
}

static void stdin_event(struct watch *w, uint32_t events)
{
	(void)events;
	feed_stdin(w->arg);
}

bool command_stdin(struct command *c, uint64_t offset, struct ap_bytes data)
{
	uint64_t skip = c->stdin_ring.end - offset;

	if (offset > c->stdin_ring.end)
		return false;
	if (skip >= data.n || c->stdin_eof)
		return true; /* had it before */
	data.p += skip;
	data.n -= (size_t)skip;
	if (c->stdin_watch.fd < 0) {
		/* Nobody reads: swallowed, so that the runner's credit comes back. */
		c->stdin_ring.end += data.n;
		ring_drop(&c->stdin_ring, c->stdin_ring.end);
		return true;
	}
	if (ring_write(&c->stdin_ring, data.p, data.n) < data.n)
		return false;
	feed_stdin(c);
	return true;
}

void command_stdin_eof(struct command *c, uint64_t offset)
{
	if (offset != c->stdin_ring.end || c->stdin_watch.fd < 0)
		return;
	c->stdin_eof = true;
	feed_stdin(c);
}

void command_forget(struct command *c)
{
	struct commands *all = c->all;

	if (c->state != AP_ENDED)
		return;
	for (size_t i = 0; i < all->n; i++) {
		if (all->v[i] == c) {
			all->v[i] = all->v[--all->n];
			break;
		}
	}
	command_free(c);
}

/* Time and death. */

static struct command *find_leader(struct commands *all, pid_t pid)
{
	for (size_t i = 0; i < all->n; i++) {
		struct command *c = all->v[i];

		if (c->state == AP_RUNNING && !c->is_reaped && c->tree.leader == pid)
			return c;
	}
	return NULL;
}

/* False: not possible now. */
static bool watch_output(struct command *c)
{
	bool ok = true;

	for (int i = 0; i < AP_STREAM_COUNT; i++)
		ok = stream_watch(&c->streams[i]) && ok;
	return ok;
}

static void leader_exited(struct command *c, int status, const struct rusage *ru)
{
	c->is_reaped = true;
	c->status = status;
	c->usage = *ru;
	c->exited_us = now_us();
	c->timeout_at = 0;
	c->silence_at = c->exited_us + DRAIN_SILENCE_US;
	c->drain_at = c->exited_us + DRAIN_TOTAL_US;
	for (int i = 0; i < AP_STREAM_COUNT; i++)
		stream_pump(&c->streams[i]);
	watch_output(c); /* what others still hold; its drain is timed */
}

void commands_reap(struct commands *all)
{
	struct command *c;
	struct rusage ru;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &ru)) > 0) {
		c = find_leader(all, pid);
		if (c)
			leader_exited(c, status, &ru);
	}
	for (size_t i = 0; i < all->n; i++) {
		c = all->v[i];
		if (c->state == AP_RUNNING && c->is_reaped && c->is_killing &&
		    !c->is_killed)
			c->is_killed = is_gone(c);
		end_if_over(c);
	}
}

static void tick(struct command *c, uint64_t now)
{
	if (c->tell_at && now >= c->tell_at)
		c->tell_at = watch_output(c) ? 0 : now + TELL_US;
	if (c->timeout_at && now >= c->timeout_at)
		kill_begin(c, AP_EXIT_TIMED_OUT, c->kill_grace_ms);
	if (c->kill_at && now >= c->kill_at)
		kill_now(c);
	end_if_over(c);
}

/* When this command next needs a look, 0: only when something happens. */
static uint64_t deadline(const struct command *c)
{
	const uint64_t times[] = {c->tell_at, c->timeout_at, c->kill_at, c->silence_at,
				  c->drain_at};
	bool blocked = c->streams[0].is_blocked || c->streams[1].is_blocked;
	bool killing = c->is_killing && !c->is_killed;
	uint64_t at = 0;

	if (c->state == AP_ENDED)
		return 0;
	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		/* The drain waits for room, or for the tree to be gone. */
		if (i >= 3 && (blocked || killing))
			break;
		if (times[i] && (!at || times[i] < at))
			at = times[i];
	}
	return at;
}

void commands_tick(struct commands *all)
{
	uint64_t now = now_us(), at;

	for (size_t i = 0; i < all->n; i++) {
		at = deadline(all->v[i]);
		if (!at || now < at)
			continue;
		commands_reap(all); /* it may have ended by itself just now */
		tick(all->v[i], now);
	}
}

uint64_t commands_deadline(const struct commands *all)
{
	uint64_t at, next = 0;

	for (size_t i = 0; i < all->n; i++) {
		at = deadline(all->v[i]);
		if (at && (!next || at < next))
			next = at;
	}
	return next;
}
