/* SPDX-License-Identifier: MIT */
#include "edge/stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/log.h"
#include "base/mem.h"
#include "edge/client.h"
#include "edge/keepalive.h"
#include "edge/lot.h"
#include "edge/sse.h"
#include "edge/watch.h"

enum {
	BATCH_EVENTS = 256,
	BATCH_BYTES = 32 * 1024,
	RETRY_MS = 1000, /* what the client is told to wait before it comes back */
	HEAD_MAX = 8192,
};

struct stream {
	struct client client; /* first */
	struct watcher watcher;
	struct beat beat;
	struct edge *edge;
	struct chunk *head; /* of the answer, until it is sent */
	int64_t last_seq;   /* of what is queued or sent */
	bool run_has_ended; /* as seen when it had caught up */
	bool is_behind;     /* the store has more than was handed out */
	bool has_caught_up; /* once, so that a run that ended already is noticed */
	char run_id[STORE_RUN_ID_SIZE];
};

static struct stream *of_client(struct client *c)
{
	return (struct stream *)c;
}

static void send_chunk(struct stream *s, struct chunk *k)
{
	keepalive_postpone(s->edge->keepalive, &s->beat);
	client_send(&s->client, k);
}

/* The run has ended but its last event is not there (any more), or it is gone. */
static bool has_nothing_more(struct stream *s)
{
	enum store_run_state state;
	struct err e = ERR_INIT;

	if (store_read_run_state(s->edge->reader, STORE_TENANT_DEFAULT, s->run_id, &state,
				 &e) == 0)
		return store_run_ended(state);
	if (e.kind != ERR_NOT_FOUND)
		log_warn("stream of %s: %s", s->run_id, e.msg);
	return true;
}

/* Send one batch. False: it ended, or there was none. */
static bool feed_batch(struct stream *s)
{
	AUTO_STORE_EVENTS events = {0};
	struct err e = ERR_INIT;
	bool is_last;

	if (store_read_run_events(s->edge->reader,
				  &(struct store_run_query){.run_id = s->run_id,
							    .after_seq = s->last_seq,
							    .max_events = BATCH_EVENTS,
							    .max_bytes = BATCH_BYTES},
				  &events, &e) < 0) {
		log_warn("stream of %s: %s", s->run_id, e.msg);
		client_end(&s->client); /* it resumes with Last-Event-ID */
		return false;
	}
	s->is_behind = events.more && events.n > 0;
	if (events.n == 0)
		return false;
	is_last = store_event_is_terminal(events.v[events.n - 1].type);
	s->last_seq = events.v[events.n - 1].seq;
	send_chunk(s, events_chunk(events.v, events.n));
	if (is_last)
		client_end(&s->client);
	return !is_last;
}

/* The past, as far as there is room for it. */
static void feed(struct stream *s)
{
	for (;;) {
		while (s->is_behind && client_has_room(&s->client) && feed_batch(s))
			;
		if (s->is_behind || !client_has_room(&s->client))
			return;
		if (s->run_has_ended)
			client_end(&s->client);
		if (s->has_caught_up)
			return;
		s->has_caught_up = true;
		if (!has_nothing_more(s))
			return;
		/* It ended before this look: one more reading finds all there is. */
		s->run_has_ended = s->is_behind = true;
	}
}

static void on_event(struct watcher *w, struct news *n)
{
	struct stream *s =
		(struct stream *)((char *)w - offsetof(struct stream, watcher));
	int64_t seq = n->event->seq;

	if (seq <= s->last_seq || s->is_behind || s->client.is_ending)
		return;
	if (seq != s->last_seq + 1 || !client_has_room(&s->client)) {
		s->is_behind = true;
		if (s->client.count == 0)
			feed(s);
		return;
	}
	s->last_seq = seq;
	send_chunk(s, chunk_get(news_sse(n)));
	if (store_event_is_terminal(n->event->type))
		client_end(&s->client);
}

static void on_drained(struct client *c)
{
	feed(of_client(c));
}

static void on_start(struct client *c)
{
	struct stream *s = of_client(c);
	struct err e = ERR_INIT;

	stats_gauge_add(s->edge->stats, STATS_STREAMS, 1);
	send_chunk(s, MOVE(s->head));
	if (!c->is_open)
		return;
	if (watch_add(s->edge->watches, &s->watcher, s->run_id, &e) < 0) {
		log_warn("stream of %s: %s", s->run_id, e.msg);
		client_end(c);
		return;
	}
	s->is_behind = true;
	feed(s);
}

static void on_gone(struct client *c)
{
	struct stream *s = of_client(c);

	stats_gauge_add(s->edge->stats, STATS_STREAMS, -1);
	keepalive_remove(s->edge->keepalive, &s->beat);
	watch_remove(s->edge->watches, &s->watcher);
}

static void on_free(struct client *c)
{
	struct stream *s = of_client(c);

	chunk_put(s->head);
	free(s);
}

static const struct client_ops stream_ops = {
	.start = on_start,
	.drained = on_drained,
	.stop = client_end, /* it comes back with Last-Event-ID */
	.gone = on_gone,
	.free = on_free,
};

static struct chunk *make_head(struct http *h)
{
	AUTO_BUF b = BUF_INIT(HEAD_MAX);

	sse_add_head(&b, h->cors);
	buf_printf(&b, "retry: %d\n\n", RETRY_MS);
	return chunk_new(b.p, b.len);
}

void stream_park(struct edge *edge, struct http *h, const char *run_id, int64_t after_seq)
{
	struct stream *s = xcalloc(1, sizeof(*s));
	uint16_t id;
	int fd;

	assert(strlen(run_id) < sizeof(s->run_id));
	memcpy(s->run_id, run_id, strlen(run_id) + 1);
	s->edge = edge;
	s->last_seq = after_seq;
	s->watcher.event = on_event;
	s->beat.client = &s->client;
	s->head = make_head(h);
	stats_count(h->stats, h->route, 200);
	http_log(h->log, h->method_name, h->path, 200, h->started_us);
	http_detach(h, &fd, &id);
	client_init(&s->client, &stream_ops, fd, id);
	lot_park(edge->lot, &s->client);
}
