/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_STRANGERS_H
#define RUNNER_STRANGERS_H

#include "runner/state.h"

/*
 * Commands that an agent knows and no run of ours is at. Either their run was ended,
 * or an earlier runner died after the start and before the commit (runner/turn.h). Then
 * the edge asks once more with the same run id, and the agent answers the repeated start
 * with what the command has done: it ran once. So a new runner gives them a while to be
 * claimed before it ends them. Loop only.
 */

/* The first hello of this sandbox's agent to this runner. */
void strangers_expect(struct sandbox *sb);

/* True: it may yet be claimed, and is looked at again. False: it is to be ended now. */
bool strangers_keep(struct sandbox *sb, const struct ap_id *id);

/* Every few seconds: ends those whose time is over. */
void strangers_end(struct sandbox *sb, int64_t mono_ms);

void strangers_release(struct sandbox *sb);

#endif
