/* SPDX-License-Identifier: MIT */
#include "runner/agentconn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"

enum {
	/* Read from one agent before the loop looks at the others. */
	READ_PER_TURN = 1024 * 1024,
	OUT_MAX = 128 * 1024 * 1024, /* an agent that reads nothing is given up */
	REPLY_MAX = 1024 * 1024,     /* see agentconn_reply() */
	OUT_KEEP = 256 * 1024,       /* capacity kept when all is sent */
	LATER_MAX = 512,             /* see agentconn_send_later() */
};

struct agentconn {
	uv_poll_t poll;
	int fd;
	const struct agentconn_events *ev;
	void *arg;
	bool said_hello, closing, told, want_write, overrun;
	int64_t born_ms, heard_ms, pinged_ms;
	uint8_t *out;
	size_t out_at, out_len, out_cap;
	struct ap_reader *reader; /* NULL: no byte waits */
	struct agentconns *all;
	struct agentconn *next, **prevp; /* of the talkers; prevp NULL: it is none */
};

static void on_poll(uv_poll_t *h, int status, int events);

static void watch(struct agentconn *c)
{
	if (!c->closing)
		uv_poll_start(&c->poll, UV_READABLE | (c->want_write ? UV_WRITABLE : 0),
			      on_poll);
}

static void tell_closed(struct agentconn *c, const char *why)
{
	if (c->told || c->closing)
		return;
	c->told = true;
	uv_poll_stop(&c->poll);
	c->ev->closed(c->arg, why);
}

static void reserve(struct agentconn *c, size_t n)
{
	if (c->out_at > 0 && c->out_at == c->out_len)
		c->out_at = c->out_len = 0;
	if (c->out_len + n <= c->out_cap)
		return;
	if (c->out_at > 0)
		memmove(c->out, c->out + c->out_at, c->out_len - c->out_at);
	c->out_len -= c->out_at;
	c->out_at = 0;
	if (c->out_len + n <= c->out_cap)
		return;
	c->out_cap = (c->out_len + n) * 2;
	c->out = xrealloc(c->out, c->out_cap);
}

static void enlist(struct agentconn *c)
{
	if (c->prevp)
		return;
	c->next = c->all->talkers;
	if (c->next)
		c->next->prevp = &c->next;
	c->prevp = &c->all->talkers;
	c->all->talkers = c;
}

static void unlist(struct agentconn *c)
{
	if (!c->prevp)
		return;
	*c->prevp = c->next;
	if (c->next)
		c->next->prevp = c->prevp;
	c->prevp = NULL;
}

/* What is left out would leave a hole, so all that follows is left out too. */
static bool put(struct agentconn *c, const struct ap_msg *m)
{
	if (c->told || c->closing || c->overrun)
		return false;
	if (agentconn_backlog(c) > OUT_MAX) {
		c->overrun = true;
		return false;
	}
	reserve(c, AP_FRAME_MAX);
	c->out_len += ap_encode(m, c->out + c->out_len, c->out_cap - c->out_len);
	return true;
}

void agentconn_send(struct agentconn *c, const struct ap_msg *m)
{
	if (put(c, m))
		enlist(c);
}

void agentconn_send_later(struct agentconn *c, const struct ap_msg *m)
{
	if (put(c, m) && agentconn_backlog(c) > LATER_MAX)
		enlist(c);
}

void agentconn_reply(struct agentconn *c, const struct ap_msg *m)
{
	if (agentconn_backlog(c) < REPLY_MAX)
		agentconn_send(c, m);
}

static void sent_all(struct agentconn *c)
{
	c->out_at = c->out_len = 0;
	if (c->out_cap > OUT_KEEP) {
		free(c->out);
		c->out = NULL;
		c->out_cap = 0;
	}
	if (c->want_write) {
		c->want_write = false;
		watch(c);
	}
}

/*
 * A write that fails says nothing by itself: the agent's last words may still be
 * there to read, and the read finds the end.
 */
void agentconn_flush(struct agentconn *c)
{
	unlist(c); /* what the socket does not take goes when it is writable */
	while (c->out_at < c->out_len && !c->told && !c->closing) {
		ssize_t n = send(c->fd, c->out + c->out_at, c->out_len - c->out_at,
				 MSG_NOSIGNAL);

		if (n >= 0) {
			c->out_at += (size_t)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN) {
			c->out_at = c->out_len;
			break;
		}
		if (!c->want_write) {
			c->want_write = true;
			watch(c);
		}
		return;
	}
	if (c->out_len > 0 && c->out_at == c->out_len)
		sent_all(c);
}

void agentconns_flush(struct agentconns *all)
{
	while (all->talkers)
		agentconn_flush(all->talkers);
}

size_t agentconn_backlog(const struct agentconn *c)
{
	return c->out_len - c->out_at;
}

static bool take_hello(struct agentconn *c, const struct ap_msg *m)
{
	if (m->type != AP_HELLO) {
		tell_closed(c, "the agent did not say hello first");
		return false;
	}
	if (ap_version(&m->u.hello) == 0) {
		tell_closed(c, "the agent speaks another version of the protocol; "
			       "restart the sandbox");
		return false;
	}
	c->said_hello = true;
	c->ev->hello(c->arg, &m->u.hello);
	return true;
}

static void take_message(struct agentconn *c, const struct ap_msg *m)
{
	if (!c->said_hello) {
		take_hello(c, m);
	} else if (m->type == AP_HELLO) {
		tell_closed(c, "the agent said hello twice");
	} else if (m->type == AP_PING) {
		agentconn_reply(c, &(struct ap_msg){.type = AP_PONG, .u = m->u});
	} else if (m->type != AP_PONG) {
		c->ev->message(c->arg, m);
	}
}

/* ---- input */

static void reader_take(struct agentconn *c)
{
	if (c->reader)
		return;
	c->reader = c->all->spare ? MOVE(c->all->spare) : xmalloc(sizeof(*c->reader));
	c->reader->start = c->reader->end = 0;
}

static void reader_drop(struct agentconn *c)
{
	if (c->all->spare)
		free(c->reader);
	else
		c->all->spare = c->reader;
	c->reader = NULL;
}

void agentconns_release(struct agentconns *all)
{
	free(all->spare);
	all->spare = NULL;
}

/* False when the connection is over. */
static bool take_messages(struct agentconn *c)
{
	struct ap_msg m;

	while (!c->told && !c->closing) {
		enum ap_result r = ap_reader_next(c->reader, AP_FROM_AGENT, &m);

		if (r == AP_MORE)
			return true;
		if (r == AP_BAD) {
			tell_closed(c, "the agent sent a malformed frame");
			return false;
		}
		take_message(c, &m);
	}
	return !c->told && !c->closing;
}

/* One read: bytes taken, 0 nothing there, -1 over. */
static ssize_t read_some(struct agentconn *c)
{
	size_t room = 0;
	void *p = ap_reader_space(c->reader, &room);
	ssize_t n = recv(c->fd, p, room, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		tell_closed(c, "the agent closed the connection");
		return -1;
	}
	ap_reader_fed(c->reader, (size_t)n);
	c->heard_ms = clock_mono_ms();
	return n;
}

static void read_messages(struct agentconn *c)
{
	size_t budget = READ_PER_TURN;

	reader_take(c);
	while (take_messages(c) && budget > 0) {
		ssize_t n = read_some(c);

		if (n <= 0)
			break;
		budget -= (size_t)n < budget ? (size_t)n : budget;
	}
	if (c->reader->start == c->reader->end || c->told || c->closing)
		reader_drop(c);
}

static void destroy(uv_handle_t *h)
{
	struct agentconn *c = h->data;

	close(c->fd);
	free(c->out);
	free(c->reader);
	free(c);
}

static void on_poll(uv_poll_t *h, int status, int events)
{
	struct agentconn *c = h->data;

	if (status < 0) {
		/* It broke. The last words are read first, and then the end is found. */
		read_messages(c);
		if (!c->told)
			watch(c); /* libuv has stopped */
		return;
	}
	if (events & UV_WRITABLE)
		agentconn_flush(c);
	if (events & UV_READABLE)
		read_messages(c);
}

int agentconn_new(const struct agentconn_args *a, struct agentconn **ret, struct err *e)
{
	struct agentconn *c = xcalloc(1, sizeof(*c));
	struct ap_msg hello = ap_hello_init();

	if (uv_poll_init(a->loop, &c->poll, a->fd) < 0) {
		close(a->fd);
		free(c);
		return err_set(e, ERR_SYSTEM, "the agent's stream cannot be watched");
	}
	c->fd = a->fd;
	c->ev = a->ev;
	c->arg = a->arg;
	c->all = a->all;
	c->poll.data = c;
	c->born_ms = c->heard_ms = c->pinged_ms = clock_mono_ms();
	agentconn_send(c, &hello);
	agentconn_flush(c);
	watch(c);
	*ret = c;
	return 0;
}

void agentconn_hand_over(struct agentconn *c, const struct agentconn_events *ev,
			 void *arg)
{
	c->ev = ev;
	c->arg = arg;
}

void agentconn_heartbeat(struct agentconn *c, int64_t mono_ms)
{
	struct ap_msg ping = {.type = AP_PING, .u.ping.value = (uint64_t)mono_ms};

	if (mono_ms - c->heard_ms >= AGENTCONN_SILENCE_MS ||
	    (!c->said_hello && mono_ms - c->born_ms >= AGENTCONN_HELLO_MS)) {
		tell_closed(c, "the agent does not answer");
		return;
	}
	if (c->overrun) {
		tell_closed(c, "the agent reads nothing of what it is told");
		return;
	}
	agentconn_flush(c);
	if (mono_ms - c->heard_ms < AGENTCONN_PING_MS ||
	    mono_ms - c->pinged_ms < AGENTCONN_PING_MS)
		return;
	c->pinged_ms = mono_ms;
	agentconn_send(c, &ping);
	agentconn_flush(c);
}

void agentconn_free(struct agentconn *c)
{
	if (!c || c->closing)
		return;
	c->closing = true;
	unlist(c);
	uv_close((uv_handle_t *)&c->poll, destroy);
}
