/* SPDX-License-Identifier: MIT */
#include "edge/touch.h"

#include <stdlib.h>

#include "base/auto.h"
#include "base/log.h"
#include "base/mem.h"
#include "edge/calls.h"

enum { PERIOD_MS = 60000 };

struct touch {
	struct edge *edge;
	uv_timer_t timer;
	struct request request;
	bool is_asking;
};

static void on_answered(struct request *r, const struct edgemsg *m)
{
	struct touch *t = (struct touch *)((char *)r - offsetof(struct touch, request));

	t->is_asking = false;
	if (m->type != MSG_OK)
		log_warn("the runner did not take the sessions in use");
}

static void on_timer(uv_timer_t *timer)
{
	struct touch *t = timer->data;
	struct err e = ERR_INIT;
	json_t *body;

	/* While the runner is away the sessions are collected further. */
	if (t->is_asking)
		return;
	body = mcp_server_drain_touched(t->edge->mcp);
	if (!body)
		return;
	t->request = (struct request){
		.type = MSG_SESSION_TOUCH, .body = body, .answered = on_answered};
	if (calls_ask(t->edge->calls, &t->request, NULL, &e) < 0) {
		log_warn("sessions in use: %s", e.msg);
		json_decref(MOVE(t->request.body));
		return;
	}
	t->is_asking = true;
	calls_kick(t->edge->calls);
}

struct touch *touch_start(struct edge *edge)
{
	struct touch *t = xcalloc(1, sizeof(*t));

	t->edge = edge;
	uv_timer_init(&edge->loop, &t->timer);
	t->timer.data = t;
	uv_timer_start(&t->timer, on_timer, PERIOD_MS, PERIOD_MS);
	return t;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void touch_stop(struct touch *t)
{
	if (!t)
		return;
	calls_forget(t->edge->calls, &t->request);
	uv_close((uv_handle_t *)&t->timer, on_closed);
}
