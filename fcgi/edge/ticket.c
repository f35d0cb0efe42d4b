/* SPDX-License-Identifier: MIT */
#include "edge/ticket.h"

#include <assert.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "edge/calls.h"
#include "edge/client.h"
#include "edge/lot.h"
#include "edge/sender.h"
#include "edge/watch.h"

enum { REPLY_MAX = 512 * 1024 * 1024, HEAD_MAX = 8192, HEADER_LINES_MAX = 1024 };

struct ticket {
	struct client client; /* first */
	struct edge *edge;
	struct mcp_call *call;
	enum mcp_next next; /* what to begin with on the loop */
	struct err refused; /* kind set: the runner could not be asked */
	struct request request;
	struct watcher watcher;
	uv_timer_t timer;
	bool is_awaiting;
	int64_t started_us;
	size_t weight; /* of the request's body */
	struct buf cors;
};

/* How long the runner may take to answer. A restart makes a new sandbox. */
static const int64_t patience_ms[MSG_TYPE_COUNT] = {
	[MSG_RUN] = 60000,      [MSG_CANCEL] = 60000,       [MSG_DELETE] = 120000,
	[MSG_RESTART] = 600000, [MSG_SESSION_OPEN] = 30000, [MSG_SESSION_CLOSE] = 30000,
};

static struct ticket *of_client(struct client *c)
{
	return (struct ticket *)c;
}

static struct reply make_reply(const struct mcp_reply *m, struct buf *headers)
{
	if (m->session_id)
		buf_printf(headers, "Mcp-Session-Id: %s\r\n", m->session_id);
	if (m->retry_after_s)
		buf_printf(headers, "Retry-After: %d\r\n", m->retry_after_s);
	return (struct reply){
		.status = m->status,
		.type = m->body_len ? "application/json" : NULL,
		.headers = headers->p,
		.body = m->body,
		.n = m->body_len,
	};
}

static void log_call(const struct edge *edge, const struct mcp_call *call, int status,
		     int64_t started_us)
{
	if (edge->conf->log_mcp)
		log_info("mcp %s %d %lld us", mcp_call_method(call), status,
			 (long long)(clock_mono_us() - started_us));
	if (edge->conf->log_toolcalls && mcp_call_tool(call)[0] != '-')
		log_info("tool %s %lld us", mcp_call_tool(call),
			 (long long)(clock_mono_us() - started_us));
}

static void answer(struct ticket *t)
{
	AUTO_BUF headers = BUF_INIT(HEAD_MAX);
	AUTO_BUF b = BUF_INIT(REPLY_MAX);
	struct mcp_reply m = mcp_call_reply(t->call);
	struct reply r;

	buf_add(&headers, t->cors.p, t->cors.len);
	r = make_reply(&m, &headers);
	reply_add(&r, &b);
	stats_count(t->edge->stats, STATS_MCP, m.status);
	log_call(t->edge, t->call, m.status, t->started_us);
	http_log(t->edge->conf->log_http, "POST", str_of(t->edge->conf->mcp_path),
		 m.status, t->started_us);
	client_send(&t->client, chunk_new(b.p, b.len));
	client_end(&t->client);
}

static void go_on(struct ticket *t, enum mcp_next next);

static void set_awaiting(struct ticket *t, bool on)
{
	if (t->is_awaiting != on)
		stats_gauge_add(t->edge->stats, STATS_AWAITING, on ? 1 : -1);
	t->is_awaiting = on;
}

static void stop_waiting(struct ticket *t)
{
	uv_timer_stop(&t->timer);
	calls_forget(t->edge->calls, &t->request);
	watch_remove(t->edge->watches, &t->watcher);
	set_awaiting(t, false);
}

static void on_answered(struct request *r, const struct edgemsg *m)
{
	struct ticket *t =
		(struct ticket *)((char *)r - offsetof(struct ticket, request));

	uv_timer_stop(&t->timer);
	go_on(t, mcp_call_answer(t->call, &t->edge->reads.reads, m));
}

static void on_patience_over(uv_timer_t *timer)
{
	struct ticket *t = timer->data;
	struct err why = ERR_INIT;

	stop_waiting(t);
	err_set(&why, ERR_TIMEOUT, "the runner did not answer in time; try again later");
	go_on(t, mcp_call_fail(t->call, &t->edge->reads.reads, &why));
}

static void on_await_over(uv_timer_t *timer)
{
	struct ticket *t = timer->data;

	stop_waiting(t);
	go_on(t, mcp_call_run_done(t->call, &t->edge->reads.reads));
}

static void on_event(struct watcher *w, struct news *n)
{
	struct ticket *t =
		(struct ticket *)((char *)w - offsetof(struct ticket, watcher));

	(void)n; /* the last one; no other was asked for */
	stop_waiting(t);
	go_on(t, mcp_call_run_done(t->call, &t->edge->reads.reads));
}

/* The request as calls_ask() wants it. */
static void prepare_request(struct ticket *t)
{
	struct mcp_message m = mcp_call_message(t->call);

	t->request = (struct request){
		.type = m.type,
		.body = json_incref((json_t *)m.body),
		.weight = t->weight,
		.answered = on_answered,
	};
}

static void be_patient(struct ticket *t)
{
	int64_t ms = patience_ms[t->request.type];

	uv_timer_start(&t->timer, on_patience_over, (uint64_t)ms, 0);
	calls_kick(t->edge->calls);
}

/* True: waiting. False: *next is what comes instead. */
static bool ask(struct ticket *t, enum mcp_next *next)
{
	struct err e = ERR_INIT;

	prepare_request(t);
	if (calls_ask(t->edge->calls, &t->request, NULL, &e) == 0) {
		be_patient(t);
		return true;
	}
	json_decref(MOVE(t->request.body));
	*next = mcp_call_fail(t->call, &t->edge->reads.reads, &e);
	return false;
}

/* Watch first, look second: an end in between is heard of (edge/watch.h). */
static bool await(struct ticket *t, enum mcp_next *next)
{
	struct mcp_await a = mcp_call_await(t->call);
	struct mcp_reads *reads = &t->edge->reads.reads;
	enum store_run_state state;
	struct err e = ERR_INIT;

	if (watch_add(t->edge->watches, &t->watcher, a.run_id, &e) < 0 ||
	    store_read_run_state(t->edge->reader, STORE_TENANT_DEFAULT, a.run_id, &state,
				 &e) < 0) {
		watch_remove(t->edge->watches, &t->watcher);
		log_warn("cannot wait for %s: %s", a.run_id, e.msg);
		*next = mcp_call_fail(t->call, reads, &e);
		return false;
	}
	if (store_run_ended(state) || a.timeout_ms <= 0 || t->edge->is_stopping) {
		watch_remove(t->edge->watches, &t->watcher);
		*next = mcp_call_run_done(t->call, reads);
		return false;
	}
	set_awaiting(t, true);
	uv_timer_start(&t->timer, on_await_over, (uint64_t)a.timeout_ms, 0);
	return true;
}

/* Step until something must be waited for, or all is said. */
static void go_on(struct ticket *t, enum mcp_next next)
{
	bool waits = false;

	while (!waits) {
		switch (next) {
		case MCP_REPLY:
			answer(t);
			return;
		case MCP_SEND:
			waits = ask(t, &next);
			break;
		case MCP_AWAIT_RUN:
			waits = await(t, &next);
			break;
		case MCP_STREAM: /* only after mcp_get() */
			assert(false);
		}
	}
}

static void on_start(struct client *c)
{
	struct ticket *t = of_client(c);

	uv_timer_init(&t->edge->loop, &t->timer);
	t->timer.data = t;
	if (t->refused.kind != ERR_NONE)
		go_on(t, mcp_call_fail(t->call, &t->edge->reads.reads, &t->refused));
	else if (t->next == MCP_SEND)
		be_patient(t); /* the thread has asked already */
	else
		go_on(t, t->next);
}

/*
 * An awaited run goes on without us: say so. What was asked of the runner gets
 * its answer in a moment; the edge waits that long.
 */
static void on_stop(struct client *c)
{
	struct ticket *t = of_client(c);

	if (t->is_awaiting)
		on_await_over(&t->timer);
}

static void on_gone(struct client *c)
{
	struct ticket *t = of_client(c);

	stop_waiting(t);
	mcp_call_free(MOVE(t->call));
}

static void on_timer_closed(uv_handle_t *timer)
{
	struct ticket *t = timer->data;

	buf_release(&t->cors);
	free(t);
}

static void on_free(struct client *c)
{
	uv_close((uv_handle_t *)&of_client(c)->timer, on_timer_closed);
}

static const struct client_ops ticket_ops = {
	.start = on_start,
	.stop = on_stop,
	.gone = on_gone,
	.free = on_free,
};

static struct ticket *ticket_new(struct edge *edge, struct http *h, struct mcp_call *call,
				 enum mcp_next next, size_t weight)
{
	struct ticket *t = xcalloc(1, sizeof(*t));
	uint16_t id;
	int fd;

	t->edge = edge;
	t->call = call;
	t->next = next;
	t->weight = weight;
	t->started_us = h->started_us;
	t->watcher.event = on_event;
	t->watcher.only_end = true;
	t->cors = (struct buf)BUF_INIT(h->cors->max);
	buf_add(&t->cors, h->cors->p, h->cors->len);
	http_detach(h, &fd, &id);
	client_init(&t->client, &ticket_ops, fd, id);
	return t;
}

static void park(struct ticket *t)
{
	if (t->next == MCP_SEND) {
		prepare_request(t);
		if (calls_ask(t->edge->calls, &t->request, &t->client, &t->refused) == 0)
			return;
		json_decref(MOVE(t->request.body));
	}
	lot_park(t->edge->lot, &t->client);
}

static void answer_here(struct edge *edge, struct http *h, struct mcp_call *call)
{
	AUTO_BUF headers = BUF_INIT(HEADER_LINES_MAX);
	struct mcp_reply m = mcp_call_reply(call);
	struct reply r = make_reply(&m, &headers);

	log_call(edge, call, m.status, h->started_us);
	send_reply(edge, h, &r);
	mcp_call_free(call);
}

void ticket_go_on(struct edge *edge, struct http *h, const struct mcp_reads *reads,
		  struct mcp_call *call, enum mcp_next next, size_t weight)
{
	struct err e = ERR_INIT;

	while (next != MCP_REPLY) {
		if (lot_take_place(edge->lot, &e) == 0) {
			park(ticket_new(edge, h, call, next, weight));
			return;
		}
		next = mcp_call_fail(call, reads, &e);
	}
	answer_here(edge, h, call);
}
