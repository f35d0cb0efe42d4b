/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_SANDBOXREC_H
#define RUNNER_SANDBOXREC_H

#include "runner/state.h"

/*
 * The records of the sandboxes: one per tenant and identifier, found or made here,
 * so that concurrent first calls meet in one; and its row in the store. What a
 * sandbox goes through is in runner/sandboxes.h. Loop only.
 */
struct sandbox *sandbox_find(struct runner *r, const char *tenant,
			     const char *identifier);

/* The one of that name at the backend; NULL: none that we know. */
struct sandbox *sandbox_named(const struct runner *r, const char *name);
/* It is called so from now on: backend_warm_name(), or its own name again. */
void sandbox_set_name(struct sandbox *sb, const char *name);

/* Find, or make a record with no sandbox yet. ERR_LIMIT: MAX_SANDBOXES. */
int sandbox_get(struct runner *r, const char *tenant, const char *identifier,
		struct sandbox **ret, struct err *e);

/* A record for a row of the store (start of the server). */
struct sandbox *sandbox_from_row(struct runner *r, const struct store_sandbox *row);

/* Nothing is left of it anywhere: the record goes, and true. */
bool sandbox_free_if_nothing(struct sandbox *sb);
/* Out of the table; sandbox_free() then frees it. */
void sandbox_unlist(struct sandbox *sb);
void sandbox_free(struct sandbox *sb);

/* Write its row; error NULL: none. */
void sandbox_store(struct sandbox *sb, enum store_sandbox_state state, const char *error);

/* The life of it goes on for ttl_s from now. */
void sandbox_extend(struct sandbox *sb, int64_t now, int64_t ttl_s);

/* After the commit of this turn: runs_acknowledge(), sandbox_is_bound(). */
void sandbox_acknowledge_later(struct sandbox *sb);
void sandboxes_acknowledge(struct runner *r);

/* Later FORGET: the command's end is written in this turn. */
void sandbox_forget_command(struct sandbox *sb, const struct ap_id *id);

#endif
