/* SPDX-License-Identifier: MIT */
#include "edge/keepalive.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

struct keepalive {
	uv_timer_t timer;
	int64_t interval_ms;
	struct chunk *line;
	struct beat *first, **last;
};

static void unlist(struct keepalive *all, struct beat *b)
{
	if (!b->link)
		return;
	*b->link = b->next;
	if (b->next)
		b->next->link = b->link;
	else
		all->last = b->link;
	b->link = NULL;
}

static void append(struct keepalive *all, struct beat *b)
{
	b->due_ms = clock_mono_ms() + all->interval_ms;
	b->next = NULL;
	b->link = all->last;
	*all->last = b;
	all->last = &b->next;
}

static void on_timer(uv_timer_t *timer);

/* The timer may come too early for a beat that was postponed: it then looks again. */
static void arm(struct keepalive *all)
{
	int64_t in = all->first->due_ms - clock_mono_ms();

	uv_timer_start(&all->timer, on_timer, (uint64_t)(in > 0 ? in : 0), 0);
}

static void on_timer(uv_timer_t *timer)
{
	struct keepalive *all = timer->data;
	int64_t now = clock_mono_ms();
	struct beat *b;

	while ((b = all->first) && b->due_ms <= now) {
		unlist(all, b);
		append(all, b);
		/* A full queue is not silent; its socket is just not read. */
		if (b->client->count == 0 && client_has_room(b->client))
			client_send(b->client, chunk_get(all->line));
	}
	if (all->first)
		arm(all);
}

struct keepalive *keepalive_new(uv_loop_t *loop, int64_t interval_ms)
{
	static const char line[] = ": keepalive\n\n";
	struct keepalive *all = xcalloc(1, sizeof(*all));

	all->interval_ms = interval_ms;
	all->line = chunk_new(line, sizeof(line) - 1);
	all->last = &all->first;
	uv_timer_init(loop, &all->timer);
	all->timer.data = all;
	return all;
}

static void on_closed(uv_handle_t *handle)
{
	struct keepalive *all = handle->data;

	chunk_put(all->line);
	free(all);
}

void keepalive_free(struct keepalive *all)
{
	assert(!all->first);
	uv_close((uv_handle_t *)&all->timer, on_closed);
}

void keepalive_postpone(struct keepalive *all, struct beat *b)
{
	unlist(all, b);
	append(all, b);
	if (!uv_is_active((uv_handle_t *)&all->timer))
		arm(all);
}

void keepalive_remove(struct keepalive *all, struct beat *b)
{
	unlist(all, b);
	if (!all->first)
		uv_timer_stop(&all->timer);
}
