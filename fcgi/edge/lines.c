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
	ssize_t n; /* bytes in part; -1: none; 0: the end */
	char part[PART];

	struct buf line; /* loop: what has no end yet */
	bool too_long;
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

static void take(struct lines *l, const char *p, size_t n)
{
	const char *end;

	while (n > 0 && (end = memchr(p, '\n', n))) {
		buf_add(&l->line, p, (size_t)(end - p));
		end_line(l);
		n -= (size_t)(end + 1 - p);
		p = end + 1;
	}
	buf_add(&l->line, p, n);
	if (!buf_ok(&l->line)) { /* what is dropped in the middle spoils it all */
		l->too_long = true;
		l->line.len = 0;
	}
}

static void on_wake(uv_async_t *a)
{
	struct lines *l = a->data;
	static char part[PART];
	ssize_t n;

	pthread_mutex_lock(&l->lock);
	n = l->n;
	if (n > 0)
		memcpy(part, l->part, (size_t)n);
	if (n > 0)
		l->n = -1;
	pthread_cond_signal(&l->taken);
	pthread_mutex_unlock(&l->lock);
	if (n > 0) {
		take(l, part, (size_t)n);
	} else if (n == 0) {
		if (l->line.len > 0)
			end_line(l);
		uv_close((uv_handle_t *)&l->wake, NULL);
		l->ev->end(l->arg);
	}
}

int lines_start(uv_loop_t *loop, const struct lines_source *from, struct err *e)
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
	return 0;
}
