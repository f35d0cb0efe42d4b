/* SPDX-License-Identifier: MIT */
#include "runner/sandboxreport.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "runner/agentlink.h"
#include "runner/filejob.h"
#include "runner/runs.h"
#include "runner/sandboxes.h"
#include "runner/sandboxrec.h"
#include "runner/sandboxstep.h"
#include "runner/turn.h"
#include "runner/waiters.h"
#include "runner/warmpool.h"

/*
 * How long a broken connection is tried before the commands are called lost, and
 * how often one that breaks again and again. What has held for a minute counts as
 * good, and so does one over which a command came to its end.
 */
enum {
	RECONNECT_FOR_MS = 20000,
	RECONNECT_FIRST_MS = 250, /* doubled each time */
	STRIKES_MAX = 5,
	HELD_MS = 60000,
};
static const char died_default[] =
	"the sandbox is not running any more; what it was doing is lost, its files are "
	"kept: run the command again";
static const char again_default[] = "it had been stopped";
static const char again_agent[] = "its agent could not be relied on";

/* ---- its connection */

static void on_retry(uv_timer_t *t)
{
	struct sandbox *sb = t->data;

	if (sb->state == SANDBOX_CONNECTING && !sb->job && !sb->conn)
		sandbox_begin_connect(sb);
}

static void retry_later(struct sandbox *sb)
{
	int strikes = sb->strikes > sb->silences ? sb->strikes : sb->silences;
	int doublings = strikes > STRIKES_MAX ? STRIKES_MAX
			: strikes > 1         ? strikes - 1
					      : 0;

	if (!sb->retry) {
		sb->retry = xcalloc(1, sizeof(*sb->retry));
		uv_timer_init(&sb->r->loop, sb->retry);
		sb->retry->data = sb;
	}
	uv_timer_start(sb->retry, on_retry, (uint64_t)RECONNECT_FIRST_MS << doublings, 0);
}

/* It does not run any more; its files are kept, the next run starts it again. */
static void sandbox_died(struct sandbox *sb, const char *why)
{
	sandbox_link_drop(sb);
	sandbox_set_state(sb, SANDBOX_ABSENT);
	sb->has_boot = false;
	sb->stale = NULL;
	sb->lost_since_mono = 0;
	log_warn("sandbox %s: %s", sb->name, why);
	sandbox_store(sb, STORE_SANDBOX_STOPPED, why);
	runs_lose(sb, why);
	filejobs_fail_with(sb, ERR_CONFLICT, why);
	sandbox_kick(sb);
}

/*
 * Its agent cannot be reached, or breaks the protocol. What waits is refused when
 * the agent has never been there: the next sandbox would not be better.
 */
static void give_up(struct sandbox *sb, const char *what)
{
	struct err e = ERR_INIT;

	err_set(&e, ERR_BACKEND,
		"%s; the sandbox was stopped, its files are kept: run the command again, "
		"or restart_sandbox makes a new one",
		what);
	log_error("sandbox %s: %s", sb->name, e.msg);
	runs_lose(sb, e.msg);
	filejobs_fail(sb, &e);
	if (!sb->has_boot)
		runs_refuse(sb, &e);
	waiters_answer(sb, true, false, &e);
	sandbox_begin_stop(sb, again_agent);
}

void sandbox_link_lost(struct sandbox *sb, const char *why)
{
	int64_t now = clock_mono_ms();

	sandbox_link_drop(sb);
	runs_link_lost(sb);
	filejobs_link_lost(sb);
	if (sb->state == SANDBOX_READY) {
		log_warn("sandbox %s: %s; connecting again", sb->name, why);
		sandbox_set_state(sb, SANDBOX_CONNECTING);
		if (now - sb->ready_mono >= HELD_MS)
			sb->strikes = 0;
	}
	sb->strikes++;
	if (!sb->lost_since_mono)
		sb->lost_since_mono = now;
	if (!sb->job &&
	    (sb->strikes > STRIKES_MAX || now - sb->lost_since_mono >= RECONNECT_FOR_MS))
		give_up(sb, why);
	else
		retry_later(sb);
}

void sandbox_link_ready(struct sandbox *sb)
{
	sandbox_set_state(sb, SANDBOX_READY);
	sb->lost_since_mono = 0;
	sb->silences = 0;
	sb->ready_mono = clock_mono_ms();
	if (sb->has_row)
		sandbox_store(sb, STORE_SANDBOX_READY, NULL);
	waiters_answer(sb, true, true, NULL);
	sandbox_kick(sb);
}

/* ---- what jobs report */

static void take_info(struct sandbox *sb, struct sandbox_info *i)
{
	sandbox_take_words(sb, &i->container_id, &i->image, &i->policy_fingerprint);
	sb->fresh = i->fresh;
	sb->stale = NULL;
	if (i->fresh)
		sb->again = NULL;
	else if (i->recreated)
		sb->again = i->recreated;
	else if (!sb->again)
		sb->again = again_default;
}

static void open_failed(struct sandbox *sb, const struct err *why)
{
	sandbox_set_state(sb, SANDBOX_ABSENT);
	log_error("sandbox %s: %s", sb->name, why->msg);
	sandbox_store(sb, STORE_SANDBOX_FAILED, why->msg);
	/* A delete or restart came meanwhile: who waits now waits for what follows. */
	if (sb->remove_next)
		return;
	waiters_answer(sb, true, false, why);
	runs_refuse(sb, why);
	filejobs_fail(sb, why);
}

static void take_stream(struct sandbox *sb, int *fd)
{
	struct err e = ERR_INIT;

	if (agentlink_open(sb, MOVE_FD(*fd), &e) < 0)
		sandbox_link_lost(sb, e.msg);
}

static void opened(struct sandbox *sb, struct sandboxjob *j)
{
	if (j->rc < 0) {
		open_failed(sb, &j->e);
		return;
	}
	metrics_observe_us(&sb->r->metrics.sandbox_start, j->took_us);
	sb->wipe = false;
	take_info(sb, &j->info);
	sandbox_store(sb, STORE_SANDBOX_CREATING, NULL);
	sandbox_set_state(sb, SANDBOX_CONNECTING);
	sb->lost_since_mono = clock_mono_ms();
	take_stream(sb, &j->fd);
}

static void connected(struct sandbox *sb, struct sandboxjob *j)
{
	if (j->rc == 0) {
		take_stream(sb, &j->fd);
		return;
	}
	if (j->dead) {
		sandbox_died(sb, j->e.kind == ERR_CONFLICT ? j->e.msg : died_default);
		return;
	}
	/* What runs in it goes on, whoever cannot be asked; its time begins then. */
	if (j->e.kind == ERR_BUSY) {
		if (sb->silences++ == 0)
			log_warn("sandbox %s: %s; trying again", sb->name, j->e.msg);
		sb->lost_since_mono = clock_mono_ms();
		retry_later(sb);
		return;
	}
	if (clock_mono_ms() - sb->lost_since_mono < RECONNECT_FOR_MS) {
		retry_later(sb);
		return;
	}
	give_up(sb, "the sandbox's agent does not answer any more");
}

static void removed(struct sandbox *sb, struct sandboxjob *j)
{
	struct err e = ERR_INIT;

	sandbox_set_state(sb, SANDBOX_ABSENT);
	sb->removing = false;
	if (j->rc < 0) {
		log_error("remove sandbox %s: %s", sb->name, j->e.msg);
		sandbox_store(sb, STORE_SANDBOX_FAILED, j->e.msg);
		waiters_answer(sb, false, false, &j->e);
		waiters_answer(sb, true, false, &j->e);
		sandbox_kick(sb);
		return;
	}
	if (store_sandbox_remove(sb->r->store, sb->tenant, sb->identifier, &e) < 0 &&
	    e.kind != ERR_NOT_FOUND)
		log_error("sandbox %s: %s", sb->name, e.msg);
	turn_dirty(sb->r);
	waiters_answer(sb, false, sb->has_row || j->existed, NULL);
	sb->has_row = false;
	sb->wipe = true;
	sb->expires_at = 0;
	sandbox_set_name(sb, sb->own_name);
	sandbox_kick(sb);
}

static void stopped(struct sandbox *sb, struct sandboxjob *j)
{
	sandbox_set_state(sb, SANDBOX_ABSENT);
	sb->has_boot = false;
	sb->stale = NULL;
	sb->lost_since_mono = 0;
	sb->strikes = 0;
	sandbox_store(sb, STORE_SANDBOX_STOPPED, j->rc < 0 ? j->e.msg : NULL);
	sandbox_kick(sb);
}

static void (*const reports[])(struct sandbox *, struct sandboxjob *) = {
	[SANDBOXJOB_OPEN] = opened,
	[SANDBOXJOB_CONNECT] = connected,
	[SANDBOXJOB_REMOVE] = removed,
	[SANDBOXJOB_STOP] = stopped,
};

void sandbox_job_done(void *owner, struct sandboxjob *j)
{
	struct sandbox *sb = owner;
	struct runner *r = sb->r;
	bool remove_next = sb->remove_next;

	sb->job = false;
	if (sb->dropped) {
		sandbox_free(sb);
		return;
	}
	reports[j->order.what](sb, j);
	if (j->order.what == SANDBOXJOB_OPEN)
		warmpool_go_on(r->warm);
	if (r->phase == PHASE_STOPPING && j->order.what != SANDBOXJOB_STOP)
		sandbox_stop(sb);
	else if (remove_next) /* then it is still there: it must be removed */
		sandbox_kick(sb);
}
