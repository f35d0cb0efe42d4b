/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_SANDBOXSTEP_H
#define RUNNER_SANDBOXSTEP_H

#include "runner/state.h"

/*
 * The steps of the machine in runner/sandboxes.h, each from one state to the next:
 * it writes the row and gives a control thread its job, whose report comes to
 * runner/sandboxreport.h. Loop only.
 */

/* Only to a state that can follow: the table is in sandboxstep.c. */
void sandbox_set_state(struct sandbox *sb, enum sandbox_state to);

void sandbox_begin_create(struct sandbox *sb);
void sandbox_begin_connect(struct sandbox *sb);
void sandbox_begin_remove(struct sandbox *sb);

/*
 * It is stopped with what still runs in it, so that nothing goes on unseen. again:
 * static words, why its next start is not its first; NULL: there are none.
 */
void sandbox_begin_stop(struct sandbox *sb, const char *again);

/*
 * One of the warm pool becomes its sandbox. False: there is none, or it has a row:
 * then files may be somewhere that have to be kept.
 */
bool sandbox_bind_warm(struct sandbox *sb);

/* The backend's words for it; taken from where they are. */
void sandbox_take_words(struct sandbox *sb, char **id, char **image, char **fingerprint);

/* No connection to its agent any more. */
void sandbox_link_drop(struct sandbox *sb);

#endif
