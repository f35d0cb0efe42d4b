/* SPDX-License-Identifier: MIT */
#include "edge/probe.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/json.h"
#include "base/mem.h"
#include "edge/calls.h"
#include "edge/client.h"
#include "edge/lot.h"

enum { ANSWER_MAX = 4 * 1024 * 1024 };

struct probe {
	struct client client; /* first */
	struct edge *edge;
	enum probe_kind kind;
	struct request request;
	struct err refused; /* kind set: the runner could not be asked */
	uv_timer_t timer;
	struct buf cors;
};

static struct probe *of_client(struct client *c)
{
	return (struct probe *)c;
}

/* {"ok":..,"message":..}; a part that says nothing about itself is not ok. */
static bool add_part(json_t *parts, const char *name, const json_t *said,
		     const char *otherwise)
{
	bool ok = json_is_true(json_object_get(said, "ok"));
	const char *message = json_get_string(said, "message");

	if (!message)
		message = ok ? "" : otherwise;
	json_put(parts, name,
		 json_must(json_pack("{s:b,s:s}", "ok", ok, "message", message)));
	return ok;
}

/* Can this edge read what it must serve? */
static bool add_edge(json_t *parts, struct edge *edge)
{
	struct err e = ERR_INIT;
	int64_t ignored;
	bool ok = store_read_newest_event_id(edge->reader, &ignored, &e) == 0;

	json_put(parts, "edge",
		 json_must(json_pack("{s:b,s:s}", "ok", ok, "message", ok ? "" : e.msg)));
	return ok;
}

static struct reply ready_reply(struct probe *p, const json_t *status,
				const struct err *why, struct buf *body)
{
	AUTO_JSON *all = json_must(json_object());
	json_t *parts = json_must(json_object());
	bool ok = add_edge(parts, p->edge);

	json_put(parts, "runner",
		 json_must(json_pack("{s:b,s:s}", "ok", why == NULL, "message",
				     why ? why->msg : "")));
	ok = why == NULL && ok;
	ok = add_part(parts, "store", json_object_get(status, "store"),
		      "not known while the runner is silent") &&
	     ok;
	ok = add_part(parts, "backend", json_object_get(status, "backend"),
		      "not known while the runner is silent") &&
	     ok;
	json_put(all, "ok", json_boolean(ok));
	json_put(all, "parts", parts);
	json_dump_buf(all, body);
	return (struct reply){.status = ok ? 200 : 503,
			      .type = "application/json",
			      .body = body->p,
			      .n = body->len};
}

static struct reply metrics_reply(struct probe *p, const json_t *status,
				  const struct err *why, struct buf *body)
{
	const char *text = json_get_string(status, "metrics");

	buf_printf(body,
		   "# HELP mcp_up Whether a part of the server answers.\n"
		   "# TYPE mcp_up gauge\nmcp_up{part=\"runner\"} %d\n",
		   why == NULL);
	stats_print(p->edge->stats, body);
	if (text)
		buf_puts(body, text);
	return (struct reply){.status = 200,
			      .type = "text/plain; version=0.0.4; charset=utf-8",
			      .body = body->p,
			      .n = body->len};
}

static void finish(struct probe *p, const json_t *status, const struct err *why)
{
	static const enum stats_route routes[] = {
		[PROBE_READY] = STATS_HEALTH, [PROBE_METRICS] = STATS_METRICS};
	AUTO_BUF body = BUF_INIT(ANSWER_MAX);
	AUTO_BUF all = BUF_INIT(2 * (size_t)ANSWER_MAX);
	struct reply r = p->kind == PROBE_READY ? ready_reply(p, status, why, &body)
						: metrics_reply(p, status, why, &body);

	r.headers = p->cors.p;
	reply_add(&r, &all);
	stats_count(p->edge->stats, routes[p->kind], r.status);
	client_send_last(&p->client, chunk_new(all.p, all.len));
}

static void on_answered(struct request *r, const struct edgemsg *m)
{
	struct probe *p = (struct probe *)((char *)r - offsetof(struct probe, request));
	const char *message = json_get_string(m->body, "message");
	struct err why = ERR_INIT;

	uv_timer_stop(&p->timer);
	if (m->type == MSG_OK) {
		finish(p, m->body, NULL);
		return;
	}
	err_set(&why, ERR_BACKEND, "%s", message ? message : "the runner refused");
	finish(p, NULL, &why);
}

static void on_patience_over(uv_timer_t *timer)
{
	struct probe *p = timer->data;
	struct err why = ERR_INIT;

	calls_forget(p->edge->calls, &p->request);
	err_set(&why, ERR_TIMEOUT, "no answer in %d ms", PROBE_PATIENCE_MS);
	finish(p, NULL, &why);
}

static void on_start(struct client *c)
{
	struct probe *p = of_client(c);

	uv_timer_init(&p->edge->loop, &p->timer);
	p->timer.data = p;
	if (p->refused.kind != ERR_NONE) {
		finish(p, NULL, &p->refused);
		return;
	}
	uv_timer_start(&p->timer, on_patience_over, PROBE_PATIENCE_MS, 0);
	calls_kick(p->edge->calls);
}

static void on_gone(struct client *c)
{
	struct probe *p = of_client(c);

	uv_timer_stop(&p->timer);
	calls_forget(p->edge->calls, &p->request);
}

static void on_stop(struct client *c)
{
	struct probe *p = of_client(c);

	if (!c->is_ending)
		on_patience_over(&p->timer);
}

static void on_timer_closed(uv_handle_t *timer)
{
	struct probe *p = timer->data;

	buf_release(&p->cors);
	free(p);
}

static void on_free(struct client *c)
{
	uv_close((uv_handle_t *)&of_client(c)->timer, on_timer_closed);
}

static const struct client_ops probe_ops = {
	.start = on_start,
	.stop = on_stop,
	.gone = on_gone,
	.free = on_free,
};

void probe_answer(struct edge *edge, struct http *h, enum probe_kind kind)
{
	struct err e = ERR_INIT;
	struct probe *p;
	uint16_t id;
	int fd;

	if (lot_take_place(edge->lot, &e) < 0) {
		http_fail(h, &e);
		return;
	}
	p = xcalloc(1, sizeof(*p));
	p->edge = edge;
	p->kind = kind;
	p->cors = (struct buf)BUF_INIT(h->cors->max);
	buf_add(&p->cors, h->cors->p, h->cors->len);
	p->request = (struct request){.type = MSG_STATUS,
				      .body = json_must(json_object()),
				      .answered = on_answered};
	http_detach(h, &fd, &id);
	client_init(&p->client, &probe_ops, fd, id);
	if (calls_ask(edge->calls, &p->request, &p->client, &p->refused) == 0)
		return;
	json_decref(MOVE(p->request.body));
	lot_park(edge->lot, &p->client);
}
