/* SPDX-License-Identifier: MIT */
#include "edge/subs.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/log.h"
#include "base/mem.h"
#include "edge/watch.h"
#include "mcp/uris.h"

struct sub {
	struct watcher watcher; /* first */
	struct subs *all;
	struct sub *next;
	struct uri uri;
	bool is_task, is_wanted, has_changed;
	char *text; /* the uri, or the run_id of a task */
};

struct subs {
	struct edge *edge;
	const struct subs_events *events;
	void *arg;
	uv_timer_t pace; /* runs: nothing is told before it ends */
	struct sub *first;
	bool is_telling, is_over; /* freed while it tells */
};

/* ---- telling */

static void tell_all(struct subs *s);

static void on_pace_over(uv_timer_t *timer)
{
	tell_all(timer->data);
}

static bool tell(const struct sub *x)
{
	const struct subs *s = x->all;

	return x->is_task ? s->events->task_changed(s->arg, x->text)
			  : s->events->updated(s->arg, x->text);
}

static void release(struct subs *s);

static void tell_all(struct subs *s)
{
	s->is_telling = true;
	for (struct sub *x = s->first; x && !s->is_over; x = x->next) {
		if (!x->has_changed)
			continue;
		uv_timer_start(&s->pace, on_pace_over, SUBS_PACE_MS, 0);
		x->has_changed = !tell(x);
	}
	s->is_telling = false;
	if (s->is_over)
		release(s);
}

static void changed(struct sub *x)
{
	x->has_changed = true;
	if (!uv_is_active((uv_handle_t *)&x->all->pace))
		tell_all(x->all);
}

/* Does the newest run with files, that of the uri, happen to be this one? */
static bool is_latest(const struct sub *x, const char *run_id)
{
	struct store_reader *reader = x->all->edge->reader;
	char newest[STORE_RUN_ID_SIZE];
	struct err e = ERR_INIT;

	return store_read_latest_artifacts(reader, STORE_TENANT_DEFAULT,
					   x->uri.identifier, newest, &e) == 0 &&
	       strcmp(newest, run_id) == 0;
}

static bool concerns(const struct sub *x, const struct store_event *ev)
{
	bool is_output = ev->type == STORE_EVENT_COMMAND_STDOUT ||
			 ev->type == STORE_EVENT_COMMAND_STDERR;

	if (x->is_task)
		return !is_output;
	switch (x->uri.kind) {
	case URI_RUN:
		return true;
	case URI_OUTPUT:
		return ev->command_index == x->uri.command &&
		       ev->type == (x->uri.stream == STORE_STDERR
					    ? STORE_EVENT_COMMAND_STDERR
					    : STORE_EVENT_COMMAND_STDOUT);
	case URI_ARTIFACT:
		return ev->type == STORE_EVENT_ARTIFACTS_EXTRACTED;
	case URI_LATEST:
		return is_latest(x, ev->run_id);
	}
	return false;
}

static void on_event(struct watcher *w, struct news *n)
{
	struct sub *x = (struct sub *)w;
	bool is_over = store_event_is_terminal(n->event->type) &&
		       (x->is_task || x->uri.kind != URI_LATEST);

	if (is_over)
		watch_remove(x->all->edge->watches, &x->watcher);
	if (concerns(x, n->event))
		changed(x);
}

/* ---- having them */

static const char *run_of(const struct sub *x)
{
	if (x->is_task)
		return x->text;
	return x->uri.kind == URI_LATEST ? "" : x->uri.run_id;
}

/* Watch first, look second: an end in between is heard of (edge/watch.h). */
static void watch(struct sub *x)
{
	struct edge *edge = x->all->edge;
	const char *run_id = run_of(x);
	enum store_run_state state;
	struct err e = ERR_INIT;

	x->watcher.event = on_event;
	if (watch_add(edge->watches, &x->watcher, run_id, &e) < 0) {
		log_warn("a subscription: %s", e.msg);
		return;
	}
	if (*run_id && (store_read_run_state(edge->reader, STORE_TENANT_DEFAULT, run_id,
					     &state, &e) < 0 ||
			store_run_ended(state)))
		watch_remove(edge->watches, &x->watcher);
}

static struct sub *find(struct subs *s, const char *text, bool is_task)
{
	struct sub *x = s->first;

	while (x && (x->is_task != is_task || strcmp(x->text, text) != 0))
		x = x->next;
	return x;
}

static void want(struct subs *s, const char *text, bool is_task, bool missed)
{
	struct sub *x = find(s, text, is_task);

	if (!x) {
		x = xcalloc(1, sizeof(*x));
		if (!is_task && !uri_parse(text, &x->uri)) {
			free(x);
			return;
		}
		x->all = s;
		x->is_task = is_task;
		x->text = xstrdup(text);
		x->next = s->first;
		s->first = x;
		watch(x);
	}
	x->is_wanted = true;
	x->has_changed |= missed;
}

static void want_all(struct subs *s, const json_t *texts, bool is_task, bool missed)
{
	const json_t *v;
	size_t i;

	json_array_foreach(texts, i, v)
		if (json_is_string(v) && i < EDGEMSG_SUBSCRIPTIONS_MAX)
			want(s, json_string_value(v), is_task, missed);
}

static void drop_unwanted(struct subs *s)
{
	struct sub **at = &s->first, *x;

	while ((x = *at)) {
		if (x->is_wanted) {
			at = &x->next;
			continue;
		}
		*at = x->next;
		watch_remove(s->edge->watches, &x->watcher);
		free(x->text);
		free(x);
	}
}

void subs_set(struct subs *s, const struct subs_wanted *w)
{
	for (struct sub *x = s->first; x; x = x->next)
		x->is_wanted = false;
	want_all(s, w->uris, false, w->tell);
	want_all(s, w->tasks, true, w->tell);
	drop_unwanted(s);
	if (w->tell)
		tell_all(s);
}

struct subs *subs_new(struct edge *edge, const struct subs_events *events, void *arg)
{
	struct subs *s = xcalloc(1, sizeof(*s));

	s->edge = edge;
	s->events = events;
	s->arg = arg;
	uv_timer_init(&edge->loop, &s->pace);
	s->pace.data = s;
	return s;
}

static void on_closed(uv_handle_t *timer)
{
	free(timer->data);
}

static void release(struct subs *s)
{
	for (struct sub *x = s->first; x; x = x->next)
		x->is_wanted = false;
	drop_unwanted(s);
	uv_close((uv_handle_t *)&s->pace, on_closed);
}

void subs_free(struct subs *s)
{
	if (!s)
		return;
	s->is_over = true;
	if (!s->is_telling)
		release(s);
}
