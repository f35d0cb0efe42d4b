/* SPDX-License-Identifier: MIT */
#include "runner/warm.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "runner/sandboxjob.h"
#include "runner/turn.h"

enum { REMOVE_AGAIN_MS = 60000 };

struct warm *warm_new(struct runner *r, const char *name, enum warm_state state)
{
	struct warm *w = xcalloc(1, sizeof(*w));

	w->r = r;
	w->state = state;
	snprintf(w->is.name, sizeof(w->is.name), "%s", name);
	return w;
}

void warm_free(struct warm *w)
{
	agentconn_free(w->is.conn);
	free(w->is.container_id);
	free(w->is.image);
	free(w->is.fingerprint);
	free(w);
}

/* ---- what its agent says */

static void on_hello(void *arg, const struct ap_hello *h)
{
	static const uint8_t none[1];
	struct warm *w = arg;

	if (h->known.n > 0) {
		warm_failed(w, "its agent knows of commands");
		return;
	}
	memcpy(w->is.boot_id, h->boot_id, sizeof(w->is.boot_id));
	agentconn_send(w->is.conn,
		       &(struct ap_msg){.type = AP_RESUME, .u.resume.offsets.p = none});
	agentconn_flush(w->is.conn);
	w->state = WARM_READY;
	warm_is_ready(w);
}

/* It was told nothing that it could answer. */
static void on_message(void *arg, const struct ap_msg *m)
{
	(void)m;
	warm_failed(arg, "its agent said something unasked");
}

static void on_closed(void *arg, const char *why)
{
	warm_failed(arg, why);
}

/* ---- jobs */

static void job_done(void *owner, struct sandboxjob *j);

static void submit(struct warm *w, enum sandboxjob_kind what)
{
	w->job = true;
	sandboxjob_submit(
		w->r, &(struct sandboxjob_order){.what = what,
						 .spec = {.name = w->is.name,
							  .identifier = "",
							  .tenant = "",
							  .created_at_ms = clock_now_ms(),
							  .fresh = true},
						 .done = job_done,
						 .owner = w});
}

static void take_info(struct warm *w, struct sandbox_info *i)
{
	w->is.container_id =
		i->container_id ? MOVE(i->container_id) : xstrdup(w->is.name);
	w->is.image = i->image ? MOVE(i->image) : xstrdup(w->r->conf->image);
	w->is.fingerprint = MOVE(i->policy_fingerprint);
}

static void greet(struct warm *w, int *fd)
{
	static const struct agentconn_events events = {
		.hello = on_hello, .message = on_message, .closed = on_closed};
	struct err e = ERR_INIT;

	w->state = WARM_GREETING;
	if (agentconn_new(&(struct agentconn_args){.loop = &w->r->loop,
						   .all = &w->r->conns,
						   .fd = MOVE_FD(*fd),
						   .ev = &events,
						   .arg = w},
			  &w->is.conn, &e) < 0)
		warm_failed(w, e.msg);
}

static void opened(struct warm *w, struct sandboxjob *j)
{
	if (j->rc < 0) {
		warm_failed(w, j->e.msg);
		return;
	}
	if (j->order.what == SANDBOXJOB_OPEN) {
		metrics_observe_us(&w->r->metrics.sandbox_start, j->took_us);
		take_info(w, &j->info);
		warm_is_made(w);
	}
	greet(w, &j->fd);
}

static void removed(struct warm *w, struct sandboxjob *j)
{
	if (j->rc == 0) {
		warm_is_gone(w);
		return;
	}
	log_error("remove sandbox %s: %s", w->is.name, j->e.msg);
	w->retry_mono = clock_mono_ms() + REMOVE_AGAIN_MS;
}

static void job_done(void *owner, struct sandboxjob *j)
{
	struct warm *w = owner;

	w->job = false;
	if (w->dropped)
		warm_free(w);
	else if (j->order.what == SANDBOXJOB_REMOVE)
		removed(w, j);
	else if (w->state == WARM_LEAVING) /* unwanted meanwhile */
		submit(w, SANDBOXJOB_REMOVE);
	else
		opened(w, j);
}

/* ---- its life */

void warm_create(struct warm *w)
{
	w->state = WARM_CREATING;
	submit(w, SANDBOXJOB_OPEN);
}

void warm_connect(struct warm *w)
{
	w->state = WARM_CONNECTING;
	submit(w, SANDBOXJOB_CONNECT);
}

void warm_discard(struct warm *w)
{
	struct err e = ERR_INIT;

	agentconn_free(MOVE(w->is.conn));
	/* A store that fails is noticed by the commit. */
	if (w->state != WARM_LEAVING &&
	    store_warm_remove(w->r->store, w->is.name, &e) < 0)
		log_error("sandbox %s: %s", w->is.name, e.msg);
	turn_dirty(w->r);
	w->state = WARM_LEAVING;
	if (!w->job)
		submit(w, SANDBOXJOB_REMOVE);
}
