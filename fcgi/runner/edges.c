/* SPDX-License-Identifier: MIT */
#include "runner/edges.h"

#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

/* Requests taken from one edge before the loop looks at the others. */
enum { REQUESTS_PER_TURN = 64 };

/* An edge that leaves more than this unread is given no relayed messages. */
enum { RELAY_QUEUE_MAX = 256 };

struct answer {
	struct answer *next;
	enum edgemsg_type type;
	uint64_t id;
	json_t *body;
};

struct edge {
	uv_poll_t poll;
	struct edges *all;
	int index, fd, doorbell;
	struct answer *head, **tail; /* what the full socket refused */
	size_t nqueued;
	bool gone;
};

struct edges {
	int n, open;
	edges_request_fn *fn;
	void *arg;
	bool freed;
	struct edge *v;
};

static void on_poll(uv_poll_t *h, int status, int events);

/* One who does not read our answers is not listened to: they would pile up. */
static void watch(struct edge *ed)
{
	uv_poll_start(&ed->poll, ed->head ? UV_WRITABLE : UV_READABLE, on_poll);
}

/* 1 sent or hopeless, 0 the socket is full. */
static int try_send(struct edge *ed, enum edgemsg_type type, uint64_t id,
		    const json_t *body)
{
	struct err e = ERR_INIT;

	if (edgemsg_send(ed->fd, type, id, body, &e) == 0)
		return 1;
	if (e.kind == ERR_BUSY)
		return 0;
	log_warn("answer to edge %d: %s", ed->index, e.msg);
	return 1;
}

static void send_or_queue(struct edge *ed, enum edgemsg_type type, uint64_t id,
			  json_t *body)
{
	struct answer *a;

	if (ed->gone || (!ed->head && try_send(ed, type, id, body))) {
		json_decref(body);
		return;
	}
	a = xcalloc(1, sizeof(*a));
	a->type = type;
	a->id = id;
	a->body = body;
	*ed->tail = a;
	ed->tail = &a->next;
	ed->nqueued++;
	watch(ed);
}

static void drop_first(struct edge *ed)
{
	struct answer *a = ed->head;

	ed->head = a->next;
	if (!ed->head)
		ed->tail = &ed->head;
	ed->nqueued--;
	json_decref(a->body);
	free(a);
}

static void flush(struct edge *ed)
{
	while (ed->head && try_send(ed, ed->head->type, ed->head->id, ed->head->body))
		drop_first(ed);
	watch(ed);
}

static void refuse_malformed(struct edge *ed, const struct err *e)
{
	log_warn("edge %d sent a malformed request: %s", ed->index, e->msg);
}

static void take_requests(struct edge *ed)
{
	for (int i = 0; i < REQUESTS_PER_TURN && !ed->head; i++) {
		AUTO_EDGEMSG m = {0};
		struct err e = ERR_INIT;
		int eof = 0;
		int rc = edgemsg_recv(ed->fd, &m, &eof, &e);

		if (rc > 0) {
			ed->all->fn(ed->all->arg, (struct replyto){ed->index, m.id}, &m);
			continue;
		}
		if (rc < 0 && e.kind == ERR_INVALID) {
			refuse_malformed(ed, &e);
			continue;
		}
		if (rc < 0 || eof) {
			ed->gone = true;
			uv_poll_stop(&ed->poll);
		}
		return;
	}
}

static void on_poll(uv_poll_t *h, int status, int events)
{
	struct edge *ed = h->data;

	(void)status; /* an error shows in the read */
	if (events & UV_WRITABLE)
		flush(ed);
	take_requests(ed);
}

int edges_new(uv_loop_t *loop, int n, const int *fds, const int *doorbells,
	      edges_request_fn *fn, void *arg, struct edges **ret, struct err *e)
{
	struct edges *all = xcalloc(1, sizeof(*all));

	all->v = xcalloc((size_t)n, sizeof(*all->v));
	all->fn = fn;
	all->arg = arg;
	*ret = all;
	for (int i = 0; i < n; i++) {
		struct edge *ed = &all->v[i];

		*ed = (struct edge){.all = all, .index = i, .fd = fds[i]};
		ed->doorbell = doorbells[i];
		ed->tail = &ed->head;
		ed->poll.data = ed;
		if (fcntl(ed->fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0 ||
		    uv_poll_init(loop, &ed->poll, ed->fd) < 0)
			return err_sys(e, "the pair of edge %d", i);
		all->n = all->open = i + 1;
	}
	return 0;
}

void edges_hello(struct edges *all)
{
	for (int i = 0; i < all->n; i++) {
		send_or_queue(&all->v[i], MSG_HELLO, 0,
			      json_pack("{s:i}", "pid", (int)getpid()));
		watch(&all->v[i]);
	}
}

void edges_ok(struct edges *all, struct replyto to, json_t *body)
{
	send_or_queue(&all->v[to.edge], MSG_OK, to.id, body);
}

void edges_err(struct edges *all, struct replyto to, const struct err *why)
{
	send_or_queue(&all->v[to.edge], MSG_ERR, to.id,
		      json_pack("{s:s,s:s}", "kind", err_kind_name(why->kind), "message",
				why->msg));
}

void edges_relay(struct edges *all, json_t *body)
{
	for (int i = 0; i < all->n; i++) {
		struct edge *ed = &all->v[i];

		if (ed->nqueued < RELAY_QUEUE_MAX)
			send_or_queue(ed, MSG_RELAYED, 0, json_incref(body));
		else
			log_warn("edge %d reads too slowly: a message is lost", i);
	}
}

void edges_ring(struct edges *all)
{
	const uint64_t one = 1;

	/* A full counter means the edge has not looked yet: it will find this too. */
	for (int i = 0; i < all->n; i++)
		if (write(all->v[i].doorbell, &one, sizeof(one)) < 0)
			continue;
}

static void on_closed(uv_handle_t *h)
{
	struct edges *all = ((struct edge *)h->data)->all;

	if (--all->open > 0)
		return;
	free(all->v);
	free(all);
}

void edges_free(struct edges *all)
{
	if (!all)
		return;
	for (int i = 0; i < all->n; i++) {
		while (all->v[i].head)
			drop_first(&all->v[i]);
		uv_close((uv_handle_t *)&all->v[i].poll, on_closed);
	}
	if (all->n == 0) {
		free(all->v);
		free(all);
	}
}
