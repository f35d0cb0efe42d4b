/* SPDX-License-Identifier: MIT */
#include "runner/edges.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

/* Requests taken from one edge before the loop looks at the others. */
enum { REQUESTS_PER_TURN = 64 };

/* An edge that leaves more than this unread is given no relayed messages. */
enum { RELAY_QUEUE_MAX = 256 };

/* Guests at one time; more wait in the listener's queue. */
enum { GUESTS_MAX = 64 };

struct queued {
	struct queued *next;
	enum edgemsg_type type;
	uint64_t id;
	json_t *body;
};

struct edge {
	uv_poll_t poll;
	struct edges *all;
	int index, fd, doorbell;
	struct queued *head, **tail; /* what the full socket refused */
	size_t nqueued;
	bool gone;
	bool is_guest; /* its place is free when it is gone and closed */
	bool is_taken;
	uint32_t visit; /* of guests at this place: which one it is */
};

struct edges {
	int n, open;
	uv_poll_t listener;
	int listen_fd; /* -1: no guests */
	bool hello;    /* requests are served */
	edges_request_fn *fn;
	void *arg;
	bool freed;
	struct edge *v;
};

static void on_poll(uv_poll_t *h, int status, int events);
static void listen_again(struct edges *all);
static void closed_one(struct edges *all);

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
	struct queued *a;

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
	struct queued *a = ed->head;

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

static void drop_answers(struct edge *ed)
{
	while (ed->head)
		drop_first(ed);
}

static void on_guest_closed(uv_handle_t *h)
{
	struct edge *ed = h->data;

	close(ed->fd);
	ed->is_taken = false;
	if (ed->all->freed) {
		closed_one(ed->all);
		return;
	}
	ed->all->open--;
	listen_again(ed->all);
}

/* An edge comes back on the same pair; a guest does not. */
static void leave(struct edge *ed)
{
	ed->gone = true;
	uv_poll_stop(&ed->poll);
	if (!ed->is_guest)
		return;
	drop_answers(ed);
	uv_close((uv_handle_t *)&ed->poll, on_guest_closed);
}

static void take_requests(struct edge *ed)
{
	for (int i = 0; i < REQUESTS_PER_TURN && !ed->head; i++) {
		AUTO_EDGEMSG m = {0};
		struct err e = ERR_INIT;
		int eof = 0;
		int rc = edgemsg_recv(ed->fd, &m, &eof, &e);

		if (rc > 0) {
			ed->all->fn(ed->all->arg,
				    (struct replyto){ed->index, ed->visit, m.id}, &m);
			continue;
		}
		if (rc < 0 && e.kind == ERR_INVALID) {
			refuse_malformed(ed, &e);
			continue;
		}
		if (rc < 0 || eof)
			leave(ed);
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

int edges_new(const struct edges_opts *o, struct edges **ret, struct err *e)
{
	struct edges *all = xcalloc(1, sizeof(*all));

	all->v = xcalloc((size_t)o->n + GUESTS_MAX, sizeof(*all->v));
	all->listen_fd = -1;
	all->fn = o->fn;
	all->arg = o->arg;
	*ret = all;
	for (int i = 0; i < o->n; i++) {
		struct edge *ed = &all->v[i];

		*ed = (struct edge){.all = all, .index = i, .fd = o->fds[i]};
		ed->doorbell = o->doorbells[i];
		ed->tail = &ed->head;
		ed->poll.data = ed;
		if (fcntl(ed->fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0 ||
		    uv_poll_init(o->loop, &ed->poll, ed->fd) < 0)
			return err_sys(e, "the pair of edge %d", i);
		all->n = all->open = i + 1;
	}
	return 0;
}

static void say_hello(struct edge *ed)
{
	send_or_queue(ed, MSG_HELLO, 0, json_pack("{s:i}", "pid", (int)getpid()));
	watch(ed);
}

void edges_hello(struct edges *all)
{
	all->hello = true;
	for (int i = 0; i < all->n; i++)
		say_hello(&all->v[i]);
	listen_again(all);
}

/* ---- guests */

static struct edge *free_place(struct edges *all)
{
	for (int i = all->n; i < all->n + GUESTS_MAX; i++)
		if (!all->v[i].is_taken)
			return &all->v[i];
	return NULL;
}

static void seat(struct edges *all, struct edge *ed, int fd)
{
	*ed = (struct edge){.all = all,
			    .index = (int)(ed - all->v),
			    .fd = fd,
			    .doorbell = -1,
			    .is_guest = true,
			    .is_taken = true,
			    .visit = ed->visit + 1};
	ed->tail = &ed->head;
	ed->poll.data = ed;
	if (uv_poll_init(all->listener.loop, &ed->poll, fd) < 0) {
		log_warn("a guest's connection cannot be watched");
		close(fd);
		ed->is_taken = false;
		return;
	}
	all->open++;
	say_hello(ed);
}

static void on_guest(uv_poll_t *h, int status, int events)
{
	struct edges *all = h->data;
	struct edge *ed = free_place(all);
	int fd;

	(void)status;
	(void)events;
	if (!ed) {
		uv_poll_stop(h);
		return;
	}
	fd = accept4(all->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		seat(all, ed, fd);
}

/* Only who can be served is taken in. */
static void listen_again(struct edges *all)
{
	if (all->listen_fd >= 0 && all->hello && !all->freed)
		uv_poll_start(&all->listener, UV_READABLE, on_guest);
}

int edges_listen(struct edges *all, int listen_fd, struct err *e)
{
	if (uv_poll_init(all->v[0].poll.loop, &all->listener, listen_fd) < 0)
		return err_set(e, ERR_SYSTEM, "control.sock cannot be watched");
	all->listener.data = all;
	all->listen_fd = listen_fd;
	all->open++;
	return 0;
}

/* What a guest asked for who has left is for nobody. */
static void answer(struct edges *all, struct replyto to, enum edgemsg_type type,
		   json_t *body)
{
	struct edge *ed = &all->v[to.edge];

	if (ed->visit == to.visit)
		send_or_queue(ed, type, to.id, body);
	else
		json_decref(body);
}

void edges_ok(struct edges *all, struct replyto to, json_t *body)
{
	answer(all, to, MSG_OK, body);
}

void edges_err(struct edges *all, struct replyto to, const struct err *why)
{
	answer(all, to, MSG_ERR,
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

/* A full socket means the same; its second's look finds what it was not told. */
static void ring_guests(struct edges *all)
{
	AUTO_JSON *empty = NULL;

	for (int i = all->n; i < all->n + GUESTS_MAX; i++) {
		struct edge *ed = &all->v[i];

		if (!ed->is_taken || ed->gone || ed->head)
			continue;
		if (!empty)
			empty = json_object();
		(void)try_send(ed, MSG_BELL, 0, empty);
	}
}

void edges_ring(struct edges *all)
{
	const uint64_t one = 1;

	/* A full counter means the edge has not looked yet: it will find this too. */
	for (int i = 0; i < all->n; i++)
		if (write(all->v[i].doorbell, &one, sizeof(one)) < 0)
			continue;
	ring_guests(all);
}

static void closed_one(struct edges *all)
{
	if (--all->open > 0)
		return;
	free(all->v);
	free(all);
}

static void on_closed(uv_handle_t *h)
{
	closed_one(((struct edge *)h->data)->all);
}

static void on_listener_closed(uv_handle_t *h)
{
	closed_one(h->data);
}

static void close_edge(struct edge *ed)
{
	drop_answers(ed);
	if (!ed->is_guest)
		uv_close((uv_handle_t *)&ed->poll, on_closed);
	else if (ed->is_taken && !ed->gone)
		leave(ed);
}

void edges_free(struct edges *all)
{
	if (!all)
		return;
	all->freed = true;
	all->open++; /* ours, so that nothing goes before all is closed */
	for (int i = 0; i < all->n + GUESTS_MAX; i++)
		if (i < all->n || all->v[i].is_taken)
			close_edge(&all->v[i]);
	if (all->listen_fd >= 0)
		uv_close((uv_handle_t *)&all->listener, on_listener_closed);
	closed_one(all);
}
