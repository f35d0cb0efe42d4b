/* SPDX-License-Identifier: MIT */
#include "agent/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000 + 1;
}

int loop_init(struct loop *l)
{
	l->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epfd < 0)
		return -1;
	l->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (l->timer.fd < 0)
		return -1;
	return loop_watch(l, &l->timer, EPOLLIN);
}

int loop_watch(struct loop *l, struct watch *w, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = w};
	int op = EPOLL_CTL_MOD;

	if (events == w->events)
		return 0;
	if (w->events == 0)
		op = EPOLL_CTL_ADD;
	else if (events == 0)
		op = EPOLL_CTL_DEL;
	if (epoll_ctl(l->epfd, op, w->fd, &ev) < 0)
		return -1;
	w->events = events;
	return 0;
}

void loop_arm(struct loop *l, uint64_t at_us)
{
	struct itimerspec t = {0};

	if (at_us == l->armed_us)
		return;
	l->armed_us = at_us;
	/* now_us() runs one microsecond ahead, so this never fires early. */
	t.it_value.tv_sec = (time_t)(at_us / 1000000);
	t.it_value.tv_nsec = (long)(at_us % 1000000) * 1000;
	timerfd_settime(l->timer.fd, TFD_TIMER_ABSTIME, &t, NULL);
}

static void timer_fired(struct loop *l)
{
	uint64_t count;

	if (read(l->timer.fd, &count, sizeof(count)) == (ssize_t)sizeof(count))
		l->armed_us = 0;
}

void loop_step(struct loop *l)
{
	struct epoll_event ev;
	struct watch *w;
	int n = epoll_wait(l->epfd, &ev, 1, -1);

	if (n < 0 && errno != EINTR)
		abort(); /* only a bug can do that */
	if (n < 1)
		return;
	w = ev.data.ptr;
	if (w == &l->timer)
		timer_fired(l);
	w->fn(w, ev.events);
}
