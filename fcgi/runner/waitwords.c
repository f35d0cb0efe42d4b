/* SPDX-License-Identifier: MIT */
#include "runner/waitwords.h"

#include <pthread.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "runner/runevents.h"
#include "runner/state.h"

struct words {
	struct words *next;
	char *who, *line;
};

struct waitwords {
	struct runner *r;
	uv_async_t wake;
	pthread_mutex_t lock;
	struct words *head, **tail; /* under lock */
	size_t n;                   /* under lock */
	bool closed;                /* under lock */
};

static void words_free(struct words *o)
{
	free(o->who);
	free(o->line);
	free(o);
}

static struct words *take_all(struct waitwords *w)
{
	struct words *all;

	pthread_mutex_lock(&w->lock);
	all = w->head;
	w->head = NULL;
	w->tail = &w->head;
	w->n = 0;
	pthread_mutex_unlock(&w->lock);
	return all;
}

static bool concerns(const struct words *o, const struct sandbox *sb)
{
	if (sb->state != SANDBOX_ABSENT && sb->state != SANDBOX_CREATING)
		return false;
	return strcmp(o->who, BACKEND_WAITING) == 0 || strcmp(o->who, sb->name) == 0;
}

static void tell(struct runner *r, const struct words *o)
{
	for (size_t i = 0; i < HASH_SIZE; i++)
		for (struct run *run = r->runs[i]; run; run = run->hash_next)
			if (run->state == STORE_RUN_QUEUED && concerns(o, run->sb) &&
			    run->nwords < WAITWORDS_RUN_MAX) {
				run->nwords++;
				event_sandbox_progress(run, o->line);
			}
}

void waitwords_tell(struct waitwords *w)
{
	struct words *o, *next;

	for (o = take_all(w); o; o = next) {
		next = o->next;
		tell(w->r, o);
		words_free(o);
	}
}

static void on_wake(uv_async_t *h)
{
	waitwords_tell(h->data);
}

int waitwords_new(struct runner *r, struct waitwords **ret, struct err *e)
{
	struct waitwords *w = xcalloc(1, sizeof(*w));

	if (uv_async_init(&r->loop, &w->wake, on_wake) < 0) {
		free(w);
		return err_set(e, ERR_SYSTEM, "no descriptor for the backend's words");
	}
	w->r = r;
	w->wake.data = w;
	w->tail = &w->head;
	pthread_mutex_init(&w->lock, NULL);
	*ret = w;
	return 0;
}

static void put(struct waitwords *w, const char *who, const char *line)
{
	struct words *o = xcalloc(1, sizeof(*o));

	o->who = xstrdup(who);
	o->line = xstrndup(line, strnlen(line, WAITWORDS_LINE_MAX));
	*w->tail = o;
	w->tail = &o->next;
	w->n++;
	uv_async_send(&w->wake);
}

void waitwords_say(void *arg, const char *who, const char *line)
{
	struct waitwords *w = arg;

	log_info("backend: %s", line);
	if (!who)
		return;
	pthread_mutex_lock(&w->lock);
	if (!w->closed && w->n < WAITWORDS_QUEUE_MAX)
		put(w, who, line);
	pthread_mutex_unlock(&w->lock);
}

void waitwords_close(struct waitwords *w)
{
	pthread_mutex_lock(&w->lock);
	w->closed = true;
	pthread_mutex_unlock(&w->lock);
	uv_close((uv_handle_t *)&w->wake, NULL);
}

void waitwords_free(struct waitwords *w)
{
	struct words *o, *next;

	if (!w)
		return;
	for (o = take_all(w); o; o = next) {
		next = o->next;
		words_free(o);
	}
	pthread_mutex_destroy(&w->lock);
	free(w);
}
