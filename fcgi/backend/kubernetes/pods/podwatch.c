/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/pods/podwatch.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"

enum {
	BUCKETS = 1024,
	FIRST_LIST_MS = 30000,
	GONE_KEPT = 64,
	PODS_MAX = 200000, /* of one server; what is beyond it is the cluster's fault */
};

/* A pod by its uid, or the one that was accepted by its name. */
struct entry {
	struct entry *next;
	char *key;
	struct pod pod;   /* as it was told last */
	uint64_t told_at; /* the list during which that was */
	bool is_gone;
	uint64_t gone_no; /* counts them */
	int waiters;
	int64_t silent_since; /* monotonic; 0: it was reached last */
};

struct table {
	struct entry *buckets[BUCKETS];
};

struct podwatch {
	struct podwatch_args args;
	struct kube_follow *follow;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct table pods, accepted;
	size_t npods;
	uint64_t list; /* counts them */
	uint64_t gone; /* likewise */
	bool is_listed;
	struct err trouble; /* ERR_NONE: up to date */
	int64_t trouble_since;
};

/* ---- the tables; the lock is held */

static struct entry **place(struct table *t, const char *key)
{
	uint32_t h = 2166136261U;
	const char *c;
	struct entry **p;

	for (c = key; *c; c++)
		h = (h ^ (unsigned char)*c) * 16777619U;
	for (p = &t->buckets[h % BUCKETS]; *p; p = &(*p)->next)
		if (strcmp((*p)->key, key) == 0)
			break;
	return p;
}

static void entry_remove(struct entry **p)
{
	struct entry *n = *p;

	*p = n->next;
	pod_release(&n->pod);
	free(n->key);
	free(n);
}

static struct entry *put(struct table *t, const char *key, const struct pod *p)
{
	struct entry **at = place(t, key);

	if (!*at) {
		*at = xcalloc(1, sizeof **at);
		(*at)->key = xstrdup(key);
	}
	pod_release(&(*at)->pod);
	(*at)->pod = pod_copy(p);
	return *at;
}

/* Not removed yet: forget_gone(). */
static void mark_gone(struct podwatch *w, struct entry *n)
{
	if (n->is_gone)
		return;
	n->is_gone = true;
	n->gone_no = w->gone++;
}

/*
 * An end is kept for those who wait for it, and the last few for those who are about
 * to: the answer that told them of the pod may be older.
 */
static void forget_gone(struct podwatch *w)
{
	struct entry **p;
	size_t i;

	for (i = 0; i < BUCKETS; i++)
		for (p = &w->pods.buckets[i]; *p;)
			if ((*p)->is_gone && (*p)->waiters == 0 &&
			    w->gone - (*p)->gone_no > GONE_KEPT) {
				entry_remove(p);
				w->npods--;
			} else
				p = &(*p)->next;
}

static void table_clear(struct table *t)
{
	size_t i;

	for (i = 0; i < BUCKETS; i++)
		while (t->buckets[i])
			entry_remove(&t->buckets[i]);
}

/* ---- what the cluster tells */

static void fill_trouble(struct podwatch *w, const struct err *why)
{
	if (w->trouble.kind == ERR_NONE)
		w->trouble_since = clock_mono_ms();
	w->trouble = *why;
}

/* The entry of a pod, made when it is a new one; NULL: there are too many. */
static struct entry *note(struct podwatch *w, const struct pod *p)
{
	struct err why = ERR_INIT;

	if (!*place(&w->pods, p->uid)) {
		if (w->npods >= PODS_MAX) {
			err_set(&why, ERR_LIMIT,
				"the API server tells of more than %d "
				"pods of this server",
				PODS_MAX);
			fill_trouble(w, &why);
			return NULL;
		}
		w->npods++;
	}
	return put(&w->pods, p->uid, p);
}

static void entry_told(struct podwatch *w, struct entry *n, bool gone)
{
	n->told_at = w->list;
	n->is_gone = n->is_gone && gone;
	if (gone) {
		mark_gone(w, n);
		forget_gone(w);
	}
}

static void told(struct podwatch *w, const json_t *o, bool gone)
{
	struct err ignored = ERR_INIT;
	struct entry *n;
	AUTO_POD p = {0};

	if (pod_parse(o, &w->args.reading, &p, &ignored) < 0)
		return; /* it has no uid that anybody could wait for */
	pthread_mutex_lock(&w->lock);
	n = note(w, &p);
	if (n)
		entry_told(w, n, gone);
	if (n && w->is_listed)
		w->trouble = (struct err)ERR_INIT;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

void podwatch_saw(struct podwatch *w, const char *uid, const struct pod *p)
{
	struct entry *n;

	pthread_mutex_lock(&w->lock);
	n = p ? note(w, p) : *place(&w->pods, uid);
	if (n)
		entry_told(w, n, !p);
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

static void on_object(void *arg, const json_t *o)
{
	told(arg, o, false);
}

static void on_gone(void *arg, const json_t *o)
{
	told(arg, o, true);
}

static void on_begin(void *arg)
{
	struct podwatch *w = arg;

	pthread_mutex_lock(&w->lock);
	w->list++;
	pthread_mutex_unlock(&w->lock);
}

/* What this list did not have, and was not made while it was read, is gone. */
static void sweep(struct podwatch *w)
{
	struct entry *n;
	size_t i;

	for (i = 0; i < BUCKETS; i++)
		for (n = w->pods.buckets[i]; n; n = n->next)
			if (n->told_at < w->list)
				mark_gone(w, n);
	forget_gone(w);
}

static void on_listed(void *arg)
{
	struct podwatch *w = arg;

	pthread_mutex_lock(&w->lock);
	sweep(w);
	w->is_listed = true;
	w->trouble = (struct err)ERR_INIT;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

static void on_trouble(void *arg, const struct err *why)
{
	struct podwatch *w = arg;

	pthread_mutex_lock(&w->lock);
	fill_trouble(w, why);
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

/* ---- waiting */

/* The lock is held, and given up meanwhile. */
static void wait_ms(struct podwatch *w, int64_t ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += (ms % 1000) * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	pthread_cond_timedwait(&w->changed, &w->lock, &t);
}

/* The first list, or what is in its way. */
static int await_list(struct podwatch *w, struct err *e)
{
	int64_t deadline = clock_mono_ms() + FIRST_LIST_MS, left;
	int rc = 0;

	pthread_mutex_lock(&w->lock);
	while (!w->is_listed && w->trouble.kind == ERR_NONE &&
	       (left = deadline - clock_mono_ms()) > 0)
		wait_ms(w, left);
	if (w->trouble.kind != ERR_NONE)
		rc = err_set(e, w->trouble.kind, "%s", w->trouble.msg);
	else if (!w->is_listed)
		rc = err_set(e, ERR_TIMEOUT,
			     "the API server has not listed the pods within %d s",
			     FIRST_LIST_MS / 1000);
	pthread_mutex_unlock(&w->lock);
	return rc;
}

/* Its time is up while the cluster cannot be watched: that is the reason. */
static void blame_trouble(const struct podwatch *w, struct err *e)
{
	if (e->kind == ERR_TIMEOUT && w->trouble.kind != ERR_NONE)
		err_set(e, ERR_TIMEOUT,
			"the cluster has not been heard of for %lld s: %s",
			(long long)((clock_mono_ms() - w->trouble_since) / 1000),
			w->trouble.msg);
}

/* Its entry, which stays until the waiting ends; NULL: it is gone already. */
static struct entry *wait_begin(struct podwatch *w, const char *uid)
{
	struct entry *n = *place(&w->pods, uid);

	if (n)
		n->waiters++;
	return n;
}

/* Tells of new words, without the lock; the entry stays meanwhile. */
static void tell(struct podwatch *w, const struct entry *n, struct podwait *how,
		 char **told)
{
	AUTO_POD p = {0};

	if (!how->changed || (*told && strcmp(*told, n->pod.words) == 0))
		return;
	free(*told);
	*told = xstrdup(n->pod.words);
	p = pod_copy(&n->pod);
	pthread_mutex_unlock(&w->lock);
	how->changed(how->arg, &p);
	pthread_mutex_lock(&w->lock);
}

/* Until something changes, left ms have passed, or it is time for a look. */
static void wait_or_look(struct podwatch *w, const struct entry *n, struct podwait *how,
			 int64_t left, int64_t *look_at)
{
	int64_t now = clock_mono_ms();
	AUTO_POD p = {0};

	if (!how->look || now < *look_at) {
		if (how->look && *look_at - now < left)
			left = *look_at - now;
		wait_ms(w, left);
		return;
	}
	p = pod_copy(&n->pod);
	pthread_mutex_unlock(&w->lock);
	how->look(how->arg, &p);
	pthread_mutex_lock(&w->lock);
	*look_at = clock_mono_ms() + how->look_ms;
}

static int await_locked(struct podwatch *w, const struct entry *n, struct podwait *how,
			struct pod *ret, struct err *e)
{
	AUTO_FREE char *told = NULL;
	int64_t left = 0, look_at = clock_mono_ms() + how->look_ms;

	while (!n->is_gone) {
		tell(w, n, how, &told);
		switch (podwait_judge(how, &n->pod, clock_mono_ms(), &left, e)) {
		case PODWAIT_RUNS:
			*ret = pod_copy(&n->pod);
			return 0;
		case PODWAIT_FAILED:
			blame_trouble(w, e);
			return -1;
		case PODWAIT_MORE:
			wait_or_look(w, n, how, left, &look_at);
		}
	}
	return err_set(e, ERR_BACKEND,
		       "the sandbox's pod was deleted while it was waited for%s%s",
		       *n->pod.words ? ": " : "", n->pod.words);
}

int podwatch_await(struct podwatch *w, const struct pod *p, struct podwait *how,
		   struct pod *ret, struct err *e)
{
	struct entry *n;
	int rc;

	pthread_mutex_lock(&w->lock);
	n = *place(&w->pods, p->uid);
	if (!n && (n = note(w, p)))
		n->told_at = w->list;
	if (!n) {
		pthread_mutex_unlock(&w->lock);
		return err_set(e, ERR_LIMIT, "there are too many pods");
	}
	n->waiters++;
	rc = await_locked(w, n, how, ret, e);
	n->waiters--;
	pthread_mutex_unlock(&w->lock);
	return rc;
}

bool podwatch_await_gone(struct podwatch *w, const char *uid, int64_t timeout_ms)
{
	int64_t deadline = clock_mono_ms() + timeout_ms, left = timeout_ms;
	struct entry *n;
	bool gone = true;

	pthread_mutex_lock(&w->lock);
	n = wait_begin(w, uid);
	while (n && !n->is_gone && left > 0) {
		wait_ms(w, left);
		left = deadline - clock_mono_ms();
	}
	if (n) {
		gone = n->is_gone;
		n->waiters--;
	}
	pthread_mutex_unlock(&w->lock);
	return gone;
}

/* ---- what others say */

void podwatch_accept(struct podwatch *w, const struct pod *p)
{
	pthread_mutex_lock(&w->lock);
	put(&w->accepted, p->name, p)->silent_since = 0;
	pthread_mutex_unlock(&w->lock);
}

bool podwatch_is_same(struct podwatch *w, const struct pod *p)
{
	const struct entry *n;
	bool same;

	pthread_mutex_lock(&w->lock);
	n = *place(&w->accepted, p->name);
	same = !n || (strcmp(n->pod.uid, p->uid) == 0 && n->pod.restarts == p->restarts);
	pthread_mutex_unlock(&w->lock);
	return same;
}

int64_t podwatch_silent_ms(struct podwatch *w, const char *name)
{
	int64_t now = clock_mono_ms(), ms = 0;
	struct entry *n;

	pthread_mutex_lock(&w->lock);
	n = *place(&w->accepted, name);
	if (n && !n->silent_since)
		n->silent_since = now;
	if (n)
		ms = now - n->silent_since;
	pthread_mutex_unlock(&w->lock);
	return ms;
}

void podwatch_forget(struct podwatch *w, const char *name)
{
	struct entry **p;

	pthread_mutex_lock(&w->lock);
	p = place(&w->accepted, name);
	if (*p)
		entry_remove(p);
	pthread_mutex_unlock(&w->lock);
}

int podwatch_health(struct podwatch *w, struct err *e)
{
	int rc = 0;

	pthread_mutex_lock(&w->lock);
	if (w->trouble.kind != ERR_NONE)
		rc = err_set(e, w->trouble.kind, "%s (for %lld s)", w->trouble.msg,
			     (long long)((clock_mono_ms() - w->trouble_since) / 1000));
	pthread_mutex_unlock(&w->lock);
	return rc;
}

/* ---- the whole */

int podwatch_start(const struct podwatch_args *a, struct podwatch **ret, struct err *e)
{
	static const struct kube_follow_events events = {.begin = on_begin,
							 .object = on_object,
							 .gone = on_gone,
							 .listed = on_listed,
							 .trouble = on_trouble};
	struct podwatch *w = xcalloc(1, sizeof *w);
	pthread_condattr_t attr;

	w->args = *a;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &attr);
	pthread_condattr_destroy(&attr);
	if (kube_follow_start(
		    &(struct kube_follow_args){.api = a->api,
					       .path = a->path,
					       .label_selector = a->label_selector,
					       .ev = &events,
					       .arg = w},
		    &w->follow, e) < 0 ||
	    await_list(w, e) < 0) {
		podwatch_stop(w);
		return -1;
	}
	*ret = w;
	return 0;
}

void podwatch_stop(struct podwatch *w)
{
	if (!w)
		return;
	kube_follow_stop(w->follow);
	table_clear(&w->pods);
	table_clear(&w->accepted);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
