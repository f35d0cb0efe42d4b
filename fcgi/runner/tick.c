/* SPDX-License-Identifier: MIT */
#include "runner/tick.h"

#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/mem.h"
#include "runner/audit.h"
#include "runner/latest.h"
#include "runner/oldfiles.h"
#include "runner/recovery.h"
#include "runner/reserve.h"
#include "runner/runs.h"
#include "runner/sandboxall.h"
#include "runner/sandboxes.h"
#include "runner/sandboxrec.h"
#include "runner/turn.h"
#include "runner/warmpool.h"
#include "wire/idenc.h"

enum {
	TICK_MS = 1000,
	BEAT_EVERY_MS = 5000,
	SWEEP_EVERY_MS = 60000,
	SESSIONS_EVERY_MS = 60000,
};

/* ---- edits of admins */

static void take_cancels(struct runner *r, const struct store_runs *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		struct run *run = runs_find(r, rows->v[i].run_id);

		if (!run || run->ending != ENDING_NOT)
			continue;
		audit(r, &(struct audit_event){AUDIT_ADMIN, run->tenant, "cancel_run",
					       run->run_id});
		run_cancel(run, "canceled in the database");
	}
}

static void take_deadlines(struct runner *r, const struct store_sandboxes *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		struct sandbox *sb =
			sandbox_find(r, rows->v[i].tenant, rows->v[i].identifier);

		if (sb)
			sb->expires_at = rows->v[i].expires_at;
	}
}

static void look_for_edits(struct runner *r)
{
	struct store_changes c = {0};
	struct err e = ERR_INIT;
	bool changed = false;

	if (store_changes_poll(r->store, &changed, &c, &e) < 0) {
		log_error("looking for changes: %s", e.msg);
		return;
	}
	if (!changed)
		return;
	take_cancels(r, &c.cancel);
	take_deadlines(r, &c.sandboxes);
	store_changes_release(&c);
}

/* ---- sandboxes whose time is over */

static void reap_one(struct runner *r, const struct store_sandbox *row, int64_t now)
{
	struct sandbox *sb = sandbox_find(r, row->tenant, row->identifier);

	if (!sb || sb->removing || sb->remove_next)
		return;
	if (runs_keep_alive(sb) || sb->files ||
	    sb->waiters) { /* it is in use: that renews it */
		sandbox_extend(sb, now,
			       sb->ttl_s > 0 ? sb->ttl_s : r->conf->default_ttl_s);
		return;
	}
	log_info("sandbox %s has expired", sb->name);
	r->metrics.reaper_deletes++;
	audit(r, &(struct audit_event){AUDIT_SERVER, sb->tenant, "expire_sandbox",
				       sb->identifier});
	sandbox_remove(sb, "the sandbox has expired", NULL, false);
}

static void reap(struct runner *r, int64_t now)
{
	AUTO_STORE_SANDBOXES due = {0};
	struct err e = ERR_INIT;

	if (!r->backend || !r->reconciled)
		return;
	if (store_sandboxes_due(r->store, now, &due, &e) < 0) {
		log_error("reaper: %s", e.msg);
		return;
	}
	for (size_t i = 0; i < due.n; i++)
		reap_one(r, &due.v[i], now);
}

/* ---- old runs, with their files */

struct sweep_job {
	struct control_job job;
	struct runner *r;
	uint32_t generation;
	char *root;
	struct store_runs runs;
};

static void work_sweep(struct control_job *cj)
{
	struct sweep_job *j = (struct sweep_job *)cj;

	for (size_t i = 0; i < j->runs.n; i++) {
		const struct store_run *run = &j->runs.v[i];
		char folder[IDENC_SIZE];
		struct err e = ERR_INIT;

		if (!idenc_is_tenant(run->tenant) || !idenc_is_run_id(run->run_id))
			continue;
		idenc(folder, run->identifier);
		if (oldfiles_remove(j->root, run->tenant, folder, run->run_id, &e) < 0 ||
		    latest_settle(j->root, run->tenant, folder, &e) < 0)
			log_warn("old artifacts: %s", e.msg);
	}
}

static void done_sweep(struct control_job *cj)
{
	struct sweep_job *j = (struct sweep_job *)cj;
	struct runner *r = j->r;
	struct err e = ERR_INIT;

	r->sweeping = false;
	if (j->generation == r->generation) {
		for (size_t i = 0; i < j->runs.n; i++)
			if (store_run_remove(r->store, j->runs.v[i].run_id, &e) < 0)
				log_error("sweep: %s", e.msg);
		turn_dirty(r);
	}
	store_runs_release(&j->runs);
	free(j->root);
	free(j);
}

/* The files of those that a run may just be taking a share in stay for now. */
static void spare_busy(struct runner *r, struct store_runs *doomed)
{
	size_t n = 0;

	for (size_t i = 0; i < doomed->n; i++) {
		const struct sandbox *sb =
			sandbox_find(r, doomed->v[i].tenant, doomed->v[i].identifier);

		if (!sb || sb->syncs == 0)
			doomed->v[n++] = doomed->v[i];
	}
	doomed->n = n;
}

static void remove_files(struct runner *r, struct store_runs *doomed)
{
	struct sweep_job *j = xcalloc(1, sizeof(*j));

	j->job = (struct control_job){.work = work_sweep, .done = done_sweep};
	j->r = r;
	j->generation = r->generation;
	j->root = xstrdup(r->artifacts_dir);
	j->runs = *doomed;
	*doomed = (struct store_runs){0};
	r->sweeping = true;
	control_submit(r->control, &j->job);
}

static void sweep(struct runner *r, int64_t now, int64_t mono)
{
	AUTO_STORE_RUNS doomed = {0};
	const struct store_sweep_opts o = {.now = now,
					   .max_runs = r->conf->max_runs,
					   .max_age_ms = r->conf->max_run_age_s * 1000};
	struct err e = ERR_INIT;
	bool more = false;

	if (store_sweep(r->store, &o, &doomed, &more, &e) < 0) {
		log_error("sweep: %s", e.msg);
		return;
	}
	turn_dirty(r);
	r->next_sweep = mono + (more ? 0 : SWEEP_EVERY_MS);
	spare_busy(r, &doomed);
	if (doomed.n > 0)
		remove_files(r, &doomed);
}

static void expire_sessions(struct runner *r, int64_t now)
{
	struct err e = ERR_INIT;
	int64_t n = 0;

	if (store_sessions_expire(r->store, now - r->conf->session_idle_s * 1000,
				  r->conf->max_sessions, &n, &e) < 0)
		log_error("sessions: %s", e.msg);
	turn_dirty(r);
}

/* ---- the second */

static void beat(struct runner *r, int64_t mono)
{
	reserve_keep(r);
	sandboxes_heartbeat(r, mono);
	warmpool_heartbeat(r->warm, mono);
	runs_guard(r, mono);
	recovery_retry_backend(r);
	/* Runs may have waited for an agent to read on. */
	sandboxes_kick_all(r);
}

static bool is_due(int64_t *next, int64_t mono, int64_t every)
{
	if (mono < *next)
		return false;
	*next = mono + every;
	return true;
}

static void on_tick(uv_timer_t *t)
{
	struct runner *r = t->data;
	int64_t mono = clock_mono_ms(), now = clock_now_ms();

	if (r->phase != PHASE_SERVING)
		return;
	look_for_edits(r);
	if (is_due(&r->next_reap, mono, r->conf->reaper_interval_ms))
		reap(r, now);
	if (is_due(&r->next_beat, mono, BEAT_EVERY_MS))
		beat(r, mono);
	warmpool_tick(r->warm, mono);
	if (!r->sweeping && is_due(&r->next_sweep, mono, SWEEP_EVERY_MS))
		sweep(r, now, mono);
	if (is_due(&r->next_sessions, mono, SESSIONS_EVERY_MS))
		expire_sessions(r, now);
}

int tick_init(struct runner *r, struct err *e)
{
	r->tick.data = r;
	if (uv_timer_init(&r->loop, &r->tick) < 0 ||
	    uv_timer_init(&r->loop, &r->store_retry) < 0 ||
	    uv_timer_start(&r->tick, on_tick, TICK_MS, TICK_MS) < 0)
		return err_set(e, ERR_SYSTEM, "the timer cannot be set up");
	return 0;
}

void tick_close(struct runner *r)
{
	uv_close((uv_handle_t *)&r->tick, NULL);
	uv_close((uv_handle_t *)&r->store_retry, NULL);
}
