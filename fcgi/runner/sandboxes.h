/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_SANDBOXES_H
#define RUNNER_SANDBOXES_H

#include "runner/state.h"

/*
 * The machine that brings a sandbox (its record: runner/sandboxrec.h) from nothing
 * to ready and back: its steps are in runner/sandboxstep.h, what comes of them in
 * runner/sandboxreport.h, all at once in runner/sandboxall.h. Loop only.
 */

/* The backend has it and it runs: connect instead of creating. */
void sandbox_adopt(struct sandbox *sb);

/*
 * If nothing was ever made for it: one of the warm pool becomes its sandbox, for
 * ttl_s at first, and gives it its name. It is ready after the commit of this turn,
 * when sandbox_is_bound() is told.
 */
void sandbox_take_warm(struct sandbox *sb, int64_t ttl_s);
void sandbox_is_bound(struct sandbox *sb);

/* Its agent listens, and a run may begin at once if run_may_begin() says so. */
bool sandbox_is_up(const struct sandbox *sb);

/* Runs or waiters want something: create, connect or start what can start. */
void sandbox_kick(struct sandbox *sb);

/*
 * Remove it with its files. Its runs end as canceled for that reason. `to` (with
 * its answer) may be NULL. restart: create it afresh afterwards.
 */
void sandbox_remove(struct sandbox *sb, const char *reason, const struct replyto *to,
		    bool restart);

/* The server stops: its runs end as canceled, it is stopped, its files are kept. */
void sandbox_stop(struct sandbox *sb);

/*
 * Stop it as soon as nothing runs in it, so that its next use starts it with its
 * files; until then nothing new begins. why: static words.
 */
void sandbox_replace_later(struct sandbox *sb, const char *why);

/* A command came to its end: the agent does its work. */
void sandbox_trust(struct sandbox *sb);

#endif
