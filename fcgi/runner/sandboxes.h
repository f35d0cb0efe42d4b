/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_SANDBOXES_H
#define RUNNER_SANDBOXES_H

#include "runner/state.h"

/*
 * The sandboxes: one record per tenant and identifier, found or made here, and
 * the machine that brings it from nothing to ready and back. Concurrent first
 * calls meet in one record, so they share one create. Loop only.
 */
struct sandbox *sandbox_find(struct runner *r, const char *tenant,
			     const char *identifier);

/* Find, or make a record with no sandbox yet. ERR_LIMIT: MAX_SANDBOXES. */
int sandbox_get(struct runner *r, const char *tenant, const char *identifier,
		struct sandbox **ret, struct err *e);

/* A record for a row of the store (start of the server). */
struct sandbox *sandbox_from_row(struct runner *r, const struct store_sandbox *row);

/* The backend has it and it runs: connect instead of creating. */
void sandbox_adopt(struct sandbox *sb);

/* Runs or waiters want something: create, connect or start what can start. */
void sandbox_kick(struct sandbox *sb);
void sandboxes_kick_all(struct runner *r);

/*
 * Remove it with its files. Its runs end as canceled for that reason. `to` (with
 * its answer) may be NULL. restart: create it afresh afterwards.
 */
void sandbox_remove(struct sandbox *sb, const char *reason, const struct replyto *to,
		    bool restart);

/* The life of it goes on at least until then. */
void sandbox_extend(struct sandbox *sb, int64_t now, int64_t ttl_s);

/* Stop all that run, keeping files; sandboxes_busy() tells when they are. */
void sandboxes_stop_all(struct runner *r);
bool sandboxes_busy(const struct runner *r);

void sandboxes_heartbeat(struct runner *r, int64_t mono_ms);

/* Forget all records; one that a job holds is freed when the job is done. */
void sandboxes_drop_all(struct runner *r);

/* After the commit of this turn: runs_acknowledge(). */
void sandbox_acknowledge_later(struct sandbox *sb);
void sandboxes_acknowledge(struct runner *r);

/*
 * Stop it as soon as nothing runs in it, so that its next use starts it with its
 * files; until then nothing new begins. why: static words.
 */
void sandbox_replace_later(struct sandbox *sb, const char *why);

/* A command came to its end: the agent does its work. */
void sandbox_trust(struct sandbox *sb);

/* Later FORGET: the command's end is written in this turn. */
void sandbox_forget_command(struct sandbox *sb, const struct ap_id *id);

#endif
