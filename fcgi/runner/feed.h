/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_FEED_H
#define RUNNER_FEED_H

#include "runner/state.h"

/*
 * Standard input of the command that runs: sent as far as the agent's window
 * allows, then its end. Offsets make repetition harmless, so after a lost
 * connection it goes on where the agent says that the command has read to. Loop
 * only; the frames go out with the turn's flush.
 */

/* The command's start was sent: from the beginning. */
void feed_begin(struct run *run);
/* It has taken so much. Nothing happens for a command without input. */
void feed_taken(struct run *run, uint64_t offset);
/* The connection is gone: wait for the agent to say where it is. */
void feed_link_lost(struct run *run);

#endif
