/* SPDX-License-Identifier: MIT */
#include "edge/watch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/log.h"
#include "base/mem.h"
#include "mcp/events.h"

enum {
	BUCKETS = 1024, /* a power of two */
	TICK_MS = 1000,
	PUMP_EVENTS = 256,
	PUMP_BYTES = 512 * 1024,
	/* What one read of the store may give, at six bytes for one. */
	CHUNK_MAX = 256 * 1024 * 1024,
	VERSION_UNKNOWN = -1,
};

static const char all_runs[] = ""; /* in the place of a run's id */

/* A watched run. */
struct watch {
	struct watch *next; /* in its bucket */
	struct watcher *watchers;
	size_t nall; /* of them, those who want every event */
	char run_id[];
};

struct watches {
	uv_poll_t doorbell;
	uv_timer_t tick;
	uv_idle_t again; /* runs while a pump was cut short */
	int open_handles;
	int fd;
	struct store_reader *reader;
	int64_t last_id, data_version;
	size_t nruns;
	/* The watcher whose turn is next while an event is handed out, so that
	 * watchers may leave meanwhile. */
	struct watcher *cursor;
	struct watch *buckets[BUCKETS];
};

struct chunk *events_chunk(const struct store_event *v, size_t n)
{
	AUTO_BUF b = BUF_INIT(CHUNK_MAX);

	for (size_t i = 0; i < n; i++)
		event_add_frame(&b, &v[i]);
	assert(buf_ok(&b));
	return chunk_new(b.p, b.len);
}

struct chunk *news_sse(struct news *n)
{
	if (!n->sse)
		n->sse = events_chunk(n->event, 1);
	return n->sse;
}

const char *news_latest_of(struct news *n)
{
	struct err e = ERR_INIT;

	if (!n->has_looked &&
	    store_read_latest_of(n->reader, STORE_TENANT_DEFAULT, n->event->run_id,
				 &n->latest_of, &e) < 0 &&
	    e.kind != ERR_NOT_FOUND)
		log_warn("whose newest files a run has left: %s", e.msg);
	n->has_looked = true;
	return n->latest_of;
}

static size_t bucket_of(const char *run_id)
{
	uint64_t h = 14695981039346656037u; /* FNV-1a; run ids are random already */

	for (; *run_id; run_id++)
		h = (h ^ (unsigned char)*run_id) * 1099511628211u;
	return (size_t)(h % BUCKETS);
}

static struct watch *find(const struct watches *all, const char *run_id)
{
	struct watch *w = all->buckets[bucket_of(run_id)];

	while (w && strcmp(w->run_id, run_id) != 0)
		w = w->next;
	return w;
}

/* Who only awaits a run's end does not have its output read. */
static bool is_watched(void *arg, const char *run_id, enum store_event_type type)
{
	const struct watch *w = find(arg, run_id);

	if (store_event_is_terminal(type))
		return w || find(arg, all_runs);
	return w && w->nall > 0;
}

static void hand_out_to(struct watches *all, const struct watch *watch, struct news *n)
{
	bool is_end = store_event_is_terminal(n->event->type);

	/* The last watcher's leaving frees the watch, so it is not touched again. */
	all->cursor = watch ? watch->watchers : NULL;
	while (all->cursor) {
		struct watcher *w = all->cursor;

		all->cursor = w->next;
		if (!w->only_end || is_end)
			w->event(w, n);
	}
}

static void hand_out(struct watches *all, const struct store_event *event)
{
	struct news news = {.event = event, .reader = all->reader};

	hand_out_to(all, find(all, event->run_id), &news);
	if (store_event_is_terminal(event->type))
		hand_out_to(all, find(all, all_runs), &news);
	chunk_put(news.sse);
	free(news.latest_of);
}

static void on_again(uv_idle_t *idle);

/* One bounded step of handing out what is new; the rest in later turns. */
static void pump(struct watches *all)
{
	AUTO_STORE_EVENTS events = {0};
	struct err e = ERR_INIT;
	struct store_new_query q = {
		.after_id = all->last_id,
		.wanted = is_watched,
		.arg = all,
		.max_events = PUMP_EVENTS,
		.max_bytes = PUMP_BYTES,
	};

	uv_idle_stop(&all->again);
	if (all->nruns == 0)
		return;
	if (store_read_new_events(all->reader, &q, &events, &all->last_id, &e) < 0) {
		/* The next ring or second asks again from the same place. */
		all->data_version = VERSION_UNKNOWN;
		log_warn("read new events: %s", e.msg);
		return;
	}
	for (size_t i = 0; i < events.n; i++)
		hand_out(all, &events.v[i]);
	if (events.more && all->nruns)
		uv_idle_start(&all->again, on_again);
}

static void on_again(uv_idle_t *idle)
{
	pump(idle->data);
}

static void on_doorbell(uv_poll_t *poll, int status, int events)
{
	struct watches *all = poll->data;
	uint64_t rings;

	(void)events;
	if (status < 0) {
		log_error("doorbell: %s", uv_strerror(status));
		uv_poll_stop(poll);
		return;
	}
	if (read(all->fd, &rings, sizeof(rings)) < 0 && errno == EAGAIN)
		return;
	pump(all);
}

static void on_tick(uv_timer_t *timer)
{
	struct watches *all = timer->data;
	struct err e = ERR_INIT;
	int64_t version;

	if (store_read_data_version(all->reader, &version, &e) < 0) {
		log_warn("look at the store: %s", e.msg);
	} else if (version != all->data_version) {
		all->data_version = version;
		pump(all);
	}
}

struct watches *watches_new(uv_loop_t *loop, int doorbell_fd, struct store_reader *reader)
{
	struct watches *all = xcalloc(1, sizeof(*all));
	int rc;

	all->fd = doorbell_fd;
	all->reader = reader;
	rc = uv_poll_init(loop, &all->doorbell, doorbell_fd);
	assert(rc == 0);
	uv_timer_init(loop, &all->tick);
	uv_idle_init(loop, &all->again);
	all->open_handles = 3;
	all->doorbell.data = all->tick.data = all->again.data = all;
	return all;
}

static void on_closed(uv_handle_t *handle)
{
	struct watches *all = handle->data;

	if (--all->open_handles == 0)
		free(all);
}

void watches_free(struct watches *all)
{
	assert(all->nruns == 0);
	uv_close((uv_handle_t *)&all->doorbell, on_closed);
	uv_close((uv_handle_t *)&all->tick, on_closed);
	uv_close((uv_handle_t *)&all->again, on_closed);
}

/*
 * The first watcher after none: what is there already is for it to read. An edge that
 * watches nothing does not listen, so that a ring wakes only who has something to do.
 */
static int begin(struct watches *all, struct err *e)
{
	int64_t newest, version;
	uint64_t rings;

	if (read(all->fd, &rings, sizeof(rings)) < 0 && errno != EAGAIN)
		return err_sys(e, "the doorbell");
	if (store_read_data_version(all->reader, &version, e) < 0 ||
	    store_read_newest_event_id(all->reader, &newest, e) < 0)
		return -1;
	all->data_version = version;
	all->last_id = newest;
	uv_poll_start(&all->doorbell, UV_READABLE, on_doorbell);
	uv_timer_start(&all->tick, on_tick, TICK_MS, TICK_MS);
	return 0;
}

static struct watch *watch_new(struct watches *all, const char *run_id)
{
	size_t n = strlen(run_id) + 1;
	struct watch *w = xmalloc(sizeof(*w) + n);
	struct watch **bucket = &all->buckets[bucket_of(run_id)];

	*w = (struct watch){.next = *bucket};
	memcpy(w->run_id, run_id, n);
	*bucket = w;
	all->nruns++;
	return w;
}

static void watch_drop(struct watches *all, struct watch *w)
{
	struct watch **at = &all->buckets[bucket_of(w->run_id)];

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	free(w);
	if (--all->nruns == 0) {
		uv_poll_stop(&all->doorbell);
		uv_timer_stop(&all->tick);
		uv_idle_stop(&all->again);
	}
}

int watch_add(struct watches *all, struct watcher *w, const char *run_id, struct err *e)
{
	struct watch *watch = find(all, run_id);

	if (all->nruns == 0 && begin(all, e) < 0)
		return -1;
	if (!watch)
		watch = watch_new(all, run_id);
	w->watch = watch;
	w->link = &watch->watchers;
	w->next = watch->watchers;
	if (w->next)
		w->next->link = &w->next;
	watch->watchers = w;
	watch->nall += !w->only_end;
	return 0;
}

void watch_remove(struct watches *all, struct watcher *w)
{
	if (!w->watch)
		return;
	if (all->cursor == w)
		all->cursor = w->next;
	*w->link = w->next;
	if (w->next)
		w->next->link = w->link;
	w->watch->nall -= !w->only_end;
	if (!w->watch->watchers)
		watch_drop(all, w->watch);
	w->watch = NULL;
}
