/* SPDX-License-Identifier: MIT */
#include "runner/sandboxes.h"

#include "base/clock.h"
#include "base/log.h"
#include "runner/agentlink.h"
#include "runner/filejob.h"
#include "runner/recovery.h"
#include "runner/runs.h"
#include "runner/sandboxrec.h"
#include "runner/sandboxstep.h"
#include "runner/waiters.h"
#include "runner/warmpool.h"

void sandbox_adopt(struct sandbox *sb)
{
	sb->lost_since_mono = clock_mono_ms();
	sandbox_begin_connect(sb);
}

static bool is_idle(const struct sandbox *sb)
{
	return !runs_any_running(sb) && sb->open_files == 0;
}

bool sandbox_is_up(const struct sandbox *sb)
{
	return sb->r->phase == PHASE_SERVING && sb->state == SANDBOX_READY && sb->conn &&
	       !sb->remove_next;
}

void sandbox_kick(struct sandbox *sb)
{
	struct runner *r = sb->r;

	if (r->phase == PHASE_STOPPING || r->phase == PHASE_STORE_FAILED)
		return;
	/* Its name is taken by one that is being removed: a create would be undone. */
	if (sb->state == SANDBOX_ABSENT && recovery_is_removing(r, sb->name))
		return;
	/* A delete that an earlier runner had accepted waits for the backend, too. */
	if (sb->remove_next && !sb->job && sb->state != SANDBOX_DELETING && r->backend &&
	    r->reconciled) {
		sandbox_begin_remove(sb);
		return;
	}
	if (sb->state == SANDBOX_READY && sb->stale && is_idle(sb)) {
		log_info("sandbox %s: it is stopped, to be started again with its files: "
			 "%s",
			 sb->name, sb->stale);
		sandbox_begin_stop(sb, sb->stale);
		return;
	}
	if (sb->state == SANDBOX_READY) {
		runs_start_ready(sb);
		filejobs_start(sb);
		return;
	}
	if (sb->state != SANDBOX_ABSENT || sb->job)
		return;
	if (!sb->runs && !sb->files && !waiters_want_restart(sb)) {
		sandbox_free_if_nothing(sb);
		return;
	}
	/* What waits goes on when there is room. */
	if (r->short_of_room && !sb->files && !waiters_want_restart(sb))
		return;
	if (r->backend && r->reconciled) {
		if (!sandbox_bind_warm(sb))
			sandbox_begin_create(sb);
	} else if (r->backend_failed) {
		struct err e = ERR_INIT;

		err_set(&e, ERR_BACKEND, "%s", r->backend_words);
		waiters_answer(sb, true, false, &e);
		runs_refuse(sb, &e);
		filejobs_fail(sb, &e);
	}
}

void sandbox_take_warm(struct sandbox *sb, int64_t ttl_s)
{
	if (sb->state != SANDBOX_ABSENT || sb->has_row || sb->job || sb->remove_next ||
	    !warmpool_ready(sb->r->warm))
		return;
	sandbox_extend(sb, clock_now_ms(), ttl_s);
	sandbox_bind_warm(sb);
}

void sandbox_is_bound(struct sandbox *sb)
{
	sb->bound = false;
	if (sb->state == SANDBOX_CONNECTING && sb->conn)
		sandbox_link_ready(sb);
}

void sandbox_remove(struct sandbox *sb, const char *reason, const struct replyto *to,
		    bool restart)
{
	if (to)
		waiters_add(sb, to, restart);
	sb->create_again |= restart;
	runs_cancel_all(sb, reason);
	filejobs_fail_with(sb, ERR_CONFLICT, reason);
	if (!sb->removing)
		sb->remove_next = true;
	sandbox_kick(sb);
}

void sandbox_stop(struct sandbox *sb)
{
	runs_cancel_all(sb, "the server was stopped");
	filejobs_fail_with(sb, ERR_BUSY, "the server is stopping; try again later");
	sandbox_link_drop(sb);
	if (sb->job || sb->state == SANDBOX_ABSENT)
		return;
	sandbox_begin_stop(sb, NULL);
}

void sandbox_trust(struct sandbox *sb)
{
	sb->strikes = 0;
}

void sandbox_replace_later(struct sandbox *sb, const char *why)
{
	sb->stale = why;
}
