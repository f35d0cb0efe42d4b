/* SPDX-License-Identifier: MIT */
#include "edge/ticket.h"

#include <assert.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "edge/calls.h"
#include "edge/errand.h"
#include "edge/lot.h"
#include "edge/outlet.h"
#include "edge/sender.h"
#include "edge/watch.h"

enum { HEADER_LINES_MAX = 1024, TIMERS = 2 };

struct ticket {
	struct outlet out; /* first; begins with the client */
	struct edge *edge;
	struct mcp_call *call; /* NULL: over */
	enum mcp_next next;    /* what to begin with on the loop */
	struct err refused;    /* kind set: the runner could not be asked */
	struct request request;
	struct watcher watcher;
	uv_timer_t timer; /* patience with the runner, or the end of the wait */
	uv_timer_t pace;  /* runs: no progress before it ends */
	bool has_news;    /* for when it ends */
	bool is_awaiting;
	bool run_has_ended; /* told with the answer to MSG_RUN */
	bool is_alone;      /* its client has left */
	bool is_freed;      /* by its client */
	int open_timers;
	size_t weight; /* of the request's body */
	struct ticket *next_ticket, **link;
};

struct tickets {
	struct ticket *first;
	int64_t alone;
};

/* How long the runner may take to answer. A restart makes a new sandbox. */
static const int64_t patience_ms[MSG_TYPE_COUNT] = {
	[MSG_RUN] = 60000,          [MSG_CANCEL] = 60000,
	[MSG_DELETE] = 120000,      [MSG_RESTART] = 600000,
	[MSG_SESSION_OPEN] = 30000, [MSG_SESSION_CLOSE] = 30000,
	[MSG_RELAY] = 30000,        [MSG_FILE_READ] = 120000,
	[MSG_FILE_LIST] = 120000,   [MSG_FILE_WRITE] = 600000,
	[MSG_SUBSCRIBE] = 30000,    [MSG_SESSION_LEVEL] = 30000,
};

static struct ticket *of_client(struct client *c)
{
	return (struct ticket *)c;
}

static struct mcp_reads *reads_of(struct ticket *t)
{
	return &t->edge->reads.reads;
}

/* ---- its life */

static void on_timer_closed(uv_handle_t *timer)
{
	struct ticket *t = timer->data;

	if (--t->open_timers > 0)
		return;
	outlet_release(&t->out);
	free(t);
}

/* The memory goes when both the client and the call are done with it. */
static void free_when_done(struct ticket *t)
{
	if (t->call || !t->is_freed)
		return;
	uv_close((uv_handle_t *)&t->timer, on_timer_closed);
	uv_close((uv_handle_t *)&t->pace, on_timer_closed);
}

static void set_awaiting(struct ticket *t, bool on)
{
	if (t->is_awaiting != on)
		stats_gauge_add(t->edge->stats, STATS_AWAITING, on ? 1 : -1);
	t->is_awaiting = on;
}

static void stop_waiting(struct ticket *t)
{
	uv_timer_stop(&t->timer);
	uv_timer_stop(&t->pace);
	t->has_news = false;
	calls_forget(t->edge->calls, &t->request);
	watch_remove(t->edge->watches, &t->watcher);
	set_awaiting(t, false);
}

/* Over: it waits for nothing and is found no more. The call is the caller's. */
static struct mcp_call *leave(struct ticket *t)
{
	stop_waiting(t);
	*t->link = t->next_ticket;
	if (t->next_ticket)
		t->next_ticket->link = t->link;
	if (t->is_alone)
		t->edge->tickets->alone--;
	return MOVE(t->call);
}

/* Nothing is to be done any more. */
static void end(struct ticket *t)
{
	if (!t->call)
		return;
	mcp_call_free(leave(t));
	free_when_done(t);
}

static void enlist(struct ticket *t)
{
	struct tickets *all = t->edge->tickets;

	t->next_ticket = all->first;
	t->link = &all->first;
	if (t->next_ticket)
		t->next_ticket->link = &t->next_ticket;
	all->first = t;
}

/* ---- its steps */

static void go_on(struct ticket *t, enum mcp_next next);

static void on_answered(struct request *r, const struct edgemsg *m)
{
	struct ticket *t =
		(struct ticket *)((char *)r - offsetof(struct ticket, request));

	uv_timer_stop(&t->timer);
	t->run_has_ended =
		m->type == MSG_OK && json_is_true(json_object_get(m->body, "ended"));
	go_on(t, mcp_call_answer(t->call, reads_of(t), m));
}

static void on_patience_over(uv_timer_t *timer)
{
	struct ticket *t = timer->data;
	struct err why = ERR_INIT;

	stop_waiting(t);
	err_set(&why, ERR_TIMEOUT, "the server did not answer in time");
	go_on(t, mcp_call_fail(t->call, reads_of(t), &why));
}

static void on_await_over(uv_timer_t *timer)
{
	struct ticket *t = timer->data;

	stop_waiting(t);
	go_on(t, mcp_call_run_done(t->call, reads_of(t)));
}

static void on_pace_over(uv_timer_t *timer);

/* At most one word of progress per MCP_PROGRESS_MS; it tells the latest. */
static void tell_progress(struct ticket *t)
{
	t->has_news = true;
	if (uv_is_active((uv_handle_t *)&t->pace))
		return;
	t->has_news = false;
	uv_timer_start(&t->pace, on_pace_over, MCP_PROGRESS_MS, 0);
	outlet_progress(&t->out, t->call);
}

static void on_pace_over(uv_timer_t *timer)
{
	struct ticket *t = timer->data;

	if (t->has_news)
		tell_progress(t);
}

static void on_event(struct watcher *w, struct news *n)
{
	struct ticket *t =
		(struct ticket *)((char *)w - offsetof(struct ticket, watcher));

	if (store_event_is_terminal(n->event->type)) {
		stop_waiting(t);
		go_on(t, mcp_call_run_done(t->call, reads_of(t)));
	} else if (mcp_call_note(t->call, n->event)) {
		tell_progress(t);
	}
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
	*next = mcp_call_fail(t->call, reads_of(t), &e);
	return false;
}

/* Watch first, look second: an end in between is heard of (edge/watch.h). */
static int watch_run(struct ticket *t, const char *run_id, enum store_run_state *ret,
		     struct err *e)
{
	t->watcher.only_end = !mcp_call_wants_progress(t->call);
	if (watch_add(t->edge->watches, &t->watcher, run_id, e) < 0)
		return -1;
	if (store_read_run_state(t->edge->reader, STORE_TENANT_DEFAULT, run_id, ret, e) <
	    0) {
		watch_remove(t->edge->watches, &t->watcher);
		return -1;
	}
	return 0;
}

static bool await(struct ticket *t, enum mcp_next *next)
{
	struct mcp_await a = mcp_call_await(t->call);
	enum store_run_state state;
	struct err e = ERR_INIT;

	if (t->run_has_ended) { /* the runner said so with its answer */
		*next = mcp_call_run_done(t->call, reads_of(t));
		return false;
	}
	if (watch_run(t, a.run_id, &state, &e) < 0) {
		log_warn("cannot wait for %s: %s", a.run_id, e.msg);
		*next = mcp_call_fail(t->call, reads_of(t), &e);
		return false;
	}
	if (store_run_ended(state) || a.timeout_ms <= 0 || t->edge->is_stopping) {
		watch_remove(t->edge->watches, &t->watcher);
		*next = mcp_call_run_done(t->call, reads_of(t));
		return false;
	}
	set_awaiting(t, true);
	uv_timer_start(&t->timer, on_await_over, (uint64_t)a.timeout_ms, 0);
	outlet_wait(&t->out, t->call);
	return true;
}

/* The client is to say something: its stream carries the questions. */
static void on_silence(uv_timer_t *timer)
{
	struct ticket *t = timer->data;
	struct err why = ERR_INIT;

	stop_waiting(t);
	err_set(&why, ERR_TIMEOUT, "the client did not answer what it was asked");
	go_on(t, mcp_call_fail(t->call, reads_of(t), &why));
}

/* Whose stream is gone, nobody answers. */
static bool ask_client(struct ticket *t, enum mcp_next *next)
{
	struct err why = ERR_INIT;

	outlet_wait(&t->out, t->call);
	if (!t->call)
		return true; /* it left just now */
	if (t->edge->is_stopping || !outlet_ask(&t->out, t->call)) {
		err_set(&why, ERR_BUSY, "the client cannot be asked now");
		*next = mcp_call_fail(t->call, reads_of(t), &why);
		return false;
	}
	if (t->call)
		uv_timer_start(&t->timer, on_silence, MCP_ASK_MS, 0);
	return true;
}

/* The client may be found gone while it is told: then nothing of it is left to end. */
static void answer(struct ticket *t)
{
	struct mcp_call *call = leave(t);

	outlet_answer(&t->out, call);
	mcp_call_free(call);
	free_when_done(t);
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
		case MCP_ASK:
			waits = ask_client(t, &next);
			break;
		case MCP_STREAM: /* edge/sstream.h has these */
			assert(false);
		}
	}
}

/* ---- its client */

/* True: it may go on without a client; they are bounded like those that have one. */
static bool may_be_alone(struct ticket *t)
{
	struct tickets *all = t->edge->tickets;

	if (t->is_alone)
		return true;
	if (t->edge->is_stopping || all->alone >= t->edge->conf->max_parked)
		return false;
	t->is_alone = true;
	all->alone++;
	return true;
}

static void begin(struct ticket *t)
{
	if (t->refused.kind != ERR_NONE)
		go_on(t, mcp_call_fail(t->call, reads_of(t), &t->refused));
	else if (t->next == MCP_SEND)
		be_patient(t); /* the thread has asked already */
	else
		go_on(t, t->next);
}

static void on_start(struct client *c)
{
	struct ticket *t = of_client(c);

	uv_timer_init(&t->edge->loop, &t->timer);
	uv_timer_init(&t->edge->loop, &t->pace);
	t->timer.data = t->pace.data = t;
	t->open_timers = TIMERS;
	enlist(t);
	if (mcp_call_way(t->call) == MCP_WAY_SESSION && !may_be_alone(t)) {
		outlet_refuse(&t->out);
		end(t);
		return;
	}
	if (t->is_alone)
		outlet_take_leave(&t->out);
	begin(t);
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
	else if (t->call && mcp_call_is_asking(t->call))
		on_silence(&t->timer);
}

static void cancel_run(struct ticket *t, const char *reason)
{
	json_t *body = mcp_call_cancel_run(t->call, reason);

	if (body)
		errand_run(t->edge->errands, MSG_CANCEL, body);
}

/*
 * Our own end is no word of the client. A legacy client may still cancel what it
 * waits for no more, so its ticket stays to be found.
 */
static void on_gone(struct client *c)
{
	struct ticket *t = of_client(c);

	outlet_gone(&t->out);
	if (!t->call || (t->is_alone && !t->edge->is_stopping))
		return;
	if (mcp_call_ends_with_client(t->call)) {
		if (!t->edge->is_stopping)
			cancel_run(t, "the client closed the response");
		end(t);
	} else if (!mcp_call_has_run(t->call) || !may_be_alone(t)) {
		end(t);
	}
}

static void on_free(struct client *c)
{
	struct ticket *t = of_client(c);

	t->is_freed = true;
	free_when_done(t);
}

static const struct client_ops ticket_ops = {
	.start = on_start,
	.stop = on_stop,
	.gone = on_gone,
	.free = on_free,
};

/* ---- all of them */

struct tickets *tickets_new(void)
{
	return xcalloc(1, sizeof(struct tickets));
}

void tickets_free(struct tickets *all)
{
	while (all->first) {
		assert(all->first->is_alone);
		end(all->first);
	}
	free(all);
}

void ticket_cancel(struct edge *edge, const char *session_id, const json_t *body)
{
	const json_t *id = json_object_get(body, "request_id");
	const char *reason = json_get_string(body, "reason");
	struct ticket *t, *next;

	for (t = edge->tickets->first; id && t; t = next) {
		next = t->next_ticket;
		if (!mcp_call_is(t->call, session_id, id))
			continue;
		cancel_run(t, reason && *reason ? reason : "its request was cancelled");
		stop_waiting(t);
		go_on(t, mcp_call_canceled(t->call, reads_of(t)));
	}
}

void ticket_answer(struct edge *edge, const char *session_id, const json_t *body)
{
	const json_t *message = json_object_get(body, "message");
	struct ticket *t, *next;
	enum mcp_next step;

	for (t = edge->tickets->first; t; t = next) {
		next = t->next_ticket;
		if (!mcp_call_told(t->call, reads_of(t), session_id, message, &step))
			continue;
		stop_waiting(t);
		go_on(t, step);
		return;
	}
}

/* ---- on the accepting thread */

static struct ticket *ticket_new(struct edge *edge, struct http *h, struct mcp_call *call,
				 enum mcp_next next, size_t weight)
{
	struct ticket *t = xcalloc(1, sizeof(*t));

	t->edge = edge;
	t->call = call;
	t->next = next;
	t->weight = weight;
	t->watcher.event = on_event;
	outlet_init(&t->out, &ticket_ops, edge, h);
	return t;
}

static void park(struct ticket *t)
{
	if (t->next == MCP_SEND) {
		prepare_request(t);
		if (calls_ask(t->edge->calls, &t->request, &t->out.client, &t->refused) ==
		    0)
			return;
		json_decref(MOVE(t->request.body));
	}
	lot_park(t->edge->lot, &t->out.client);
}

static void answer_here(struct edge *edge, struct http *h, struct mcp_call *call)
{
	AUTO_BUF headers = BUF_INIT(HEADER_LINES_MAX);
	struct mcp_reply m = mcp_call_reply(call);
	struct reply r = outlet_reply(&m, &headers);

	outlet_log(edge, call, m.status, h->started_us);
	send_reply(edge, h, &r);
	mcp_call_free(call);
}

/* An answer that is no plain HTTP answer is for the loop, even when it is there. */
static bool is_for_loop(const struct mcp_call *call, enum mcp_next next)
{
	return next != MCP_REPLY || mcp_call_is_stream(call) ||
	       mcp_call_way(call) == MCP_WAY_SESSION;
}

void ticket_go_on(struct edge *edge, struct http *h, const struct mcp_reads *reads,
		  struct mcp_call *call, enum mcp_next next, size_t weight)
{
	struct err e = ERR_INIT;

	while (is_for_loop(call, next)) {
		if (lot_take_place(edge->lot, &e) == 0) {
			park(ticket_new(edge, h, call, next, weight));
			return;
		}
		if (next == MCP_REPLY) {
			mcp_call_free(call);
			http_fail(h, &e);
			return;
		}
		next = mcp_call_fail(call, reads, &e);
	}
	answer_here(edge, h, call);
}
