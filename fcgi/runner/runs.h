/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_RUNS_H
#define RUNNER_RUNS_H

#include "runner/state.h"

/*
 * Runs: queued, then running their commands one after the other, then their
 * artifacts, then ended. A run in memory is unfinished; what ended is in the
 * store only. Loop only.
 */

/*
 * Accept MSG_RUN. The answer is said after the commit. A run_id that is known is
 * answered alike and nothing starts twice.
 */
struct run_request {
	const char *tenant, *run_id;
	const json_t *args;
	struct replyto to;
};
int runs_accept(struct runner *r, const struct run_request *q, struct err *e);

/*
 * The command that `run` is at goes on as a run of its own with that id: nobody
 * waits for it, it has no limit but its own, and it does not keep the sandbox
 * alive. It is begun at once when that can be.
 */
void runs_accept_background(const struct run *run, const char *run_id);

/* Does a run keep the sandbox alive? */
bool runs_keep_alive(const struct sandbox *sb);

/* An unfinished run of the store, at the start. */
void runs_restore(struct runner *r, const struct store_run *row);

struct run *runs_find(struct runner *r, const char *run_id);

/* End one run as canceled, for that reason: TERM, grace, KILL, then its end. */
void run_cancel(struct run *run, const char *reason);
/* The same for all that run on any sandbox. */
void runs_cancel_gently(struct runner *r, const char *reason);

/* End all runs of a sandbox at once, without waiting for its agent. */
void runs_cancel_all(struct sandbox *sb, const char *reason);
/* Those that were running: nobody knows how their commands ended. */
void runs_lose(struct sandbox *sb, const char *why);
/* Another agent process: what ran is lost, what was between two commands is not. */
void runs_lose_commands(struct sandbox *sb, const char *why);

/* Nothing can run: all fail with the error's words. */
void runs_refuse(struct sandbox *sb, const struct err *why);

bool runs_any_running(const struct sandbox *sb);
/* Is there a command whose start its agent has not answered? */
bool runs_any_unconfirmed(const struct runner *r);
/* The sandbox is ready: go on with what ran, start what may start. */
void runs_start_ready(struct sandbox *sb);
/* The connection is gone for now: what was being fetched starts over. */
void runs_link_lost(struct sandbox *sb);

/* Messages of the agent. False: the id is no command of a run here. */
bool runs_on_started(struct sandbox *sb, const struct ap_started *m);
void runs_on_stdin_ack(struct sandbox *sb, const struct ap_stdin_ack *m);
void runs_on_output(struct sandbox *sb, const struct ap_output *o);
bool runs_on_exit(struct sandbox *sb, const struct ap_exit *x);
void runs_on_gone(struct sandbox *sb, const struct ap_id *id);
/*
 * Is it a command that runs, or one that is yet to be started? The agent may know
 * the second kind: the commit that should have told of its start failed.
 */
bool runs_is_wanted(const struct sandbox *sb, const struct ap_id *id);

/* What is stored of every command that runs, as RESUME wants it; bytes put. */
size_t runs_offsets(struct sandbox *sb, void *dst, size_t cap);
/* The artifacts are dealt with (sync.c). */
void run_synced(struct run *run);

/* After a commit: ACK and FORGET, of one sandbox. */
void runs_acknowledge(struct sandbox *sb);
/* Commands that an agent should have ended long ago. */
void runs_guard(struct runner *r, int64_t mono_ms);

size_t runs_count(const struct runner *r, const char *tenant, enum store_run_state s);
void runs_drop_all(struct runner *r);

#endif
