/* SPDX-License-Identifier: MIT */
#include "agent/conn.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	TURN_ROUNDS = 8, /* then other events have their chance */
	LAST_ROUNDS = 64,
};

static void conn_close(struct conn *n)
{
	if (n->watch.fd < 0)
		return;
	loop_watch(n->loop, &n->watch, 0);
	close(n->watch.fd);
	n->watch.fd = -1;
	plan_release(&n->plan);
	n->in_start = n->is_duplicate = n->said_hello = n->is_resumed = false;
	n->in.start = n->in.end = 0;
	fs_reset(&n->fs);
	out_reset(&n->out);
}

/* Why it ends, where a whole frame can still be sent. */
static void say_bye(struct conn *n, enum ap_bye_reason reason)
{
	struct ap_msg m = {.type = AP_BYE, .u.bye = {.reason = reason}};

	if (n->watch.fd >= 0 && out_has_room(&n->out)) {
		out_put(&n->out, &m);
		out_send(&n->out, n->watch.fd);
	}
}

static void conn_bye(struct conn *n, enum ap_bye_reason reason)
{
	say_bye(n, reason);
	conn_close(n);
}

static void put_hello(struct conn *n)
{
	static uint8_t list[AP_COMMANDS_MAX * 24];
	struct ap_msg m = ap_hello_init();
	struct commands *all = n->commands;
	size_t used = 0;

	for (size_t i = 0; i < all->n; i++) {
		struct ap_known k = {.id = all->v[i]->id,
				     .state = (uint8_t)all->v[i]->state};

		used += ap_known_put(list + used, sizeof(list) - used, &k);
	}
	memcpy(m.u.hello.boot_id, all->boot_id, sizeof(all->boot_id));
	m.u.hello.known = (struct ap_bytes){list, used};
	out_put(&n->out, &m);
}

/* What a runner says. Each returns false for a frame that ends the connection. */

/* All that was not acknowledged is told again. */
static void forget_told(struct command *c)
{
	c->told_start = c->told_exit = false;
	c->told_stdin = c->stdin_ring.base;
	for (int s = 0; s < AP_STREAM_COUNT; s++)
		c->streams[s].sent = c->streams[s].ring.base;
}

static void put_gone(struct conn *n, const struct ap_id *id)
{
	struct ap_msg m = {.type = AP_GONE, .u.ref = {.id = *id}};

	out_put(&n->out, &m);
}

static bool on_resume(struct conn *n, const struct ap_msg *m)
{
	struct ap_bytes list = m->u.resume.offsets;
	struct commands *all = n->commands;
	struct ap_offsets o;
	struct command *c;

	if (n->is_resumed)
		return false;
	for (size_t i = 0; i < all->n; i++)
		forget_told(all->v[i]);
	while (ap_offsets_next(&list, &o) == 1) {
		c = command_find(all, &o.id);
		if (c)
			command_ack(c, &o);
		else
			put_gone(n, &o.id);
	}
	n->is_resumed = true;
	return true;
}

static bool on_start_begin(struct conn *n, const struct ap_msg *m)
{
	if (n->in_start)
		return false;
	n->in_start = true;
	n->is_duplicate = command_find(n->commands, &m->u.start.id) != NULL;
	plan_begin(&n->plan, &m->u.start, n->is_duplicate);
	return true;
}

static bool on_start_data(struct conn *n, const struct ap_msg *m)
{
	return n->in_start && plan_add(&n->plan, m->u.data.bytes);
}

static bool on_start_end(struct conn *n, const struct ap_msg *m)
{
	struct ap_msg refusal = {.type = AP_EXIT};
	struct command *known;
	bool ok;

	(void)m;
	if (!n->in_start)
		return false;
	ok = plan_finish(&n->plan);
	if (ok && n->is_duplicate) {
		known = command_find(n->commands, &n->plan.head.id);
		if (known)
			forget_told(known);
		else
			put_gone(n, &n->plan.head.id); /* forgotten meanwhile */
	} else if (ok && !command_start(n->commands, &n->plan, &refusal.u.exit)) {
		out_put(&n->out, &refusal);
	}
	plan_release(&n->plan);
	n->in_start = false;
	return ok;
}

static bool on_stdin(struct conn *n, const struct ap_msg *m)
{
	struct command *c = command_find(n->commands, &m->u.stdin_data.id);

	if (!c)
		return true;
	if (m->type == AP_STDIN)
		return command_stdin(c, m->u.stdin_data.offset, m->u.stdin_data.bytes);
	command_stdin_eof(c, m->u.stdin_data.offset);
	return true;
}

static bool on_cancel(struct conn *n, const struct ap_msg *m)
{
	struct command *c = command_find(n->commands, &m->u.cancel.id);

	if (c)
		command_cancel(c, m->u.cancel.grace_ms);
	else
		put_gone(n, &m->u.cancel.id);
	return true;
}

static bool on_ack(struct conn *n, const struct ap_msg *m)
{
	struct command *c = command_find(n->commands, &m->u.ack.id);

	if (c)
		command_ack(c, &m->u.ack);
	return true;
}

static bool on_forget(struct conn *n, const struct ap_msg *m)
{
	struct command *c = command_find(n->commands, &m->u.ref.id);

	if (c)
		command_forget(c);
	return true;
}

static bool on_ping(struct conn *n, const struct ap_msg *m)
{
	struct ap_msg pong = {.type = AP_PONG, .u.ping = m->u.ping};

	out_put(&n->out, &pong);
	return true;
}

static bool on_pong(struct conn *n, const struct ap_msg *m)
{
	(void)n;
	(void)m;
	return true;
}

static bool on_fs(struct conn *n, const struct ap_msg *m)
{
	fs_message(&n->fs, m, &n->out);
	return true;
}

static bool (*const handlers[AP_TYPE_COUNT])(struct conn *, const struct ap_msg *) = {
	[AP_RESUME] = on_resume,
	[AP_START_BEGIN] = on_start_begin,
	[AP_START_DATA] = on_start_data,
	[AP_START_END] = on_start_end,
	[AP_STDIN] = on_stdin,
	[AP_STDIN_EOF] = on_stdin,
	[AP_CANCEL] = on_cancel,
	[AP_ACK] = on_ack,
	[AP_FORGET] = on_forget,
	[AP_FS_LIST] = on_fs,
	[AP_FS_READ] = on_fs,
	[AP_FS_WRITE] = on_fs,
	[AP_FS_WRITE_DATA] = on_fs,
	[AP_FS_WRITE_END] = on_fs,
	[AP_FS_CANCEL] = on_fs,
	[AP_FS_CREDIT] = on_fs,
	[AP_PING] = on_ping,
	[AP_PONG] = on_pong,
};

/* HELLO first, then RESUME, then anything. */
static void dispatch(struct conn *n, const struct ap_msg *m)
{
	bool ok = false;

	if (!n->said_hello) {
		n->said_hello = m->type == AP_HELLO;
		n->version = n->said_hello ? ap_version(&m->u.hello) : 0;
		if (n->said_hello && !n->version) {
			conn_bye(n, AP_BYE_VERSION);
			return;
		}
		ok = n->said_hello;
	} else if ((n->is_resumed || m->type == AP_RESUME) && handlers[m->type]) {
		ok = handlers[m->type](n, m);
	}
	if (!ok)
		conn_bye(n, AP_BYE_BAD_FRAME);
}

static void take_frames(struct conn *n)
{
	enum ap_result rc = AP_OK;
	struct ap_msg m;

	while (n->watch.fd >= 0 && out_has_room(&n->out)) {
		rc = ap_reader_next(&n->in, AP_FROM_RUNNER, &m);
		if (rc != AP_OK)
			break;
		dispatch(n, &m);
	}
	if (n->watch.fd >= 0 && rc == AP_BAD)
		conn_bye(n, AP_BYE_BAD_FRAME);
}

/* One read; true when something came. */
static bool take_bytes(struct conn *n)
{
	size_t room;
	void *p = ap_reader_space(&n->in, &room);
	ssize_t got;

	if (room == 0)
		return false;
	got = recv(n->watch.fd, p, room, 0);
	if (got > 0)
		ap_reader_fed(&n->in, (size_t)got);
	else if (got == 0 || (errno != EAGAIN && errno != EINTR))
		conn_close(n);
	return got > 0;
}

/*
 * The runner is gone, or another has come: what it had said before counts all the
 * same. A start that was not read yet is one that it has written down.
 */
static void hear_out(struct conn *n)
{
	for (int i = 0; i < LAST_ROUNDS && n->watch.fd >= 0; i++) {
		if (!take_bytes(n))
			return;
		take_frames(n);
		out_reset(&n->out); /* nobody reads it */
	}
}

/* What a command is owed. */

static void put_started(struct conn *n, struct command *c)
{
	struct ap_msg m = {.type = AP_STARTED};

	c->told_start = true;
	if (c->state == AP_ENDED && c->exit.how == AP_SPAWN_FAILED)
		return;
	m.u.started = (struct ap_started){.id = c->id,
					  .pid = (uint32_t)c->tree.leader,
					  .elapsed_us = now_us() - c->started_us,
					  .stdin_off = c->stdin_ring.base};
	c->told_stdin = c->stdin_ring.base;
	out_put(&n->out, &m);
}

static bool put_output(struct conn *n, struct command *c, enum ap_stream which)
{
	struct stream *s = &c->streams[which];
	struct ap_msg m = {.type = AP_OUTPUT};
	size_t len;
	const uint8_t *p = ring_at(&s->ring, s->sent, &len);

	if (!p)
		return false;
	if (len > AP_CHUNK_MAX)
		len = AP_CHUNK_MAX;
	m.u.output = (struct ap_output){.id = c->id,
					.stream = (uint8_t)which,
					.offset = s->sent,
					.bytes = {p, len}};
	out_put(&n->out, &m);
	s->sent += len;
	return true;
}

static void put_stdin_ack(struct conn *n, struct command *c)
{
	struct ap_msg m = {.type = AP_STDIN_ACK,
			   .u.stdin_ack = {c->id, c->stdin_ring.base}};

	c->told_stdin = c->stdin_ring.base;
	out_put(&n->out, &m);
}

static void put_exit(struct conn *n, struct command *c)
{
	struct ap_msg m = {.type = AP_EXIT, .u.exit = c->exit};

	c->told_exit = true;
	if (n->version < 2)
		m.u.exit.flags &= AP_EXIT_FLAGS_V1;
	out_put(&n->out, &m);
}

static bool has_news(const struct command *c)
{
	return c->state == AP_ENDED || c->told_stdin != c->stdin_ring.base ||
	       c->streams[AP_STDOUT].ring.end > c->streams[AP_STDOUT].sent ||
	       c->streams[AP_STDERR].ring.end > c->streams[AP_STDERR].sent;
}

/* One frame at most; false when nothing is owed. */
static bool put_owed(struct conn *n, struct command *c)
{
	if (!c->told_start) {
		/* A short command says all it has to say at once. */
		if (c->tell_at && !has_news(c))
			return false;
		put_started(n, c);
		return true;
	}
	if (put_output(n, c, AP_STDOUT) || put_output(n, c, AP_STDERR))
		return true;
	if (c->told_stdin != c->stdin_ring.base) {
		put_stdin_ack(n, c);
		return true;
	}
	if (c->state == AP_ENDED && !c->told_exit) {
		put_exit(n, c);
		return true;
	}
	return false;
}

static void fill(struct conn *n)
{
	struct commands *all = n->commands;
	bool any = true;

	while (any && n->is_resumed) {
		any = false;
		for (size_t i = 0; i < all->n && out_has_room(&n->out); i++)
			any |= put_owed(n, all->v[n->turn++ % all->n]);
		if (out_has_room(&n->out))
			any |= fs_put_next(&n->fs, &n->out);
		else
			any = false;
	}
}

static void conn_event(struct watch *w, uint32_t events)
{
	/* conn_turn(), which follows each event, does the work. */
	if (events & (EPOLLERR | EPOLLHUP)) {
		hear_out(w->arg);
		conn_close(w->arg);
	}
}

void conn_init(struct conn *n, struct loop *l, struct commands *all)
{
	n->watch = (struct watch){.fd = -1, .fn = conn_event, .arg = n};
	n->loop = l;
	n->commands = all;
	n->plan.script_fd = -1;
}

void conn_accept(struct conn *n, int fd)
{
	say_bye(n, AP_BYE_EVICTED);
	hear_out(n);
	conn_close(n);
	n->watch.fd = fd;
	n->watch.events = 0;
	put_hello(n);
}

void conn_turn(struct conn *n)
{
	bool sent = true, more = true;
	uint32_t want = EPOLLIN;

	for (int i = 0; i < TURN_ROUNDS && n->watch.fd >= 0 && sent && more; i++) {
		more = take_bytes(n);
		if (n->watch.fd < 0)
			return;
		take_frames(n);
		fill(n);
		if (n->watch.fd < 0)
			return;
		more |= n->out.start < n->out.end;
		sent = out_send(&n->out, n->watch.fd);
	}
	if (n->watch.fd < 0)
		return;
	if (n->out.failed) {
		hear_out(n);
		conn_close(n);
		return;
	}
	if (!sent)
		want = EPOLLOUT | (out_has_room(&n->out) ? EPOLLIN : 0);
	else if (more)
		want = EPOLLIN | EPOLLOUT;
	if (loop_watch(n->loop, &n->watch, want) < 0)
		conn_close(n);
}
