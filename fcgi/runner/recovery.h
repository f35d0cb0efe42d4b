/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_RECOVERY_H
#define RUNNER_RECOVERY_H

#include "runner/state.h"

/*
 * Building the memory again from what lasts: unfinished runs and sandboxes from
 * the store, what really runs from the backend's list. Sandboxes the store knows
 * are adopted, others removed; running commands are resumed from what is stored.
 */

/* Load the store, then open the backend on a control thread and reconcile. */
void recovery_begin(struct runner *r);

/*
 * At a stop: what runs at the backend and has no record that stops it is stopped
 * as well, now or when the backend has been opened.
 */
void recovery_stop_strangers(struct runner *r);

/*
 * A sandbox of this name that the store does not know is being removed. Nothing
 * may be begun under the name until then; the kick that follows says when.
 */
bool recovery_is_removing(const struct runner *r, const char *name);

/*
 * A delete while the store fails: the files go, which may be the room it lacks; the
 * row is found without a sandbox afterwards. The backend must be open.
 */
int recovery_remove_unwritten(struct runner *r, const char *tenant,
			      const char *identifier, struct replyto to, struct err *e);

/* Once in a while: a backend that could not be opened is tried again. */
void recovery_retry_backend(struct runner *r);

/* A commit failed: drop everything, try the store once a second, begin again. */
void recovery_store_failed(struct runner *r, const struct err *why);

#endif
