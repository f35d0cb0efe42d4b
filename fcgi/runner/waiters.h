/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_WAITERS_H
#define RUNNER_WAITERS_H

#include "runner/state.h"

/* Who waits for the end of a delete or a restart of one sandbox. Loop only. */
void waiters_add(struct sandbox *sb, const struct replyto *to, bool restart);

/*
 * Answer the waiters of one kind. why NULL: it went well; existed (of a delete):
 * there was something to remove.
 */
void waiters_answer(struct sandbox *sb, bool restart, bool existed,
		    const struct err *why);

/* Is it to be made afresh, whether someone still waits for that or not? */
bool waiters_want_restart(const struct sandbox *sb);

/* Nobody is answered any more. */
void waiters_free(struct sandbox *sb);

#endif
