/* SPDX-License-Identifier: MIT */
#include "edge/stdio.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/io.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "edge/calls.h"
#include "edge/core.h"
#include "edge/errand.h"
#include "edge/lines.h"
#include "edge/subs.h"
#include "edge/touch.h"
#include "edge/watch.h"
#include "mcp/jsonrpc.h"

enum {
	LINE_MAX_BYTES = 64 * 1024 * 1024,
	/* A restart makes a new sandbox, the first write the first one. */
	PATIENCE_MS = 600000,
	RECONNECT_EVERY_MS = 100,
	RECONNECT_TRIES = 600,
	JOBS_MAX = 1000,
};

struct job;

struct stdio {
	struct edge edge;
	const struct stdio_args *args;
	int bell;
	struct touch *touch;
	struct lines *input;
	uv_timer_t reconnect;
	uv_signal_t term, interrupt;
	int tries;
	struct job *jobs;
	int njobs;
	bool is_over;      /* no more input */
	struct subs *subs; /* what the session has subscribed to */
	char session_id[ID_HEX_LEN + 1];
	struct err failed;
};

/* A message that waits for the runner's answer or a run's end. */
struct job {
	struct stdio *s;
	struct job *next, **link;
	struct mcp_call *call;
	struct request request;
	struct watcher watcher;
	uv_timer_t timer, pace;
	int open_timers;
	bool has_news;
	bool holds_input;  /* what comes after belongs to the session it opens */
	struct subs *subs; /* of subscriptions/listen */
};

static struct mcp_reads *reads_of(struct stdio *s)
{
	return &s->edge.reads.reads;
}

/* ---- output */

static void stop(struct stdio *s)
{
	uv_stop(&s->edge.loop);
}

static void write_line(struct stdio *s, const char *p, size_t n)
{
	struct err e = ERR_INIT;

	if (n == 0)
		return;
	if (io_write_all(s->args->out, p, n, &e) < 0 ||
	    io_write_all(s->args->out, "\n", 1, &e) < 0)
		stop(s); /* nobody reads any more */
}

/* ---- jobs */

static void on_timer_closed(uv_handle_t *h)
{
	struct job *j = h->data;

	if (--j->open_timers == 0)
		free(j);
}

static void stop_waiting(struct job *j)
{
	uv_timer_stop(&j->timer);
	uv_timer_stop(&j->pace);
	j->has_news = false;
	calls_forget(j->s->edge.calls, &j->request);
	watch_remove(j->s->edge.watches, &j->watcher);
}

static void end(struct job *j)
{
	struct stdio *s = j->s;

	stop_waiting(j);
	subs_free(MOVE(j->subs));
	if (j->holds_input)
		lines_go_on(s->input);
	*j->link = j->next;
	if (j->next)
		j->next->link = j->link;
	mcp_call_free(MOVE(j->call));
	uv_close((uv_handle_t *)&j->timer, on_timer_closed);
	uv_close((uv_handle_t *)&j->pace, on_timer_closed);
	if (--s->njobs == 0 && s->is_over)
		stop(s);
}

static void go_on(struct job *j, enum mcp_next next);

static void on_answered(struct request *r, const struct edgemsg *m)
{
	struct job *j = (struct job *)((char *)r - offsetof(struct job, request));

	uv_timer_stop(&j->timer);
	go_on(j, mcp_call_answer(j->call, reads_of(j->s), m));
}

static void on_patience_over(uv_timer_t *t)
{
	struct job *j = t->data;
	struct err why = ERR_INIT;

	stop_waiting(j);
	err_set(&why, ERR_TIMEOUT, "the server did not answer in time");
	go_on(j, mcp_call_fail(j->call, reads_of(j->s), &why));
}

static void on_await_over(uv_timer_t *t)
{
	struct job *j = t->data;

	stop_waiting(j);
	go_on(j, mcp_call_run_done(j->call, reads_of(j->s)));
}

static void on_pace_over(uv_timer_t *t);

/* At most one word of progress per MCP_PROGRESS_MS; it tells the latest. */
static void tell_progress(struct job *j)
{
	AUTO_BUF b = BUF_INIT(LINE_MAX_BYTES);

	j->has_news = true;
	if (uv_is_active((uv_handle_t *)&j->pace))
		return;
	j->has_news = false;
	uv_timer_start(&j->pace, on_pace_over, MCP_PROGRESS_MS, 0);
	mcp_call_progress_line(j->call, &b);
	write_line(j->s, b.p, b.len);
}

static void on_pace_over(uv_timer_t *t)
{
	struct job *j = t->data;

	if (j->has_news)
		tell_progress(j);
}

static void on_event(struct watcher *w, struct news *n)
{
	struct job *j = (struct job *)((char *)w - offsetof(struct job, watcher));

	if (store_event_is_terminal(n->event->type)) {
		stop_waiting(j);
		go_on(j, mcp_call_run_done(j->call, reads_of(j->s)));
	} else if (mcp_call_note(j->call, n->event)) {
		tell_progress(j);
	}
}

/* True: waiting. False: *next is what comes instead. */
static bool ask(struct job *j, enum mcp_next *next)
{
	struct mcp_message m = mcp_call_message(j->call);
	struct err e = ERR_INIT;

	j->request = (struct request){.type = m.type,
				      .body = json_incref((json_t *)m.body),
				      .answered = on_answered};
	if (calls_ask(j->s->edge.calls, &j->request, NULL, &e) == 0) {
		uv_timer_start(&j->timer, on_patience_over, PATIENCE_MS, 0);
		calls_kick(j->s->edge.calls);
		j->holds_input = m.type == MSG_SESSION_OPEN;
		if (j->holds_input)
			lines_hold(j->s->input);
		return true;
	}
	json_decref(MOVE(j->request.body));
	*next = mcp_call_fail(j->call, reads_of(j->s), &e);
	return false;
}

/* Watch first, look second: an end in between is heard of (edge/watch.h). */
static bool await(struct job *j, enum mcp_next *next)
{
	struct mcp_await a = mcp_call_await(j->call);
	struct edge *edge = &j->s->edge;
	enum store_run_state state = STORE_RUN_QUEUED;
	struct err e = ERR_INIT;

	j->watcher.only_end = !mcp_call_wants_progress(j->call);
	if (watch_add(edge->watches, &j->watcher, a.run_id, &e) < 0 ||
	    store_read_run_state(edge->reader, STORE_TENANT_DEFAULT, a.run_id, &state,
				 &e) < 0) {
		watch_remove(edge->watches, &j->watcher);
		*next = mcp_call_fail(j->call, reads_of(j->s), &e);
		return false;
	}
	if (store_run_ended(state) || a.timeout_ms <= 0) {
		watch_remove(edge->watches, &j->watcher);
		*next = mcp_call_run_done(j->call, reads_of(j->s));
		return false;
	}
	uv_timer_start(&j->timer, on_await_over, (uint64_t)a.timeout_ms, 0);
	return true;
}

/* ---- the client is asked, or told of what changed */

static void on_silence(uv_timer_t *t)
{
	struct job *j = t->data;
	struct err why = ERR_INIT;

	stop_waiting(j);
	err_set(&why, ERR_TIMEOUT, "the client did not answer what it was asked");
	go_on(j, mcp_call_fail(j->call, reads_of(j->s), &why));
}

static void ask_client(struct job *j)
{
	AUTO_BUF b = BUF_INIT(LINE_MAX_BYTES);

	mcp_call_question_lines(j->call, &b);
	write_line(j->s, b.p, b.len);
	uv_timer_start(&j->timer, on_silence, MCP_ASK_MS, 0);
}

static bool on_resource(void *arg, const char *uri)
{
	AUTO_BUF b = BUF_INIT(LINE_MAX_BYTES);

	mcp_call_updated(NULL, uri, &b);
	write_line(arg, b.p, b.len);
	return true;
}

static bool on_listened(void *arg, const char *uri)
{
	struct job *j = arg;
	AUTO_BUF b = BUF_INIT(LINE_MAX_BYTES);

	mcp_call_updated(j->call, uri, &b);
	write_line(j->s, b.p, b.len);
	return true;
}

static bool on_task(void *arg, const char *run_id)
{
	struct job *j = arg;
	AUTO_BUF b = BUF_INIT(LINE_MAX_BYTES);

	mcp_call_task_changed(j->call, reads_of(j->s), run_id, &b);
	write_line(j->s, b.p, b.len);
	return true;
}

static void listen_on(struct job *j)
{
	static const struct subs_events events = {.updated = on_listened,
						  .task_changed = on_task};
	const json_t *listens = mcp_call_listens(j->call);
	AUTO_BUF b = BUF_INIT(LINE_MAX_BYTES);

	mcp_call_acknowledgment(j->call, &b);
	write_line(j->s, b.p, b.len);
	j->subs = subs_new(&j->s->edge, &events, j);
	subs_set(j->subs,
		 &(struct subs_wanted){.uris = json_object_get(listens, "uris"),
				       .tasks = json_object_get(listens, "tasks")});
}

/* The session's subscriptions, which this process alone tells. */
static void read_subs(struct stdio *s)
{
	static const struct subs_events events = {.updated = on_resource};
	const struct mcp_reads *r = reads_of(s);
	AUTO_JSON *uris = NULL;
	struct err e = ERR_INIT;

	if (r->subscriptions(r->arg, s->session_id, &uris, &e) < 0) {
		log_warn("subscriptions: %s", e.msg);
		return;
	}
	if (!s->subs)
		s->subs = subs_new(&s->edge, &events, s);
	subs_set(s->subs, &(struct subs_wanted){.uris = uris});
}

static void answer(struct job *j)
{
	struct mcp_reply r = mcp_call_reply(j->call);
	AUTO_BUF last = BUF_INIT(LINE_MAX_BYTES);

	if (r.session_id)
		snprintf(j->s->session_id, sizeof(j->s->session_id), "%s", r.session_id);
	mcp_call_last_lines(j->call, &last);
	write_line(j->s, last.p, last.len);
	write_line(j->s, r.body, r.body_len);
	if (mcp_call_has_changed_session(j->call)) {
		mcp_server_doubt_session(j->s->edge.mcp, j->s->session_id);
		read_subs(j->s);
	}
	end(j);
}

static void go_on(struct job *j, enum mcp_next next)
{
	bool waits = false;

	while (!waits) {
		switch (next) {
		case MCP_REPLY:
			answer(j);
			return;
		case MCP_SEND:
			waits = ask(j, &next);
			break;
		case MCP_AWAIT_RUN:
			waits = await(j, &next);
			break;
		case MCP_ASK:
			ask_client(j);
			return;
		case MCP_STREAM:
			listen_on(j);
			return;
		}
	}
}

/* ---- input */

static void job_new(struct stdio *s, struct mcp_call *call, enum mcp_next next)
{
	struct job *j = xcalloc(1, sizeof(*j));

	j->s = s;
	j->call = call;
	j->watcher.event = on_event;
	uv_timer_init(&s->edge.loop, &j->timer);
	uv_timer_init(&s->edge.loop, &j->pace);
	j->timer.data = j->pace.data = j;
	j->open_timers = 2;
	j->next = s->jobs;
	j->link = &s->jobs;
	if (j->next)
		j->next->link = &j->next;
	s->jobs = j;
	s->njobs++;
	go_on(j, next);
}

/* What was asked and is not wanted any more: its run ends, no answer comes. */
static void cancel(struct stdio *s, const json_t *params)
{
	const json_t *id = json_object_get(params, "requestId");
	const char *reason = json_get_string(params, "reason");
	struct job *j, *next;

	for (j = s->jobs; id && j; j = next) {
		json_t *body;

		next = j->next;
		if (!mcp_call_has_id(j->call, id))
			continue;
		body = mcp_call_cancel_run(j->call,
					   reason ? reason : "its request was cancelled");
		if (body)
			errand_run(s->edge.errands, MSG_CANCEL, body);
		stop_waiting(j);
		go_on(j, mcp_call_canceled(j->call, reads_of(s)));
	}
}

/* An answer of the client; one that nobody waits for is thrown away. */
static void told(struct stdio *s, const json_t *message)
{
	enum mcp_next step;
	struct job *j;

	for (j = s->jobs; j; j = j->next)
		if (mcp_call_told(j->call, reads_of(s), NULL, message, &step)) {
			stop_waiting(j);
			go_on(j, step);
			return;
		}
}

/* What is about other requests of this client, all of which wait here. */
static bool is_for_others(struct stdio *s, const char *p, size_t n)
{
	struct err ignored = ERR_INIT; /* mcp_post() will say it */
	AUTO_JSON *doc = NULL;
	const char *method;

	if ((!memmem(p, n, "notifications/cancelled", 23) &&
	     !memmem(p, n, "\"ask-", 5)) ||
	    json_parse_bounded(p, n, MCP_VALUES_MAX, &doc, &ignored) < 0)
		return false;
	method = json_get_string(doc, "method");
	if (method && strcmp(method, "notifications/cancelled") == 0)
		cancel(s, json_object_get(doc, "params"));
	else if (mcp_response_id(doc))
		told(s, doc);
	else
		return false;
	return true;
}

static void refuse(struct stdio *s, const char *why)
{
	AUTO_FREE char *body = mcp_error_body(RPC_INVALID_REQUEST, why);

	write_line(s, body, strlen(body));
}

static enum mcp_next refuse_one_more(struct mcp_call *call)
{
	struct err e = ERR_INIT;

	err_set(&e, ERR_BUSY, "%d requests wait; wait for their answers", JOBS_MAX);
	return mcp_call_refuse(call, &e);
}

static void on_line(void *arg, const char *p, size_t n)
{
	struct stdio *s = arg;
	char base_url[320];
	struct mcp_call *call;
	enum mcp_next next;

	if (!p) {
		refuse(s, "the message is longer than MAX_BODY_BYTES allows");
		return;
	}
	if (is_for_others(s, p, n))
		return;
	mcp_base_url(s->edge.mcp, NULL, NULL, base_url, sizeof(base_url));
	next = mcp_post(s->edge.mcp, reads_of(s),
			&(struct mcp_http){
				.tenant = STORE_TENANT_DEFAULT,
				.content_type = "application/json",
				.accept = "application/json, text/event-stream",
				.session_id = s->session_id[0] ? s->session_id : NULL,
				.base_url = base_url,
				.is_stdio = true,
				.body = p,
				.body_len = n,
			},
			&call);
	if (s->njobs >= JOBS_MAX && next != MCP_REPLY)
		next = refuse_one_more(call);
	job_new(s, call, next);
}

static void on_end(void *arg)
{
	struct stdio *s = arg;
	struct job *j, *next;

	s->is_over = true;
	for (j = s->jobs; j; j = next) {
		next = j->next;
		if (j->subs)
			end(j);
		else if (mcp_call_is_asking(j->call))
			on_silence(&j->timer);
	}
	if (s->njobs == 0)
		stop(s);
}

/* ---- the connection */

static void on_reconnect(uv_timer_t *t)
{
	struct stdio *s = t->data;
	struct err e = ERR_INIT;
	int fd;

	if (s->args->connect(s->args->arg, &fd, &e) < 0) {
		if (++s->tries < RECONNECT_TRIES)
			return;
		s->failed = e;
		stop(s);
		return;
	}
	/* calls.c goes on with the same number. */
	if (dup3(fd, s->args->fd, O_CLOEXEC) < 0)
		err_sys(&s->failed, "put the connection in its place");
	close(fd);
	uv_timer_stop(t);
	if (s->failed.kind != ERR_NONE)
		stop(s);
	else
		calls_resume(s->edge.calls);
}

static void on_lost(void *arg)
{
	struct stdio *s = arg;

	log_info("the server's runner is gone; connecting again");
	s->tries = 0;
	uv_timer_start(&s->reconnect, on_reconnect, RECONNECT_EVERY_MS,
		       RECONNECT_EVERY_MS);
}

/* ---- the process */

static void on_signal(uv_signal_t *h, int signum)
{
	(void)signum;
	stop(h->data);
}

static int set_up(struct stdio *s, const struct conf *c, struct err *e)
{
	struct edge *edge = &s->edge;

	edge->conf = c;
	edge->db_path = s->args->db_path;
	s->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->bell < 0)
		return err_sys(e, "make an eventfd");
	if (mcp_server_new(c, &edge->mcp, e) < 0 ||
	    store_reader_open(edge->db_path, &edge->reader, e) < 0)
		return -1;
	mcp_store_reads_init(&edge->reads, edge->reader, c);
	if (uv_loop_init(&edge->loop) < 0)
		return err_set(e, ERR_SYSTEM, "no loop");
	edge->calls = calls_new(&edge->loop, s->args->fd, NULL);
	edge->watches = watches_new(&edge->loop, s->bell, edge->reader);
	edge->errands = errands_new(edge);
	calls_on_lost(edge->calls, s->bell, on_lost, s);
	s->touch = touch_start(edge);
	uv_timer_init(&edge->loop, &s->reconnect);
	uv_signal_init(&edge->loop, &s->term);
	uv_signal_init(&edge->loop, &s->interrupt);
	s->reconnect.data = s->term.data = s->interrupt.data = s;
	uv_signal_start(&s->term, on_signal, SIGTERM);
	uv_signal_start(&s->interrupt, on_signal, SIGINT);
	return 0;
}

int stdio_serve(const struct stdio_args *a, const struct conf *c, struct err *e)
{
	static const struct lines_events events = {.line = on_line, .end = on_end};
	struct stdio s = {.args = a, .bell = -1};
	const struct lines_source input = {.fd = a->in,
					   .max = (size_t)c->max_body_bytes,
					   .events = &events,
					   .arg = &s};

	signal(SIGPIPE, SIG_IGN);
	if (set_up(&s, c, e) < 0 || lines_start(&s.edge.loop, &input, &s.input, e) < 0)
		return -1;
	uv_run(&s.edge.loop, UV_RUN_DEFAULT);
	/* The process ends, and all of it with it: a thread may still wait in read(). */
	if (s.failed.kind == ERR_NONE)
		return 0;
	*e = s.failed;
	return -1;
}
