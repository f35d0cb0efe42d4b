/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_TICK_H
#define RUNNER_TICK_H

#include "runner/state.h"

/*
 * What time brings, once a second at most: edits of admins, expired sandboxes,
 * signs of life, idle sessions, old runs. Deadlines live in the database, so they
 * outlast the runner.
 */
int tick_init(struct runner *r, struct err *e);
void tick_close(struct runner *r);

#endif
