/* SPDX-License-Identifier: MIT */
#ifndef AGENT_LOOP_H
#define AGENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The one thread's event loop: epoll, and one timer for the nearest deadline.
 * A step handles exactly one event, so a handler may free any watch, its own
 * included, without leaving a stale one behind in a batch.
 */
struct watch {
	int fd; /* owned by who made the watch */
	void (*fn)(struct watch *w, uint32_t events);
	void *arg;
	uint32_t events; /* 0: not registered */
};

struct loop {
	int epfd;
	struct watch timer; /* fn and arg are the owner's; fires at arm()'s time */
	uint64_t armed_us;
};

/* 0 or -1 with errno. */
int loop_init(struct loop *l);
/* Register, change, or (events 0) take out. 0 or -1 with errno. */
int loop_watch(struct loop *l, struct watch *w, uint32_t events);
/* Fire the timer at this monotonic time; 0: never. */
void loop_arm(struct loop *l, uint64_t at_us);
void loop_step(struct loop *l);

uint64_t now_us(void); /* monotonic, never 0 */

#endif
