/* SPDX-License-Identifier: MIT */
#include "edge/calls.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "edge/lot.h"

enum {
	UNANSWERED_MAX = 4096,
	WEIGHT_MAX = 256 * 1024 * 1024,
	RECEIVE_BATCH = 64, /* packets per turn of the loop */
};

struct calls {
	uv_poll_t poll;
	int polled; /* events it waits for */
	int fd;
	struct lot *lot;
	void (*take_relayed)(struct edge *edge, const json_t *body);
	struct edge *edge;
	int bell; /* -1: none */
	void (*lost)(void *arg);
	void *lost_arg;

	pthread_mutex_t lock; /* what follows */
	uint64_t next_id;
	size_t count, weight;
	bool is_full; /* the pair took no more; the loop waits until it does */
	bool is_over; /* nobody is there any more */
	struct request *first, **last;
};

static void on_poll(uv_poll_t *handle, int status, int events);

static void append(struct calls *calls, struct request *r)
{
	r->next = NULL;
	r->link = calls->last;
	*calls->last = r;
	calls->last = &r->next;
	calls->count++;
	calls->weight += r->weight;
}

static void unlink_request(struct calls *calls, struct request *r)
{
	*r->link = r->next;
	if (r->next)
		r->next->link = r->link;
	else
		calls->last = r->link;
	r->link = NULL;
	calls->count--;
	calls->weight -= r->weight;
}

/* Under lock. -1: it cannot go now or ever. The pair may be full: it waits. */
static int send_one(struct calls *calls, struct request *r, struct err *e)
{
	struct err why = ERR_INIT;

	r->is_sent = edgemsg_send(calls->fd, r->type, r->id, r->body, &why) == 0;
	if (r->is_sent)
		return 0;
	calls->is_full = why.kind == ERR_BUSY;
	if (calls->is_full)
		return 0;
	*e = why;
	return -1;
}

/* Under lock: oldest first; a later one never overtakes. */
static void send_waiting(struct calls *calls)
{
	struct request *r;

	calls->is_full = false;
	for (r = calls->first; r && !calls->is_full; r = r->next) {
		struct err e = ERR_INIT;

		if (r->is_sent || send_one(calls, r, &e) == 0)
			continue;
		/* Its patience tells the client. */
		log_error("to the runner: %s", e.msg);
		r->is_sent = true;
	}
}

/* Loop: wait for room only while there is none. */
static void watch(struct calls *calls)
{
	int events;

	pthread_mutex_lock(&calls->lock);
	events = UV_READABLE | (calls->is_full ? UV_WRITABLE : 0);
	pthread_mutex_unlock(&calls->lock);
	/* libuv takes the descriptor out and in again, even for the same events. */
	if (uv_is_active((uv_handle_t *)&calls->poll) && events == calls->polled)
		return;
	calls->polled = events;
	uv_poll_start(&calls->poll, events, on_poll);
}

/* Loop: the request with this id, taken out; NULL: nobody waits any more. */
static struct request *take(struct calls *calls, uint64_t id)
{
	struct request *r;

	pthread_mutex_lock(&calls->lock);
	for (r = calls->first; r && r->id != id; r = r->next)
		;
	if (r)
		unlink_request(calls, r);
	pthread_mutex_unlock(&calls->lock);
	return r;
}

static void send_all_again(struct calls *calls)
{
	struct request *r;

	pthread_mutex_lock(&calls->lock);
	for (r = calls->first; r; r = r->next)
		r->is_sent = false;
	send_waiting(calls);
	pthread_mutex_unlock(&calls->lock);
}

static void adopt_waiting(struct calls *calls)
{
	if (calls->lot)
		lot_adopt_waiting(calls->lot);
}

static void ring(int bell)
{
	const uint64_t one = 1;

	/* A full counter rings already. */
	if (write(bell, &one, sizeof(one)) < 0)
		return;
}

static void handle(struct calls *calls, const struct edgemsg *m)
{
	struct request *r;

	if (m->type == MSG_HELLO) {
		send_all_again(calls);
		return;
	}
	if (m->type == MSG_BELL && calls->bell >= 0) {
		ring(calls->bell);
		return;
	}
	if (m->type == MSG_RELAYED && calls->take_relayed) {
		/* It may be about a client that still waits at the door. */
		adopt_waiting(calls);
		calls->take_relayed(calls->edge, m->body);
		return;
	}
	if (m->type != MSG_OK && m->type != MSG_ERR) {
		log_warn("the runner sent a message of type %d", (int)m->type);
		return;
	}
	r = take(calls, m->id);
	if (!r)
		return;
	/* Its client was parked under the lock that take() has just held. */
	adopt_waiting(calls);
	json_decref(MOVE(r->body));
	r->answered(r, m);
}

/* The oldest; NULL: none. */
static struct request *take_first(struct calls *calls)
{
	struct request *r;

	pthread_mutex_lock(&calls->lock);
	calls->is_over = true;
	r = calls->first;
	if (r)
		unlink_request(calls, r);
	pthread_mutex_unlock(&calls->lock);
	return r;
}

static void give_up(struct calls *calls)
{
	AUTO_JSON *body =
		json_must(json_pack("{s:s, s:s}", "kind", err_kind_name(ERR_TIMEOUT),
				    "message", "the server ended before it answered"));
	const struct edgemsg m = {.type = MSG_ERR, .body = body};
	struct request *r;

	while ((r = take_first(calls))) {
		adopt_waiting(calls);
		json_decref(MOVE(r->body));
		r->answered(r, &m);
	}
}

/* False: nothing more is there. */
static bool receive_one(struct calls *calls)
{
	struct edgemsg m = {0};
	struct err e = ERR_INIT;
	int eof = 0, rc = edgemsg_recv(calls->fd, &m, &eof, &e);

	if (rc < 0 && e.kind == ERR_INVALID) {
		log_warn("from the runner: %s", e.msg);
		return true;
	}
	if (rc < 0 || eof) {
		/* The master holds both ends, so the master is gone; the life
		 * pipe tells that the edge is to stop. */
		uv_poll_stop(&calls->poll);
		if (calls->lost)
			calls->lost(calls->lost_arg);
		else
			give_up(calls);
		return false;
	}
	if (rc > 0) {
		handle(calls, &m);
		edgemsg_release(&m);
	}
	return rc > 0;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct calls *calls = poll->data;

	if (status < 0 || (events & UV_READABLE)) {
		/* The last answer of an edge that stops may have closed it. */
		for (int i = 0; i < RECEIVE_BATCH && uv_is_active((uv_handle_t *)poll) &&
				receive_one(calls);
		     i++)
			;
	}
	if (events & UV_WRITABLE) {
		pthread_mutex_lock(&calls->lock);
		send_waiting(calls);
		pthread_mutex_unlock(&calls->lock);
	}
	if (uv_is_active((uv_handle_t *)poll))
		watch(calls);
}

struct calls *calls_new(uv_loop_t *loop, int fd, struct lot *lot)
{
	struct calls *calls = xcalloc(1, sizeof(*calls));
	int rc;

	calls->fd = fd;
	calls->lot = lot;
	calls->bell = -1;
	calls->last = &calls->first;
	id_random_bytes(&calls->next_id, sizeof(calls->next_id));
	pthread_mutex_init(&calls->lock, NULL);
	rc = uv_poll_init(loop, &calls->poll, fd);
	assert(rc == 0);
	calls->poll.data = calls;
	watch(calls);
	return calls;
}

void calls_on_relayed(struct calls *calls,
		      void (*relayed)(struct edge *edge, const json_t *body),
		      struct edge *edge)
{
	calls->take_relayed = relayed;
	calls->edge = edge;
}

void calls_on_lost(struct calls *calls, int bell, void (*lost)(void *arg), void *arg)
{
	calls->bell = bell;
	calls->lost = lost;
	calls->lost_arg = arg;
}

void calls_resume(struct calls *calls)
{
	watch(calls);
}

static void on_closed(uv_handle_t *handle)
{
	struct calls *calls = handle->data;

	pthread_mutex_destroy(&calls->lock);
	free(calls);
}

void calls_free(struct calls *calls)
{
	assert(!calls->first);
	uv_close((uv_handle_t *)&calls->poll, on_closed);
}

/* Under lock. */
static int check_bounds(const struct calls *calls, const struct request *r, struct err *e)
{
	if (calls->is_over)
		return err_set(e, ERR_BUSY, "the server ends or is started again");
	if (calls->count >= UNANSWERED_MAX || calls->weight > WEIGHT_MAX - r->weight)
		return err_set(e, ERR_BUSY,
			       "too many requests wait for the runner; try again later");
	return 0;
}

int calls_ask(struct calls *calls, struct request *r, struct client *c, struct err *e)
{
	int rc;

	assert(r->weight <= WEIGHT_MAX);
	pthread_mutex_lock(&calls->lock);
	rc = check_bounds(calls, r, e);
	if (rc == 0) {
		r->id = calls->next_id++;
		r->is_sent = false;
		append(calls, r);
		if (!calls->is_full && send_one(calls, r, e) < 0) {
			unlink_request(calls, r);
			rc = -1;
		}
	}
	if (rc == 0 && c)
		lot_park_for_answer(calls->lot, c);
	pthread_mutex_unlock(&calls->lock);
	return rc;
}

void calls_kick(struct calls *calls)
{
	watch(calls);
}

void calls_forget(struct calls *calls, struct request *r)
{
	pthread_mutex_lock(&calls->lock);
	if (r->link) {
		unlink_request(calls, r);
		json_decref(MOVE(r->body));
	}
	pthread_mutex_unlock(&calls->lock);
}
