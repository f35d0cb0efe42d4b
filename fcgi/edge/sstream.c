/* SPDX-License-Identifier: MIT */
#include "edge/sstream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "edge/calls.h"
#include "edge/client.h"
#include "edge/errand.h"
#include "edge/keepalive.h"
#include "edge/lot.h"
#include "edge/outlet.h"
#include "edge/sse.h"
#include "edge/stats.h"
#include "edge/subs.h"

enum {
	BUCKETS = 1024, /* a power of two */
	NAME_LEN = 16,
	HEAD_MAX = 16 * 1024,
	FRAME_MAX = 4 * 1024 * 1024,
	/* Unread frames of a stream beyond the first. */
	UNREAD_MAX = 4 * 1024 * 1024,
	OPEN_PATIENCE_MS = 30000,
	/* Escaped in a message it may be twice as long and more. */
	RELAY_MAX = EDGEMSG_BODY_MAX / 4,
};

struct frame {
	struct frame *next;
	struct chunk *chunk;
};

struct sstream {
	struct client client; /* first */
	struct beat beat;
	struct edge *edge;
	struct mcp_call *call;
	enum mcp_next next_step;
	struct request request; /* opening the session */
	uv_timer_t patience;
	struct buf headers;           /* of the answer: CORS */
	struct sstream *next, **link; /* in its bucket; link NULL: not listed */
	bool is_announced;            /* its announcement has come back */
	char name[NAME_LEN + 1];      /* of this stream, for the announcement */
	struct frame *first, **last;  /* what the socket did not take */
	size_t unread;
	struct subs *subs;
};

struct sstreams {
	struct edge *edge;
	size_t count;
	struct sstream *buckets[BUCKETS];
};

static struct sstream *of_client(struct client *c)
{
	return (struct sstream *)c;
}

static const char *session_of(const struct sstream *s)
{
	return mcp_call_session(s->call);
}

/* Session ids are random hex digits: the last ones are as good as any hash. */
static struct sstream **bucket_of(struct sstreams *all, const char *session_id)
{
	size_t hash = 0;

	for (const char *p = session_id; *p; p++)
		hash = hash * 31 + (unsigned char)*p;
	return &all->buckets[hash % BUCKETS];
}

static void list(struct sstream *s)
{
	struct sstream **bucket = bucket_of(s->edge->sstreams, session_of(s));

	s->next = *bucket;
	s->link = bucket;
	if (s->next)
		s->next->link = &s->next;
	*bucket = s;
	s->edge->sstreams->count++;
}

static void unlist(struct sstream *s)
{
	if (!s->link)
		return;
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	s->link = NULL;
	s->edge->sstreams->count--;
}

/* ---- what it sends */

static void send_chunk(struct sstream *s, struct chunk *k)
{
	keepalive_postpone(s->edge->keepalive, &s->beat);
	client_send(&s->client, k);
}

static void on_drained(struct client *c)
{
	struct sstream *s = of_client(c);

	while (s->first && client_has_room(c)) {
		struct frame *f = s->first;

		s->first = f->next;
		if (!s->first)
			s->last = &s->first;
		s->unread -= f->chunk->len;
		send_chunk(s, f->chunk);
		free(f);
	}
}

static void drop_unread(struct sstream *s)
{
	struct frame *f;

	while ((f = s->first)) {
		s->first = f->next;
		chunk_put(f->chunk);
		free(f);
	}
	s->last = &s->first;
	s->unread = 0;
}

static void keep_unread(struct sstream *s, struct chunk *k)
{
	struct frame *f = xcalloc(1, sizeof(*f));

	f->chunk = k;
	*s->last = f;
	s->last = &f->next;
	s->unread += k->len;
}

static void give(struct sstream *s, struct chunk *k)
{
	if (!s->first && client_has_room(&s->client)) {
		send_chunk(s, k);
		return;
	}
	if (s->client.is_ending || (s->first && s->unread + k->len > UNREAD_MAX)) {
		chunk_put(k);
		log_warn("a session's stream is not read: it ends");
		client_close(&s->client);
		return;
	}
	keep_unread(s, k);
}

/* ---- its beginning */

static void announce(struct sstream *s)
{
	id_random_hex(s->name, NAME_LEN);
	errand_run(s->edge->errands, MSG_RELAY,
		   json_pack("{s:s, s:s, s:s}", "session_id", session_of(s), "kind",
			     "opened", "stream", s->name));
}

/* ---- what it is told of */

/* One that is not read is told later, and then only of what is new. */
static bool is_read(const struct sstream *s)
{
	return !s->first && client_has_room(&s->client);
}

static bool send_json(struct sstream *s, const struct buf *text)
{
	AUTO_BUF b = BUF_INIT(FRAME_MAX);

	if (text->len > 0) {
		mcp_frame(text->p, text->len, &b);
		send_chunk(s, chunk_new(b.p, b.len));
	}
	return true;
}

static bool on_updated(void *arg, const char *uri)
{
	struct sstream *s = arg;
	AUTO_BUF text = BUF_INIT(FRAME_MAX);

	mcp_call_updated(s->call, uri, &text);
	return is_read(s) && send_json(s, &text);
}

static bool on_task_changed(void *arg, const char *run_id)
{
	struct sstream *s = arg;
	AUTO_BUF text = BUF_INIT(FRAME_MAX);

	if (!is_read(s))
		return false;
	mcp_call_task_changed(s->call, &s->edge->reads.reads, run_id, &text);
	return send_json(s, &text);
}

static const struct subs_events subs_events = {.updated = on_updated,
					       .task_changed = on_task_changed};

static void set_subs(struct sstream *s, const json_t *uris, const json_t *tasks,
		     bool tell)
{
	if (!s->subs && json_array_size(uris) + json_array_size(tasks) == 0)
		return;
	if (!s->subs)
		s->subs = subs_new(s->edge, &subs_events, s);
	subs_set(s->subs,
		 &(struct subs_wanted){.uris = uris, .tasks = tasks, .tell = tell});
}

/* tell: the stream begins, and before it there was perhaps none. */
static void read_subs(struct sstream *s, bool tell)
{
	const struct mcp_reads *r = &s->edge->reads.reads;
	AUTO_JSON *uris = NULL;
	struct err e = ERR_INIT;

	if (r->subscriptions(r->arg, session_of(s), &uris, &e) < 0)
		log_warn("subscriptions: %s", e.msg);
	else
		set_subs(s, uris, NULL, tell);
}

static void begin(struct sstream *s)
{
	const json_t *listens = mcp_call_listens(s->call);
	AUTO_BUF b = BUF_INIT(FRAME_MAX);

	stats_count(s->edge->stats, STATS_MCP, 200);
	sse_add_head(&b, &s->headers);
	mcp_call_head(s->call, &b);
	if (!listens) {
		list(s);
		announce(s);
	}
	send_chunk(s, chunk_new(b.p, b.len));
	if (!s->client.is_open)
		return;
	if (listens)
		set_subs(s, json_object_get(listens, "uris"),
			 json_object_get(listens, "tasks"), false);
	else
		read_subs(s, true);
}

/* The session could not be opened: an ordinary answer. */
static void refuse(struct sstream *s)
{
	AUTO_BUF b = BUF_INIT(HEAD_MAX);
	struct mcp_reply m = mcp_call_reply(s->call);
	struct reply r = outlet_reply(&m, &s->headers);

	stats_count(s->edge->stats, STATS_MCP, m.status);
	reply_add(&r, &b);
	client_send(&s->client, chunk_new(b.p, b.len));
	client_end(&s->client);
}

static void go_on(struct sstream *s, enum mcp_next next)
{
	uv_timer_stop(&s->patience);
	if (next == MCP_STREAM)
		begin(s);
	else
		refuse(s);
}

static void on_answered(struct request *r, const struct edgemsg *m)
{
	struct sstream *s =
		(struct sstream *)((char *)r - offsetof(struct sstream, request));

	go_on(s, mcp_call_answer(s->call, &s->edge->reads.reads, m));
}

static void fail(struct sstream *s, const struct err *why)
{
	go_on(s, mcp_call_fail(s->call, &s->edge->reads.reads, why));
}

static void on_patience_over(uv_timer_t *timer)
{
	struct sstream *s = timer->data;
	struct err why = ERR_INIT;

	calls_forget(s->edge->calls, &s->request);
	err_set(&why, ERR_TIMEOUT, "the server did not answer in time");
	fail(s, &why);
}

static void ask(struct sstream *s)
{
	struct mcp_message m = mcp_call_message(s->call);
	struct err e = ERR_INIT;

	s->request = (struct request){.type = m.type,
				      .body = json_incref((json_t *)m.body),
				      .answered = on_answered};
	if (calls_ask(s->edge->calls, &s->request, NULL, &e) < 0) {
		json_decref(MOVE(s->request.body));
		fail(s, &e);
		return;
	}
	calls_kick(s->edge->calls);
	uv_timer_start(&s->patience, on_patience_over, OPEN_PATIENCE_MS, 0);
}

static void on_start(struct client *c)
{
	struct sstream *s = of_client(c);

	stats_gauge_add(s->edge->stats, STATS_STREAMS, 1);
	uv_timer_init(&s->edge->loop, &s->patience);
	s->patience.data = s;
	if (s->next_step == MCP_SEND)
		ask(s);
	else
		begin(s);
}

static void on_gone(struct client *c)
{
	struct sstream *s = of_client(c);

	stats_gauge_add(s->edge->stats, STATS_STREAMS, -1);
	uv_timer_stop(&s->patience);
	calls_forget(s->edge->calls, &s->request);
	keepalive_remove(s->edge->keepalive, &s->beat);
	unlist(s);
	subs_free(MOVE(s->subs));
	drop_unread(s);
	mcp_call_free(MOVE(s->call));
}

static void on_timer_closed(uv_handle_t *timer)
{
	struct sstream *s = timer->data;

	buf_release(&s->headers);
	free(s);
}

static void on_free(struct client *c)
{
	uv_close((uv_handle_t *)&of_client(c)->patience, on_timer_closed);
}

/* The client comes back; one that listens is told that this was meant. */
static void on_stop(struct client *c)
{
	struct sstream *s = of_client(c);
	AUTO_BUF text = BUF_INIT(FRAME_MAX);

	if (s->call && mcp_call_listens(s->call) && is_read(s)) {
		mcp_call_closing(s->call, &text);
		send_json(s, &text);
	}
	client_end(c);
}

static const struct client_ops sstream_ops = {
	.start = on_start,
	.drained = on_drained,
	.stop = on_stop,
	.gone = on_gone,
	.free = on_free,
};

void sstream_park(struct edge *edge, struct http *h, struct mcp_call *call,
		  enum mcp_next next)
{
	struct sstream *s = xcalloc(1, sizeof(*s));
	uint16_t id;
	int fd;

	s->edge = edge;
	s->call = call;
	s->next_step = next;
	s->last = &s->first;
	s->beat.client = &s->client;
	s->headers = (struct buf)BUF_INIT(h->cors->max);
	buf_add(&s->headers, h->cors->p, h->cors->len);
	http_log(h->log, h->method_name, h->path, 200, h->started_us);
	http_detach(h, &fd, &id);
	client_init(&s->client, &sstream_ops, fd, id);
	lot_park(edge->lot, &s->client);
}

/* ---- all of them */

struct sstreams *sstreams_new(struct edge *edge)
{
	struct sstreams *all = xcalloc(1, sizeof(*all));

	all->edge = edge;
	return all;
}

void sstreams_free(struct sstreams *all)
{
	assert(all->count == 0);
	free(all);
}

static struct sstream *next_of(struct sstream *s, const char *session_id)
{
	while (s && strcmp(session_of(s), session_id) != 0)
		s = s->next;
	return s;
}

/* The newest here; NULL: none. */
static struct sstream *find(struct sstreams *all, const char *session_id)
{
	return next_of(*bucket_of(all, session_id), session_id);
}

void sstream_send(struct sstreams *all, const char *session_id, const char *frame,
		  size_t n)
{
	struct sstream *s = find(all, session_id);

	/* One that is announced is the session's only one; else ask around. */
	if (s && s->is_announced)
		give(s, chunk_new(frame, n));
	else if (n > RELAY_MAX)
		log_warn("a frame of %zu bytes is too long for another edge", n);
	else
		errand_run(all->edge->errands, MSG_RELAY,
			   json_pack("{s:s, s:s, s:o}", "session_id", session_id, "kind",
				     "frame", "text", json_string_repaired(frame, n)));
}

void sstream_frame(struct edge *edge, const char *session_id, const json_t *body)
{
	const json_t *text = json_object_get(body, "text");
	struct sstream *s = find(edge->sstreams, session_id);

	if (s && json_is_string(text))
		give(s, chunk_new(json_string_value(text), json_string_length(text)));
}

void sstream_opened(struct edge *edge, const char *session_id, const json_t *body)
{
	const char *name = json_get_string(body, "stream");
	struct sstream *s = find(edge->sstreams, session_id), *next;

	for (; name && s; s = next) {
		next = next_of(s->next, session_id);
		if (strcmp(s->name, name) == 0)
			s->is_announced = true;
		else if (s->is_announced)
			client_end(&s->client);
	}
}

void sstream_closed(struct edge *edge, const char *session_id, const json_t *body)
{
	struct sstream *s = find(edge->sstreams, session_id), *next;

	(void)body;
	for (; s; s = next) {
		next = next_of(s->next, session_id);
		client_end(&s->client);
	}
}

void sstream_changed(struct edge *edge, const char *session_id, const json_t *body)
{
	struct sstream *s = find(edge->sstreams, session_id);

	(void)body;
	mcp_server_doubt_session(edge->mcp, session_id);
	if (s)
		read_subs(s, false);
}
