/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_RUNEXEC_H
#define RUNNER_RUNEXEC_H

#include "runner/state.h"

/*
 * One run's way: start, command after command, artifacts, end. Its entry points
 * for messages and for ends are in runs.h; these are for the table of runs.
 */
void run_begin(struct run *run);

/* Only its first command's start, ahead of run_begin(), which must follow. */
void run_launch(struct run *run);

/* Go on after a (new) hello: what RESUME does not cover. */
void run_go_on(struct run *run);

/* May it begin? Runs with lock_sandbox wait for the earlier ones of their kind. */
bool run_may_begin(const struct run *run);

/* Write its end, take it out of the table and free it. error NULL: completed. */
void run_end(struct run *run, enum store_run_state state, const char *error);

/* End it at once; a command that runs ends with that status for that reason. */
void run_end_now(struct run *run, enum store_run_state state,
		 enum store_command_status status, const char *why);

/*
 * What it runs cannot be reached any more. One whose commands are all over ends
 * as they ended, without artifacts.
 */
void run_lose(struct run *run, const char *why);

/* Its agent has not kept run->guard_mono: ended here, and canceled there. */
void run_overdue(struct run *run);

/* The command that runs must be over by its time limit, with room for the agent. */
void run_guard_command(struct run *run);

bool run_owns(const struct run *run, const struct ap_id *id);
/* The same, or the id of one it is yet to start. */
bool run_wants(const struct run *run, const struct ap_id *id);

/* In runs.c: out of all lists, and freed. */
void run_drop(struct run *run);

#endif
