/* SPDX-License-Identifier: MIT */
#include "edge/lot.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/mem.h"
#include "edge/client.h"
#include "edge/stats.h"

struct lot {
	uv_loop_t *loop;
	uv_async_t door;
	int64_t max;
	atomic_int_fast64_t taken;
	struct stats *stats;
	struct client *adopted; /* loop only */
	void (*emptied)(void *arg);
	void *arg;
	pthread_mutex_t lock;
	struct client *first, **last; /* under lock: parked, not adopted */
};

static void on_door(uv_async_t *door)
{
	lot_adopt_waiting(door->data);
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
	lot->door.data = lot;
	return lot;
}

static void free_lot(uv_handle_t *door)
{
	struct lot *lot = door->data;

	pthread_mutex_destroy(&lot->lock);
	free(lot);
}

void lot_free(struct lot *lot)
{
	assert(!lot->adopted);
	uv_close((uv_handle_t *)&lot->door, free_lot);
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
		       "all %lld places for waiting requests are taken; try again later",
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

void lot_park(struct lot *lot, struct client *c)
{
	c->lot = lot;
	c->next = NULL;
	pthread_mutex_lock(&lot->lock);
	*lot->last = c;
	lot->last = &c->next;
	pthread_mutex_unlock(&lot->lock);
	uv_async_send(&lot->door);
}

static void adopt(struct lot *lot, struct client *c)
{
	c->next = lot->adopted;
	c->link = &lot->adopted;
	if (c->next)
		c->next->link = &c->next;
	lot->adopted = c;
	stats_gauge_add(lot->stats, STATS_PARKED, 1);
	client_adopt(c, lot->loop);
}

void lot_adopt_waiting(struct lot *lot)
{
	struct client *c, *next;

	pthread_mutex_lock(&lot->lock);
	c = lot->first;
	lot->first = NULL;
	lot->last = &lot->first;
	pthread_mutex_unlock(&lot->lock);
	for (; c; c = next) {
		next = c->next;
		adopt(lot, c);
	}
}
