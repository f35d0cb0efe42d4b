/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/pods/podwatch.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "backend/kubernetes/pods/podtable.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"

enum {
	FIRST_LIST_MS = 30000,
	PODS_MAX = 200000, /* of one server; what is beyond it is the cluster's fault */
};

struct podwatch {
	struct podwatch_args args;
	struct kube_follow *follow;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct podtable pods, accepted; /* by uid, by name */
	uint64_t list;                  /* counts them */
	bool is_listed;
	struct err trouble; /* ERR_NONE: up to date */
	int64_t trouble_since;
};

/* ---- what the cluster tells */

static void fill_trouble(struct podwatch *w, const struct err *why)
{
	if (w->trouble.kind == ERR_NONE)
		w->trouble_since = clock_mono_ms();
	w->trouble = *why;
}

/* The entry of a pod, made when it is a new one; NULL: there are too many. */
static struct podentry *note(struct podwatch *w, const struct pod *p)
{
	struct err why = ERR_INIT;

	if (!podtable_find(&w->pods, p->uid) && w->pods.n >= PODS_MAX) {
		err_set(&why, ERR_LIMIT,
			"the API server tells of more than %d pods of this server",
			PODS_MAX);
		fill_trouble(w, &why);
		return NULL;
	}
	return podtable_put(&w->pods, p->uid, p);
}

static void entry_told(struct podwatch *w, struct podentry *n, bool gone)
{
	n->told_at = w->list;
	n->is_gone = n->is_gone && gone;
	if (gone) {
		podtable_mark_gone(&w->pods, n);
		podtable_forget_gone(&w->pods);
	}
}

static void told(struct podwatch *w, const json_t *o, bool gone)
{
	struct err ignored = ERR_INIT;
	struct podentry *n;
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
	struct podentry *n;

	pthread_mutex_lock(&w->lock);
	n = p ? note(w, p) : podtable_find(&w->pods, uid);
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

static void on_listed(void *arg)
{
	struct podwatch *w = arg;

	pthread_mutex_lock(&w->lock);
	podtable_mark_older(&w->pods, w->list);
	podtable_forget_gone(&w->pods);
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
static struct podentry *wait_begin(struct podwatch *w, const char *uid)
{
	struct podentry *n = podtable_find(&w->pods, uid);

	if (n)
		n->waiters++;
	return n;
}

/* Tells of new words, without the lock; the entry stays meanwhile. */
static void tell(struct podwatch *w, const struct podentry *n, struct podwait *how,
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
static void wait_or_look(struct podwatch *w, const struct podentry *n,
			 struct podwait *how, int64_t left, int64_t *look_at)
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

static int await_locked(struct podwatch *w, const struct podentry *n, struct podwait *how,
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
	struct podentry *n;
	int rc;

	pthread_mutex_lock(&w->lock);
	n = podtable_find(&w->pods, p->uid);
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
	struct podentry *n;
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
	podtable_put(&w->accepted, p->name, p)->silent_since = 0;
	pthread_mutex_unlock(&w->lock);
}

bool podwatch_is_same(struct podwatch *w, const struct pod *p)
{
	const struct podentry *n;
	bool same;

	pthread_mutex_lock(&w->lock);
	n = podtable_find(&w->accepted, p->name);
	same = !n || (strcmp(n->pod.uid, p->uid) == 0 && n->pod.restarts == p->restarts);
	pthread_mutex_unlock(&w->lock);
	return same;
}

int64_t podwatch_silent_ms(struct podwatch *w, const char *name)
{
	int64_t now = clock_mono_ms(), ms = 0;
	struct podentry *n;

	pthread_mutex_lock(&w->lock);
	n = podtable_find(&w->accepted, name);
	if (n && !n->silent_since)
		n->silent_since = now;
	if (n)
		ms = now - n->silent_since;
	pthread_mutex_unlock(&w->lock);
	return ms;
}

void podwatch_forget(struct podwatch *w, const char *name)
{
	pthread_mutex_lock(&w->lock);
	podtable_remove(&w->accepted, name);
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
	podtable_clear(&w->pods);
	podtable_clear(&w->accepted);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
