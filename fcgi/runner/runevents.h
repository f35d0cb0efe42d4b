/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_RUNEVENTS_H
#define RUNNER_RUNEVENTS_H

#include "runner/state.h"

/* The run log: each event by the seed's name with the seed's fields;
 * sandbox_progress is ours. */
void event_sandbox_progress(const struct run *run, const char *message);
void event_run_started(const struct run *run);
void event_command_started(const struct run *run, size_t index);
void event_command_finished(const struct run *run, const struct store_command *c);
void event_artifacts(const struct run *run, int64_t count);
/* error NULL: run_finished, else run_failed. */
void event_run_ended(const struct run *run, int64_t at, const char *error);

#endif
