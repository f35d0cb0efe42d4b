/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/api/follow.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/mem.h"

enum {
	PAUSE_FIRST_MS = 200,
	PAUSE_MOST_MS = 15000,
	/* A server that ends every watch at once is not asked in a tight loop. */
	WATCH_LEAST_MS = 1000,
};

struct kube_follow {
	struct kube_api *api;
	char *path, *label_selector;
	struct kube_follow_events ev;
	void *arg;
	pthread_t thread;
	int stop_fd;
	/* the thread's own */
	char version[KUBE_VERSION_MAX];
	char words[512]; /* of the trouble that was told */
	int64_t pause_ms;
};

/* Waits, longer each time. False: stopped. */
static bool pause_once(struct kube_follow *f)
{
	struct pollfd p = {.fd = f->stop_fd, .events = POLLIN};
	uint16_t r;
	int n;

	id_random_bytes(&r, sizeof r);
	n = poll(&p, 1, (int)(f->pause_ms / 2 + f->pause_ms / 2 * r / UINT16_MAX));
	f->pause_ms = f->pause_ms * 2 < PAUSE_MOST_MS ? f->pause_ms * 2 : PAUSE_MOST_MS;
	return n == 0 || (n < 0 && errno == EINTR);
}

static bool is_stopped(const struct kube_follow *f)
{
	struct pollfd p = {.fd = f->stop_fd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

static void tell_trouble(struct kube_follow *f, const struct err *why)
{
	if (is_stopped(f) || strcmp(f->words, why->msg) == 0)
		return;
	memcpy(f->words, why->msg, sizeof f->words);
	f->ev.trouble(f->arg, why);
}

/* It watches: the next trouble is a new one, whatever its words. */
static void is_well(struct kube_follow *f)
{
	f->words[0] = '\0';
	f->pause_ms = PAUSE_FIRST_MS;
}

static void on_begin(void *arg)
{
	struct kube_follow *f = arg;

	f->ev.begin(f->arg);
}

static int on_item(void *arg, json_t *object, struct err *e)
{
	struct kube_follow *f = arg;

	(void)e;
	f->ev.object(f->arg, object);
	return 0;
}

static int on_event(void *arg, enum kube_event what, json_t *object, struct err *e)
{
	struct kube_follow *f = arg;

	(void)e;
	is_well(f);
	if (what == KUBE_DELETED)
		f->ev.gone(f->arg, object);
	else if (what != KUBE_BOOKMARK)
		f->ev.object(f->arg, object);
	return 0;
}

static int list(struct kube_follow *f, struct err *e)
{
	const struct kube_list l = {.path = f->path,
				    .label_selector = f->label_selector,
				    .begin = on_begin,
				    .item = on_item,
				    .arg = f,
				    .once = true,
				    .stop_fd = &f->stop_fd};

	if (kube_list(f->api, &l, f->version, e) < 0)
		return -1;
	f->ev.listed(f->arg);
	return 0;
}

/* 0: go on from where it ended. -1: list again; e is set unless it just expired. */
static int watch(struct kube_follow *f, struct err *e)
{
	struct kube_status status = {0};
	const struct kube_watch w = {.path = f->path,
				     .label_selector = f->label_selector,
				     .stop_fd = &f->stop_fd,
				     .event = on_event,
				     .arg = f,
				     .status = &status};
	int64_t began = clock_mono_ms();

	if (kube_watch(f->api, &w, f->version, e) < 0) {
		if (status.reason == KUBE_EXPIRED)
			*e = (struct err)ERR_INIT;
		return -1;
	}
	if (clock_mono_ms() - began >= WATCH_LEAST_MS)
		is_well(f);
	else if (!is_stopped(f))
		pause_once(f);
	return 0;
}

/* One list and its watches, until something is wrong with them. */
static void follow_once(struct kube_follow *f, struct err *e)
{
	if (list(f, e) < 0)
		return;
	while (!is_stopped(f) && watch(f, e) == 0)
		;
}

static void *follow_main(void *arg)
{
	struct kube_follow *f = arg;

	do {
		struct err e = ERR_INIT;

		follow_once(f, &e);
		if (e.kind != ERR_NONE)
			tell_trouble(f, &e);
	} while (!is_stopped(f) && pause_once(f));
	return NULL;
}

static int start_thread(struct kube_follow *f, struct err *e)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&f->thread, NULL, follow_main, f);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = rc;
	return rc ? err_sys(e, "start a thread") : 0;
}

static void follow_free(struct kube_follow *f)
{
	auto_close(&f->stop_fd);
	free(f->path);
	free(f->label_selector);
	free(f);
}

int kube_follow_start(const struct kube_follow_args *a, struct kube_follow **ret,
		      struct err *e)
{
	struct kube_follow *f = xcalloc(1, sizeof *f);

	f->api = a->api;
	f->path = xstrdup(a->path);
	f->label_selector = a->label_selector ? xstrdup(a->label_selector) : NULL;
	f->ev = *a->ev;
	f->arg = a->arg;
	f->pause_ms = PAUSE_FIRST_MS;
	f->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (f->stop_fd < 0)
		err_sys(e, "eventfd");
	else if (start_thread(f, e) == 0) {
		*ret = f;
		return 0;
	}
	follow_free(f);
	return -1;
}

void kube_follow_stop(struct kube_follow *f)
{
	uint64_t one = 1;

	if (!f)
		return;
	while (write(f->stop_fd, &one, sizeof one) < 0 && errno == EINTR)
		;
	pthread_join(f->thread, NULL);
	follow_free(f);
}
