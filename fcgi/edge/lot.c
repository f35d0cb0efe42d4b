/* SPDX-License-Identifier: MIT */
#include "edge/lot.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"
#include "edge/client.h"

struct lot {
	uv_loop_t *loop;
	uv_async_t door;
	int64_t max;
	atomic_int_fast64_t taken;
	pthread_mutex_t lock;
	struct client *first, **last; /* under lock: parked, not adopted */
};

static void on_door(uv_async_t *door)
{
	lot_adopt_waiting(door->data);
}

struct lot *lot_new(uv_loop_t *loop, int64_t max)
{
	struct lot *lot = xcalloc(1, sizeof(*lot));
	int rc;

	lot->loop = loop;
	lot->max = max;
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
	lot_adopt_waiting(lot);
	uv_close((uv_handle_t *)&lot->door, free_lot);
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

void lot_left(struct lot *lot)
{
	atomic_fetch_sub(&lot->taken, 1);
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
		client_adopt(c, lot->loop);
	}
}

int64_t lot_parked(const struct lot *lot)
{
	return atomic_load(&lot->taken);
}
