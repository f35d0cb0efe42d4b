/* SPDX-License-Identifier: MIT */
#include "edge/lines.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

enum { PART = 64 * 1024 };

/* It lives as long as the process: the thread may wait in read() for ever. */
struct lines {
	uv_async_t wake;
	const struct lines_events *ev;
	void *arg;
	int fd;
	pthread_t thread;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t taken;
	ssize_t n; /* bytes in part, which is the loop's; -1: none, the thread's; 0: the
		      end */
	char part[PART];

	size_t at;       /* loop: what is taken of part */
	struct buf line; /* what has no end yet */
	bool too_long, is_held;
};

static void *read_all(void *arg)
{
	static char part[PART]; /* there is one such thread */
	struct lines *l = arg;
	ssize_t n;

	do {
		do
			n = read(l->fd, part, sizeof(part));
		while (n < 0 && errno == EINTR);
		pthread_mutex_lock(&l->lock);
		while (l->n >= 0)
			pthread_cond_wait(&l->taken, &l->lock);
		if (n > 0)
			memcpy(l->part, part, (size_t)n);
		l->n = n > 0 ? n : 0; /* an error is an end, too */
		pthread_mutex_unlock(&l->lock);
		uv_async_send(&l->wake);
	} while (n > 0);
	return NULL;
}

static void end_line(struct lines *l)
{
	size_t n = l->line.len;

	if (n > 0 && l->line.p[n - 1] == '\r')
		n--;
	if (l->too_long || !buf_ok(&l->line))
		l->ev->line(l->arg, NULL, 0);
	else if (n > 0)
		l->ev->line(l->arg, l->line.p, n);
	l->line.len = 0;
	l->line.over = false;
	l->too_long = false;
}

/* Takes up to one end of a line. */
static size_t take(struct lines *l, const char *p, size_t n)
{
	const char *end = memchr(p, '\n', n);
	size_t part = end ? (size_t)(end - p) : n;

	buf_add(&l->line, p, part);
	if (!buf_ok(&l->line)) { /* what is dropped in the middle spoils it all */
		l->too_long = true;
		l->line.len = 0;
	}
	if (end)
		end_line(l);
	return end ? part + 1 : n;
}

static void give_back(struct lines *l)
{
	pthread_mutex_lock(&l->lock);
	l->n = -1;
	l->at = 0;
	pthread_cond_signal(&l->taken);
	pthread_mutex_unlock(&l->lock);
}

static void on_wake(uv_async_t *a)
{
	struct lines *l = a->data;
	ssize_t n;

	pthread_mutex_lock(&l->lock);
	n = l->n;
	pthread_mutex_unlock(&l->lock);
	while (!l->is_held && n > 0 && l->at < (size_t)n)
		l->at += take(l, l->part + l->at, (size_t)n - l->at);
	if (n > 0 && l->at == (size_t)n)
		give_back(l);
	if (n != 0 || l->is_held)
		return;
	if (l->line.len > 0)
		end_line(l);
	uv_close((uv_handle_t *)&l->wake, NULL);
	l->ev->end(l->arg);
}

void lines_hold(struct lines *l)
{
	l->is_held = true;
}

void lines_go_on(struct lines *l)
{
	l->is_held = false;
	uv_async_send(&l->wake);
}

int lines_start(uv_loop_t *loop, const struct lines_source *from, struct lines **ret,
		struct err *e)
{
	struct lines *l = xcalloc(1, sizeof(*l));

	l->ev = from->events;
	l->arg = from->arg;
	l->fd = from->fd;
	l->n = -1;
	l->line = (struct buf)BUF_INIT(from->max);
	l->wake.data = l;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->taken, NULL);
	if (uv_async_init(loop, &l->wake, on_wake) < 0 ||
	    pthread_create(&l->thread, NULL, read_all, l) != 0)
		return err_set(e, ERR_SYSTEM, "standard input cannot be read");
	pthread_detach(l->thread);
	*ret = l;
	return 0;
}
