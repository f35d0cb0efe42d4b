/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_SANDBOXALL_H
#define RUNNER_SANDBOXALL_H

#include "runner/state.h"

/* What is done to all sandboxes at once (one: runner/sandboxes.h). Loop only. */

/* Something changed that any of them may have waited for. */
void sandboxes_kick_all(struct runner *r);

/* Stop all that run, keeping files; sandboxes_busy() tells when they are. */
void sandboxes_stop_all(struct runner *r);
bool sandboxes_busy(const struct runner *r);
/* Is there one that is being created? Someone waits for it. */
bool sandboxes_any_creating(const struct runner *r);

void sandboxes_heartbeat(struct runner *r, int64_t mono_ms);

/* Forget all records; one that a job holds is freed when the job is done. */
void sandboxes_drop_all(struct runner *r);

#endif
