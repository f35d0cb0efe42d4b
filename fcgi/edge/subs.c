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
	bool is_task, is_wanted, has_changed;
	enum uri_kind kind;
	enum store_stream stream;
	int64_t command;
	char *text;   /* the uri, or the run_id of a task */
	char *run_id; /* "": URI_LATEST */
	char *identifier;
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

static void tell_by_pace(struct subs *s)
{
	if (!uv_is_active((uv_handle_t *)&s->pace))
		tell_all(s);
}

static bool is_latest_of(const struct sub *x, struct news *n)
{
	const char *identifier = news_latest_of(n);

	return identifier && strcmp(identifier, x->identifier) == 0;
}

static bool concerns(const struct sub *x, struct news *n)
{
	const struct store_event *ev = n->event;
	bool is_output = ev->type == STORE_EVENT_COMMAND_STDOUT ||
			 ev->type == STORE_EVENT_COMMAND_STDERR;

	if (x->is_task)
		return !is_output;
	switch (x->kind) {
	case URI_RUN:
		return true;
	case URI_OUTPUT:
		return ev->command_index == x->command &&
		       ev->type == (x->stream == STORE_STDERR
					    ? STORE_EVENT_COMMAND_STDERR
					    : STORE_EVENT_COMMAND_STDOUT);
	case URI_ARTIFACT:
		return ev->type == STORE_EVENT_ARTIFACTS_EXTRACTED;
	case URI_LATEST:
		return is_latest_of(x, n);
	}
	return false;
}

static void on_event(struct watcher *w, struct news *n)
{
	struct sub *x = (struct sub *)w;

	if (*x->run_id && store_event_is_terminal(n->event->type))
		watch_remove(x->all->edge->watches, &x->watcher);
	x->has_changed |= concerns(x, n);
	if (x->has_changed)
		tell_by_pace(x->all);
}

/* ---- having them */

/*
 * Watch first, look second: an end in between is heard of (edge/watch.h). One that came
 * before is told, once: who asked did not know of it, and would wait for ever.
 */
static void watch(struct sub *x)
{
	struct edge *edge = x->all->edge;
	enum store_run_state state;
	struct err e = ERR_INIT;

	x->watcher.event = on_event;
	if (watch_add(edge->watches, &x->watcher, x->run_id, &e) < 0) {
		log_warn("a subscription: %s", e.msg);
		return;
	}
	if (!*x->run_id)
		return;
	if (store_read_run_state(edge->reader, STORE_TENANT_DEFAULT, x->run_id, &state,
				 &e) < 0) {
		watch_remove(edge->watches, &x->watcher);
	} else if (store_run_ended(state)) {
		watch_remove(edge->watches, &x->watcher);
		x->has_changed = true;
	}
}

static struct sub *find(struct subs *s, const char *text, bool is_task)
{
	struct sub *x = s->first;

	while (x && (x->is_task != is_task || strcmp(x->text, text) != 0))
		x = x->next;
	return x;
}

/* NULL: it is no uri of ours. */
static struct sub *sub_new(struct subs *s, const char *text, bool is_task)
{
	struct uri uri = {0};
	struct sub *x;

	if (!is_task && !uri_parse(text, &uri))
		return NULL;
	x = xcalloc(1, sizeof(*x));
	x->all = s;
	x->is_task = is_task;
	x->kind = uri.kind;
	x->stream = uri.stream;
	x->command = uri.command;
	x->text = xstrdup(text);
	x->run_id = xstrdup(is_task ? text : uri.run_id);
	x->identifier = xstrdup(uri.identifier);
	return x;
}

static void sub_free(struct sub *x)
{
	free(x->text);
	free(x->run_id);
	free(x->identifier);
	free(x);
}

static void want(struct subs *s, const char *text, bool is_task, bool missed)
{
	struct sub *x = find(s, text, is_task);

	if (!x) {
		x = sub_new(s, text, is_task);
		if (!x)
			return;
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
		sub_free(x);
	}
}

void subs_set(struct subs *s, const struct subs_wanted *w)
{
	for (struct sub *x = s->first; x; x = x->next)
		x->is_wanted = false;
	want_all(s, w->uris, false, w->tell);
	want_all(s, w->tasks, true, w->tell);
	drop_unwanted(s);
	tell_by_pace(s);
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
