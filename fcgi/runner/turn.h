/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_TURN_H
#define RUNNER_TURN_H

#include "runner/state.h"

/*
 * A turn of the loop is one transaction. Handlers write to the store and say
 * turn_dirty(); before the loop sleeps everything is committed at once, and only
 * then are agents told what is stored, answers sent and doorbells rung: nobody
 * hears of what could still be lost.
 *
 * What was said to agents goes out *before* the commit. So a command may run a
 * moment before the store knows it. That is safe because a start of an id that
 * the agent knows is ignored, and because an id the store does not know is
 * ended by the next runner, unless its run is asked for again (runner/strangers.h).
 *
 * A commit that fails drops everything in memory (recovery_store_failed()):
 * what was not committed did not happen, and the agents still have the output.
 */
int turn_init(struct runner *r, struct err *e);
void turn_close(struct runner *r);

void turn_dirty(struct runner *r);

/*
 * What was written since turn_mark() may wait for what comes next, 3 ms at most: the
 * next turn_dirty() commits both. For a run whose caller awaits it, and has been told
 * nothing yet: a short one begins and ends in one commit. And for the end of a
 * command, whose artifacts are listed one round trip later.
 */
struct turn_mark {
	bool urgent;
};
struct turn_mark turn_mark(const struct runner *r);
void turn_hold(struct runner *r, struct turn_mark since);

/* The same for what only comes in between: it waits if something else does. */
void turn_join(struct runner *r, struct turn_mark since);

/* An MSG_OK that may only be said when this turn is stored. Takes body. */
void turn_answer(struct runner *r, struct replyto to, json_t *body);

/* The same for an accepted run; it says "ended" when it has ended in the same turn. */
void turn_answer_run(struct runner *r, struct replyto to, json_t *body);

/* Commit now what is there (stopping). */
void turn_commit(struct runner *r);

#endif
