/* SPDX-License-Identifier: MIT */
#include "runner/sandboxes.h"

#include <assert.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "runner/agentlink.h"
#include "runner/filejob.h"
#include "runner/recovery.h"
#include "runner/runs.h"
#include "runner/sandboxjob.h"
#include "runner/sandboxrec.h"
#include "runner/strangers.h"
#include "runner/turn.h"
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
static const bool transitions[SANDBOX_STATE_COUNT][SANDBOX_STATE_COUNT] = {
	[SANDBOX_ABSENT] = {[SANDBOX_CREATING] = true,
			    [SANDBOX_CONNECTING] = true,
			    [SANDBOX_DELETING] = true},
	[SANDBOX_CREATING] = {[SANDBOX_CONNECTING] = true, [SANDBOX_ABSENT] = true},
	[SANDBOX_CONNECTING] = {[SANDBOX_READY] = true,
				[SANDBOX_ABSENT] = true,
				[SANDBOX_DELETING] = true},
	[SANDBOX_READY] = {[SANDBOX_CONNECTING] = true, [SANDBOX_DELETING] = true},
	[SANDBOX_DELETING] = {[SANDBOX_ABSENT] = true},
};

static void set_state(struct sandbox *sb, enum sandbox_state to)
{
	assert(transitions[sb->state][to]);
	sb->state = to;
}

static void link_drop(struct sandbox *sb)
{
	strangers_release(sb);
	agentconn_free(MOVE(sb->conn));
}

/* ---- answers to delete and restart */

static json_t *sandbox_json(const struct sandbox *sb)
{
	char created[CLOCK_RFC3339_SIZE], expires[CLOCK_RFC3339_SIZE];

	return json_pack(
		"{s:{s:s,s:s,s:s,s:s,s:s,s:s}}", "sandbox", "identifier", sb->identifier,
		"container_id", sb->container_id, "name", sb->name, "created_at",
		clock_format_rfc3339(sb->created_at, created), "expires_at",
		clock_format_rfc3339(sb->expires_at, expires), "image", sb->image);
}

/* Answer the waiters of one kind; why NULL: it went well. */
static void answer_waiters(struct sandbox *sb, bool restart, bool existed,
			   const struct err *why)
{
	struct waiter **p = &sb->waiters;

	while (*p) {
		struct waiter *w = *p;

		if (w->restart != restart) {
			p = &w->next;
			continue;
		}
		*p = w->next;
		if (why)
			edges_err(sb->r->edges, w->to, why);
		else if (restart)
			turn_answer(sb->r, w->to, sandbox_json(sb));
		else
			turn_answer(sb->r, w->to,
				    json_pack("{s:b,s:s}", "deleted", existed,
					      "identifier", sb->identifier));
		free(w);
	}
}

static bool wants_restart(const struct sandbox *sb)
{
	for (const struct waiter *w = sb->waiters; w; w = w->next)
		if (w->restart)
			return true;
	return sb->create_again;
}

/* ---- create, connect */

static void job_done(void *owner, struct sandboxjob *j);

static void submit(struct sandbox *sb, enum sandboxjob_kind what)
{
	sb->job = true;
	sandboxjob_submit(sb->r, &(struct sandboxjob_order){
					 .what = what,
					 .spec = {.name = sb->name,
						  .identifier = sb->identifier,
						  .tenant = sb->tenant,
						  .created_at_ms = sb->created_at,
						  .expires_at_ms = sb->expires_at,
						  .fresh = sb->wipe},
					 .done = job_done,
					 .owner = sb});
}

static void begin_life(struct sandbox *sb)
{
	sb->created_at = clock_now_ms();
	if (sb->expires_at <= sb->created_at)
		sb->expires_at =
			sb->created_at +
			(sb->ttl_s ? sb->ttl_s : sb->r->conf->default_ttl_s) * 1000;
	sb->create_again = false;
}

static void begin_create(struct sandbox *sb)
{
	if (!sb->has_row)
		warmpool_missed(sb->r->warm);
	set_state(sb, SANDBOX_CREATING);
	begin_life(sb);
	sb->has_boot = false;
	sandbox_store(sb, STORE_SANDBOX_CREATING, NULL);
	submit(sb, SANDBOXJOB_OPEN);
}

/* The backend's words for it; taken from where they are. */
static void take_words(struct sandbox *sb, char **id, char **image, char **fingerprint)
{
	free(sb->container_id);
	free(sb->image);
	free(sb->fingerprint);
	sb->container_id = *id ? MOVE(*id) : xstrdup(sb->name);
	sb->image = *image ? MOVE(*image) : xstrdup(sb->r->conf->image);
	sb->fingerprint = MOVE(*fingerprint);
}

/* No row: nothing of it is anywhere, no file that would have to be kept. */
static bool bind_warm(struct sandbox *sb)
{
	struct warm_sandbox w;

	if (sb->has_row || !warmpool_take(sb->r->warm, &w))
		return false;
	set_state(sb, SANDBOX_CONNECTING);
	begin_life(sb);
	sandbox_set_name(sb, w.name);
	take_words(sb, &w.container_id, &w.image, &w.fingerprint);
	memcpy(sb->boot_id, w.boot_id, sizeof(sb->boot_id));
	sb->has_boot = true;
	sb->wipe = false;
	sb->fresh = true;
	sb->stale = sb->again = NULL;
	sb->strikes = 0;
	sb->lost_since_mono = clock_mono_ms();
	agentlink_take(sb, w.conn);
	sandbox_store(sb, STORE_SANDBOX_CREATING, NULL);
	sb->bound = true;
	sandbox_acknowledge_later(sb);
	return true;
}

static void begin_connect(struct sandbox *sb)
{
	if (sb->state != SANDBOX_CONNECTING)
		set_state(sb, SANDBOX_CONNECTING);
	submit(sb, SANDBOXJOB_CONNECT);
}

static void begin_remove(struct sandbox *sb)
{
	link_drop(sb);
	set_state(sb, SANDBOX_DELETING);
	sb->remove_next = false;
	sb->removing = true;
	sb->stale = NULL;
	sb->has_boot = false;
	if (sb->has_row)
		sandbox_store(sb, STORE_SANDBOX_DELETING, NULL);
	submit(sb, SANDBOXJOB_REMOVE);
}

static void on_retry(uv_timer_t *t)
{
	struct sandbox *sb = t->data;

	if (sb->state == SANDBOX_CONNECTING && !sb->job && !sb->conn)
		begin_connect(sb);
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
	link_drop(sb);
	set_state(sb, SANDBOX_ABSENT);
	sb->has_boot = false;
	sb->stale = NULL;
	sb->lost_since_mono = 0;
	log_warn("sandbox %s: %s", sb->name, why);
	sandbox_store(sb, STORE_SANDBOX_STOPPED, why);
	runs_lose(sb, why);
	filejobs_fail_with(sb, ERR_CONFLICT, why);
	sandbox_kick(sb);
}

/* It is stopped with what still runs in it, so that nothing goes on unseen. */
static void begin_stop(struct sandbox *sb, const char *again)
{
	link_drop(sb);
	runs_link_lost(sb);
	filejobs_link_lost(sb);
	set_state(sb, SANDBOX_DELETING);
	sb->again = again;
	submit(sb, SANDBOXJOB_STOP);
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
	answer_waiters(sb, true, false, &e);
	begin_stop(sb, again_agent);
}

void sandbox_link_lost(struct sandbox *sb, const char *why)
{
	int64_t now = clock_mono_ms();

	link_drop(sb);
	runs_link_lost(sb);
	filejobs_link_lost(sb);
	if (sb->state == SANDBOX_READY) {
		log_warn("sandbox %s: %s; connecting again", sb->name, why);
		set_state(sb, SANDBOX_CONNECTING);
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

void sandbox_trust(struct sandbox *sb)
{
	sb->strikes = 0;
}

void sandbox_replace_later(struct sandbox *sb, const char *why)
{
	sb->stale = why;
}
void sandbox_link_ready(struct sandbox *sb)
{
	set_state(sb, SANDBOX_READY);
	sb->lost_since_mono = 0;
	sb->silences = 0;
	sb->ready_mono = clock_mono_ms();
	if (sb->has_row)
		sandbox_store(sb, STORE_SANDBOX_READY, NULL);
	answer_waiters(sb, true, true, NULL);
	sandbox_kick(sb);
}

/* ---- what jobs report */

static void take_info(struct sandbox *sb, struct sandbox_info *i)
{
	take_words(sb, &i->container_id, &i->image, &i->policy_fingerprint);
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
	set_state(sb, SANDBOX_ABSENT);
	log_error("sandbox %s: %s", sb->name, why->msg);
	sandbox_store(sb, STORE_SANDBOX_FAILED, why->msg);
	/* A delete or restart came meanwhile: who waits now waits for what follows. */
	if (sb->remove_next)
		return;
	answer_waiters(sb, true, false, why);
	runs_refuse(sb, why);
	filejobs_fail(sb, why);
}

static void take_stream(struct sandbox *sb, int *fd)
{
	struct err e = ERR_INIT;

	if (agentlink_open(sb, fd_move(fd), &e) < 0)
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
	set_state(sb, SANDBOX_CONNECTING);
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

	set_state(sb, SANDBOX_ABSENT);
	sb->removing = false;
	if (j->rc < 0) {
		log_error("remove sandbox %s: %s", sb->name, j->e.msg);
		sandbox_store(sb, STORE_SANDBOX_FAILED, j->e.msg);
		answer_waiters(sb, false, false, &j->e);
		answer_waiters(sb, true, false, &j->e);
		sandbox_kick(sb);
		return;
	}
	if (store_sandbox_remove(sb->r->store, sb->tenant, sb->identifier, &e) < 0 &&
	    e.kind != ERR_NOT_FOUND)
		log_error("sandbox %s: %s", sb->name, e.msg);
	turn_dirty(sb->r);
	answer_waiters(sb, false, sb->has_row || j->existed, NULL);
	sb->has_row = false;
	sb->wipe = true;
	sb->expires_at = 0;
	sandbox_set_name(sb, sb->own_name);
	sandbox_kick(sb);
}

static void stopped(struct sandbox *sb, struct sandboxjob *j)
{
	set_state(sb, SANDBOX_ABSENT);
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

static void stop_one(struct sandbox *sb)
{
	runs_cancel_all(sb, "the server was stopped");
	filejobs_fail_with(sb, ERR_BUSY, "the server is stopping; try again later");
	link_drop(sb);
	if (sb->job || sb->state == SANDBOX_ABSENT)
		return;
	begin_stop(sb, NULL);
}

static void job_done(void *owner, struct sandboxjob *j)
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
		stop_one(sb);
	else if (remove_next) /* then it is still there: it must be removed */
		sandbox_kick(sb);
}

/* ---- what others ask for */

void sandbox_adopt(struct sandbox *sb)
{
	sb->lost_since_mono = clock_mono_ms();
	begin_connect(sb);
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
		begin_remove(sb);
		return;
	}
	if (sb->state == SANDBOX_READY && sb->stale && is_idle(sb)) {
		log_info("sandbox %s: it is stopped, to be started again with its files: "
			 "%s",
			 sb->name, sb->stale);
		begin_stop(sb, sb->stale);
		return;
	}
	if (sb->state == SANDBOX_READY) {
		runs_start_ready(sb);
		filejobs_start(sb);
		return;
	}
	if (sb->state != SANDBOX_ABSENT || sb->job)
		return;
	if (!sb->runs && !sb->files && !wants_restart(sb)) {
		sandbox_free_if_nothing(sb);
		return;
	}
	/* What waits goes on when there is room. */
	if (r->short_of_room && !sb->files && !wants_restart(sb))
		return;
	if (r->backend && r->reconciled) {
		if (!bind_warm(sb))
			begin_create(sb);
	} else if (r->backend_failed) {
		struct err e = ERR_INIT;

		err_set(&e, ERR_BACKEND, "%s", r->backend_words);
		answer_waiters(sb, true, false, &e);
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
	bind_warm(sb);
}

/* Now that it is stored whose it is, its agent may be told something. */
void sandbox_is_bound(struct sandbox *sb)
{
	sb->bound = false;
	if (sb->state == SANDBOX_CONNECTING && sb->conn)
		sandbox_link_ready(sb);
}

static void sandboxes_each(struct runner *r, void (*fn)(struct sandbox *sb))
{
	struct sandbox *next;

	for (size_t i = 0; i < HASH_SIZE; i++)
		for (struct sandbox *sb = r->sandboxes[i]; sb; sb = next) {
			next = sb->hash_next;
			fn(sb);
		}
}

void sandboxes_kick_all(struct runner *r)
{
	sandboxes_each(r, sandbox_kick);
}

void sandbox_remove(struct sandbox *sb, const char *reason, const struct replyto *to,
		    bool restart)
{
	if (to) {
		struct waiter *w = xcalloc(1, sizeof(*w));

		*w = (struct waiter){.next = sb->waiters, .to = *to, .restart = restart};
		sb->waiters = w;
	}
	sb->create_again |= restart;
	runs_cancel_all(sb, reason);
	filejobs_fail_with(sb, ERR_CONFLICT, reason);
	if (!sb->removing)
		sb->remove_next = true;
	sandbox_kick(sb);
}

/* ---- the end, and the beat */

void sandboxes_stop_all(struct runner *r)
{
	sandboxes_each(r, stop_one);
}

bool sandboxes_busy(const struct runner *r)
{
	for (size_t i = 0; i < HASH_SIZE; i++)
		for (const struct sandbox *sb = r->sandboxes[i]; sb; sb = sb->hash_next)
			if (sb->job)
				return true;
	return false;
}

bool sandboxes_any_creating(const struct runner *r)
{
	for (size_t i = 0; i < HASH_SIZE; i++)
		for (const struct sandbox *sb = r->sandboxes[i]; sb; sb = sb->hash_next)
			if (sb->state == SANDBOX_CREATING)
				return true;
	return false;
}

void sandboxes_heartbeat(struct runner *r, int64_t mono_ms)
{
	struct sandbox *next;

	for (size_t i = 0; i < HASH_SIZE; i++)
		for (struct sandbox *sb = r->sandboxes[i]; sb; sb = next) {
			next = sb->hash_next;
			if (sb->conn)
				filejobs_guard(sb, mono_ms);
			if (sb->conn)
				strangers_end(sb, mono_ms);
			if (sb->conn)
				agentconn_heartbeat(sb->conn, mono_ms);
		}
}

static void drop_one(struct sandbox *sb)
{
	sandbox_unlist(sb);
	link_drop(sb);
	sb->dropped = true;
	if (!sb->job)
		sandbox_free(sb);
}

void sandboxes_drop_all(struct runner *r)
{
	struct err why = ERR_INIT;

	err_set(&why, ERR_STORE, "the database cannot be written; try again later");
	for (size_t i = 0; i < HASH_SIZE; i++)
		for (struct sandbox *sb = r->sandboxes[i]; sb; sb = sb->hash_next) {
			answer_waiters(sb, true, false, &why);
			answer_waiters(sb, false, false, &why);
			filejobs_fail(sb, &why);
		}
	sandboxes_each(r, drop_one);
}
