/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_CONTROL_H
#define RUNNER_CONTROL_H

#include <uv.h>

#include "base/err.h"

/*
 * The control threads: blocking calls (a backend's create, a folder full of
 * artifacts) run here in plain sequential code, in the order they were asked
 * for, at most CONTROL_THREADS at once. libuv's own pool is not used: four slow
 * creates would hold it. Threads start when there is work for them and stay.
 */
enum { CONTROL_THREADS = 16 };

struct control;

/*
 * One call. Embedded first in the caller's own struct, which belongs to the
 * control threads from control_submit() until `done`. `work` runs on a thread
 * and touches nothing but its struct; `done` runs on the loop.
 */
struct control_job {
	void (*work)(struct control_job *j);
	void (*done)(struct control_job *j);
	struct control_job *next;
};

int control_new(uv_loop_t *loop, struct control **ret, struct err *e);
void control_submit(struct control *c, struct control_job *j);

/* Jobs not yet done; loop only. */
size_t control_pending(const struct control *c);

/*
 * Waits for the threads to end what they are at (jobs not begun are dropped and
 * never done), closes the handle. The loop must run once more before it is
 * freed. NULL is fine.
 */
void control_free(struct control *c);

#endif
