/* SPDX-License-Identifier: MIT */
#include "edge/lot.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/mem.h"
#include "edge/client.h"
#include "edge/stats.h"

enum { ANSWER_SOON_NS = 3 * 1000 * 1000 };

struct lot {
	uv_loop_t *loop;
	uv_async_t door;
	uv_poll_t alarm; /* for who waits for an answer; set from any thread */
	uv_prepare_t settler;
	int alarm_fd, open_handles;
	int64_t max;
	atomic_int_fast64_t taken;
	struct stats *stats;
	struct client *adopted; /* loop only */
	struct client *fresh;   /* loop only: adopted, and not watched yet */
	void (*emptied)(void *arg);
	void *arg;
	pthread_mutex_t lock;
	struct client *first, **last; /* under lock: parked, not adopted */
	bool alarm_is_set;            /* under lock */
};

/* Under lock; ns 0: off. */
static void set_alarm(struct lot *lot, long ns)
{
	struct itimerspec t = {.it_value = {.tv_nsec = ns}};

	if (lot->alarm_is_set == (ns > 0))
		return;
	lot->alarm_is_set = ns > 0;
	if (timerfd_settime(lot->alarm_fd, 0, &t, NULL) < 0)
		abort(); /* only a bug can do that */
}

static void on_door(uv_async_t *door)
{
	lot_adopt_waiting(door->data);
}

static void on_alarm(uv_poll_t *alarm, int status, int events)
{
	struct lot *lot = alarm->data;
	uint64_t count;

	(void)status;
	(void)events;
	/* Taken back in the last moment: nothing is there to read, or to do. */
	if (read(lot->alarm_fd, &count, sizeof(count)) > 0)
		lot_adopt_waiting(lot);
}

static void settle(struct lot *lot)
{
	struct client *c;

	while ((c = lot->fresh)) {
		lot->fresh = c->next_fresh;
		client_settle(c, lot->loop);
	}
}

/* Before the loop sleeps. Many a client has its answer by then. */
static void on_settler(uv_prepare_t *settler)
{
	settle(settler->data);
}

struct lot *lot_new(uv_loop_t *loop, int64_t max, struct stats *stats)
{
	struct lot *lot = xcalloc(1, sizeof(*lot));
	int rc;

	lot->loop = loop;
	lot->max = max;
	lot->stats = stats;
	lot->last = &lot->first;
	pthread_mutex_init(&lot->lock, NULL);
	rc = uv_async_init(loop, &lot->door, on_door);
	assert(rc == 0);
	lot->alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (lot->alarm_fd < 0)
		abort(); /* as when memory is gone */
	rc = uv_poll_init(loop, &lot->alarm, lot->alarm_fd);
	assert(rc == 0);
	uv_poll_start(&lot->alarm, UV_READABLE, on_alarm);
	rc = uv_prepare_init(loop, &lot->settler);
	assert(rc == 0);
	uv_prepare_start(&lot->settler, on_settler);
	lot->door.data = lot->alarm.data = lot->settler.data = lot;
	lot->open_handles = 3;
	return lot;
}

static void free_lot(uv_handle_t *handle)
{
	struct lot *lot = handle->data;

	if (--lot->open_handles > 0)
		return;
	settle(lot); /* the last ones, which have left */
	close(lot->alarm_fd);
	pthread_mutex_destroy(&lot->lock);
	free(lot);
}

void lot_free(struct lot *lot)
{
	assert(!lot->adopted);
	uv_close((uv_handle_t *)&lot->door, free_lot);
	uv_close((uv_handle_t *)&lot->alarm, free_lot);
	uv_close((uv_handle_t *)&lot->settler, free_lot);
}

static void tell_if_empty(struct lot *lot)
{
	if (lot->emptied && !lot->adopted) {
		void (*emptied)(void *) = MOVE(lot->emptied);

		emptied(lot->arg);
	}
}

void lot_stop(struct lot *lot, void (*emptied)(void *arg), void *arg)
{
	struct client *c, *next;

	lot_adopt_waiting(lot);
	for (c = lot->adopted; c; c = next) {
		next = c->next;
		c->ops->stop(c);
	}
	lot->emptied = emptied;
	lot->arg = arg;
	tell_if_empty(lot);
}

void lot_close_all(struct lot *lot)
{
	while (lot->adopted)
		client_close(lot->adopted);
}

int lot_take_place(struct lot *lot, struct err *e)
{
	if (atomic_fetch_add(&lot->taken, 1) < lot->max)
		return 0;
	atomic_fetch_sub(&lot->taken, 1);
	return err_set(e, ERR_BUSY,
		       "all places for waiting requests (%lld) are taken; try again "
		       "later",
		       (long long)lot->max);
}

void lot_leave_place(struct lot *lot)
{
	atomic_fetch_sub(&lot->taken, 1);
}

void lot_left(struct lot *lot, struct client *c)
{
	if (c->next)
		c->next->link = c->link;
	*c->link = c->next;
	lot_leave_place(lot);
	stats_gauge_add(lot->stats, STATS_PARKED, -1);
	tell_if_empty(lot);
}

static void append(struct lot *lot, struct client *c, long alarm_ns)
{
	c->lot = lot;
	c->next = NULL;
	pthread_mutex_lock(&lot->lock);
	*lot->last = c;
	lot->last = &c->next;
	if (alarm_ns)
		set_alarm(lot, alarm_ns);
	pthread_mutex_unlock(&lot->lock);
}

void lot_park(struct lot *lot, struct client *c)
{
	append(lot, c, 0);
	uv_async_send(&lot->door);
}

void lot_park_for_answer(struct lot *lot, struct client *c)
{
	append(lot, c, ANSWER_SOON_NS);
}

static void adopt(struct lot *lot, struct client *c)
{
	c->next = lot->adopted;
	c->link = &lot->adopted;
	if (c->next)
		c->next->link = &c->next;
	lot->adopted = c;
	c->next_fresh = lot->fresh;
	lot->fresh = c;
	stats_gauge_add(lot->stats, STATS_PARKED, 1);
	c->ops->start(c);
}

void lot_adopt_waiting(struct lot *lot)
{
	struct client *c, *next;

	pthread_mutex_lock(&lot->lock);
	c = lot->first;
	lot->first = NULL;
	lot->last = &lot->first;
	set_alarm(lot, 0);
	pthread_mutex_unlock(&lot->lock);
	for (; c; c = next) {
		next = c->next;
		adopt(lot, c);
	}
}
