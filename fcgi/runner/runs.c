/* SPDX-License-Identifier: MIT */
#include "runner/runs.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "runner/feed.h"
#include "runner/hash.h"
#include "runner/output.h"
#include "runner/runexec.h"
#include "runner/runrows.h"
#include "runner/sandboxes.h"
#include "runner/sandboxrec.h"
#include "runner/sync.h"
#include "runner/turn.h"
#include "wire/idenc.h"

static struct run **slot_of(struct runner *r, const char *run_id)
{
	return &r->runs[hash_string(run_id) & (HASH_SIZE - 1)];
}

struct run *runs_find(struct runner *r, const char *run_id)
{
	struct run *run = *slot_of(r, run_id);

	while (run && strcmp(run->run_id, run_id) != 0)
		run = run->hash_next;
	return run;
}

static void enlist(struct run *run, struct sandbox *sb)
{
	struct run **slot = slot_of(sb->r, run->run_id);

	run->hash_next = *slot;
	*slot = run;
	run->sb = sb;
	run->prevp = sb->runs_tail;
	*sb->runs_tail = run;
	sb->runs_tail = &run->next;
	sb->r->nruns++;
}

static void unlist(struct run *run)
{
	struct run **p = slot_of(run->sb->r, run->run_id);

	while (*p != run)
		p = &(*p)->hash_next;
	*p = run->hash_next;
	*run->prevp = run->next;
	if (run->next)
		run->next->prevp = run->prevp;
	else
		run->sb->runs_tail = run->prevp;
	run->sb->r->nruns--;
}

static void run_free(struct run *run)
{
	runspec_release(&run->spec);
	free(run->cmds);
	free(run->run_id);
	free(run->tenant);
	free(run->background_of);
	free(run->why);
	free(run);
}

void run_drop(struct run *run)
{
	sync_abort(MOVE(run->sync));
	unlist(run);
	run_free(run);
}

static struct run *run_new(const char *tenant, const char *run_id)
{
	struct run *run = xcalloc(1, sizeof(*run));

	run->run_id = xstrdup(run_id);
	run->tenant = xstrdup(tenant);
	id_hex_decode(run_id + strlen("run_"), sizeof(run->id), run->id);
	return run;
}

size_t runs_count(const struct runner *r, const char *tenant, enum store_run_state s)
{
	size_t n = 0;

	for (size_t i = 0; i < HASH_SIZE; i++)
		for (const struct run *run = r->runs[i]; run; run = run->hash_next)
			n += run->state == s &&
			     (!tenant || strcmp(run->tenant, tenant) == 0);
	return n;
}

/* ---- accept */

static int check_room(struct runner *r, const char *tenant, struct err *e)
{
	if ((int64_t)r->nruns < r->conf->max_queued_runs ||
	    (int64_t)runs_count(r, tenant, STORE_RUN_QUEUED) < r->conf->max_queued_runs)
		return 0;
	return err_set(e, ERR_LIMIT,
		       "as many runs are waiting as MAX_QUEUED_RUNS allows (%lld); wait "
		       "until some have ended",
		       (long long)r->conf->max_queued_runs);
}

static void answer(struct runner *r, const struct run_request *q, const char *identifier,
		   const char *name)
{
	turn_answer_run(r, q->to,
			json_pack("{s:s,s:s,s:s}", "run_id", q->run_id, "identifier",
				  identifier, "sandbox_name", name));
}

static int insert(struct run *run, struct sandbox *sb, struct err *e)
{
	bool existed = false;

	if (runrows_insert(sb->r->store, run, sb, &existed, e) < 0)
		return -1;
	turn_dirty(sb->r);
	return 0;
}

/*
 * Its first command is started before anything is written, if it may be: the agent
 * and the command have work to do meanwhile (runner/turn.h says why that is safe).
 */
static int take_in(struct run *run, struct sandbox *sb, struct err *e)
{
	bool begins;

	sandbox_take_warm(sb, run->spec.ttl_s);
	enlist(run, sb);
	begins = sandbox_is_up(sb) && run_may_begin(run);
	if (begins)
		run_launch(run);
	if (insert(run, sb, e) < 0) {
		unlist(run);
		return -1;
	}
	sandbox_extend(sb, run->created_at, run->spec.ttl_s);
	if (begins)
		run_begin(run);
	return 0;
}

/* 1: it is in the store already, and has ended. */
static int accept_new(struct runner *r, const struct run_request *q, struct run *run,
		      struct err *e)
{
	const struct turn_mark before = turn_mark(r);
	struct sandbox *sb = NULL;
	bool known = false, holds;

	if (store_run_is_known(r->store, q->tenant, q->run_id, &known, e) < 0 ||
	    sandbox_get(r, q->tenant, run->spec.identifier, &sb, e) < 0)
		return -1;
	run->created_at = clock_now_ms();
	if (!known && take_in(run, sb, e) < 0) {
		sandbox_kick(sb); /* it may be there for this run alone */
		return -1;
	}
	answer(r, q, sb->identifier, sb->name);
	/* One that was bound to it begins with the commit: that waits for nothing. */
	holds = !known && run->spec.await_completion && !sb->bound;
	sandbox_kick(sb); /* it may go, and the run */
	if (holds)
		turn_hold(r, before);
	return known;
}

int runs_accept(struct runner *r, const struct run_request *q, struct err *e)
{
	struct run *run = runs_find(r, q->run_id);
	struct runspec_limits lim = runspec_limits_of(r->conf);
	int rc;

	if (run && strcmp(run->tenant, q->tenant) != 0)
		return err_set(e, ERR_CONFLICT, "this run_id is taken");
	if (run) {
		answer(r, q, run->spec.identifier, run->sb->name);
		return 0;
	}
	run = run_new(q->tenant, q->run_id);
	if (runspec_parse(q->args, &lim, &run->spec, e) < 0 ||
	    check_room(r, q->tenant, e) < 0) {
		run_free(run);
		return -1;
	}
	run->cmds = xcalloc(run->spec.ncommands, sizeof(*run->cmds));
	rc = accept_new(r, q, run, e);
	if (rc != 0)
		run_free(run);
	return rc < 0 ? -1 : 0;
}

/* ---- background */

static char *dup_or_null(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

static struct command_spec *command_dup(const struct command_spec *c)
{
	struct command_spec *d = xcalloc(1, sizeof(*d));

	*d = (struct command_spec){
		.shell = dup_or_null(c->shell),
		.argv = c->argv ? strv_dup(c->argv) : NULL,
		.cwd = xstrdup(c->cwd),
		.env = strv_dup(c->env),
		.input = dup_or_null(c->input),
		.timeout_ms = c->timeout_ms,
	};
	return d;
}

static struct run *background_new(const struct run *from, const char *run_id)
{
	struct run *run = run_new(from->tenant, run_id);

	run->background_of = xstrdup(from->run_id);
	run->created_at = clock_now_ms();
	run->spec = (struct run_spec){
		.identifier = xstrdup(from->spec.identifier),
		.commands = command_dup(&from->spec.commands[from->at]),
		.ncommands = 1,
		.ttl_s = from->spec.ttl_s,
		.as_root = from->spec.as_root,
	};
	run->cmds = xcalloc(1, sizeof(*run->cmds));
	return run;
}

void runs_accept_background(const struct run *from, const char *run_id)
{
	struct run *run = background_new(from, run_id);
	struct err e = ERR_INIT;

	/* A store that fails is noticed by the commit, which drops all of this. */
	if (insert(run, from->sb, &e) < 0)
		log_error("%s: %s", run_id, e.msg);
	enlist(run, from->sb);
	if (run_may_begin(run))
		run_begin(run);
}

bool runs_keep_alive(const struct sandbox *sb)
{
	for (const struct run *run = sb->runs; run; run = run->next)
		if (!run->background_of)
			return true;
	return false;
}

/* ---- restore */

static void restore_command(struct run *run, size_t i, const struct store_command *row,
			    bool agent_known)
{
	struct command *c = &run->cmds[i];

	c->status = row->status;
	c->started_at = row->started_at;
	/* Its start may have been lost with the runner that wrote this down; the agent
	 * tells, if it is known to be the same process. */
	c->confirmed = row->status == STORE_COMMAND_RUNNING && !agent_known;
	for (int s = 0; s < STORE_STREAM_COUNT; s++) {
		c->streams[s].stored = row->stored[s];
		c->streams[s].truncated = row->truncated[s];
	}
	if (!store_command_ended(row->status))
		return;
	run->at = i + 1;
	if (row->status == STORE_COMMAND_COMPLETED || row->allow_failure || run->failed)
		return;
	run->failed = true;
	run->why = xasprintf("command %zu: %s", i, row->reason ? row->reason : "failed");
}

void runs_restore(struct runner *r, const struct store_run *row)
{
	struct run *run;
	struct sandbox *sb = sandbox_find(r, row->tenant, row->identifier);
	struct err e = ERR_INIT;

	/* A row that was there before counts against no limit now. */
	if (!idenc_is_run_id(row->run_id) ||
	    (!sb && sandbox_get(r, row->tenant, row->identifier, &sb, &e) < 0)) {
		log_error("run %s cannot be taken up: %s", row->run_id, e.msg);
		return;
	}
	run = run_new(row->tenant, row->run_id);
	runrows_spec(row, &run->spec);
	run->state = row->state;
	run->background_of = dup_or_null(row->background_of);
	run->created_at = row->created_at;
	run->started_at = row->started_at;
	run->cmds = xcalloc(run->spec.ncommands ? run->spec.ncommands : 1,
			    sizeof(*run->cmds));
	for (size_t i = 0; i < row->ncommands; i++)
		restore_command(run, i, &row->commands[i], sb->has_boot);
	enlist(run, sb);
	if (run->at < run->spec.ncommands &&
	    run->cmds[run->at].status == STORE_COMMAND_RUNNING)
		run_guard_command(run);
	if (row->cancel_requested)
		run_cancel(run, "canceled in the database");
}

/* ---- all of a sandbox */

static void each(struct sandbox *sb, void (*fn)(struct run *, const void *),
		 const void *arg)
{
	struct run *next;

	for (struct run *run = sb->runs; run; run = next) {
		next = run->next;
		fn(run, arg);
	}
}

static void cancel_now(struct run *run, const void *why)
{
	run_end_now(run, STORE_RUN_CANCELED, STORE_COMMAND_CANCELED, why);
}

void runs_cancel_all(struct sandbox *sb, const char *reason)
{
	each(sb, cancel_now, reason);
}

static void lose(struct run *run, const void *why)
{
	run_lose(run, why);
}
void runs_lose(struct sandbox *sb, const char *why)
{
	each(sb, lose, why);
}

static void lose_command(struct run *run, const void *why)
{
	if (run->at < run->spec.ncommands &&
	    run->cmds[run->at].status == STORE_COMMAND_RUNNING)
		run_lose(run, why);
}

void runs_lose_commands(struct sandbox *sb, const char *why)
{
	each(sb, lose_command, why);
}

static void refuse(struct run *run, const void *arg)
{
	const struct err *why = arg;
	char text[sizeof(why->msg) + 64];

	snprintf(text, sizeof(text), "the sandbox could not be started: %s", why->msg);
	run_end_now(run, STORE_RUN_FAILED, STORE_COMMAND_FAILED, text);
}

void runs_refuse(struct sandbox *sb, const struct err *why)
{
	each(sb, refuse, why);
}

static bool is_unconfirmed(const struct run *run)
{
	return run->sb->conn && run->at < run->spec.ncommands &&
	       run->cmds[run->at].status == STORE_COMMAND_RUNNING &&
	       !run->cmds[run->at].confirmed;
}

bool runs_any_unconfirmed(const struct runner *r)
{
	for (size_t i = 0; i < HASH_SIZE; i++)
		for (const struct run *run = r->runs[i]; run; run = run->hash_next)
			if (is_unconfirmed(run))
				return true;
	return false;
}

bool runs_any_running(const struct sandbox *sb)
{
	for (const struct run *run = sb->runs; run; run = run->next)
		if (run->state == STORE_RUN_RUNNING)
			return true;
	return false;
}

void runs_start_ready(struct sandbox *sb)
{
	struct run *next;

	for (struct run *run = sb->runs; run && sb->conn; run = next) {
		next = run->next;
		if (run->state == STORE_RUN_RUNNING)
			run_go_on(run);
		else if (run_may_begin(run))
			run_begin(run);
	}
}

/* Half a character goes, too: an offset in RESUME says what is *stored*. */
static void say_again_later(struct run *run, const void *arg)
{
	(void)arg;
	sync_abort(MOVE(run->sync));
	feed_link_lost(run);
	run->cancel_sent = false;
	for (int s = 0; run->at < run->spec.ncommands && s < STORE_STREAM_COUNT; s++)
		run->cmds[run->at].streams[s].ntail = 0;
}

void runs_link_lost(struct sandbox *sb)
{
	each(sb, say_again_later, NULL);
	sb->nforget =
		0; /* said again: the agent repeats what it was not told to forget */
}

bool runs_is_wanted(const struct sandbox *sb, const struct ap_id *id)
{
	const struct run *run = sb->runs;

	while (run && !run_wants(run, id))
		run = run->next;
	return run != NULL;
}

size_t runs_offsets(struct sandbox *sb, void *dst, size_t cap)
{
	size_t n = 0;

	for (struct run *run = sb->runs; run; run = run->next) {
		struct ap_offsets o = {.id.index = (uint32_t)run->at};

		memcpy(o.id.run, run->id, sizeof(run->id));
		if (!run_owns(run, &o.id))
			continue;
		run->cmds[run->at].resumed = true;
		o.stdout_off = output_done(&run->cmds[run->at].streams[0]);
		o.stderr_off = output_done(&run->cmds[run->at].streams[1]);
		n += ap_offsets_put((uint8_t *)dst + n, cap - n, &o);
	}
	return n;
}

/* ---- all of the runner */

static void send_ack(struct run *run)
{
	struct stream *st = run->cmds[run->at].streams;
	struct ap_msg m = {.type = AP_ACK};
	uint64_t out = output_done(&st[0]), err = output_done(&st[1]);

	run->want_ack = false;
	if (out == st[0].acked && err == st[1].acked)
		return;
	memcpy(m.u.ack.id.run, run->id, sizeof(run->id));
	m.u.ack.id.index = (uint32_t)run->at;
	m.u.ack.stdout_off = st[0].acked = out;
	m.u.ack.stderr_off = st[1].acked = err;
	agentconn_send(run->sb->conn, &m);
}

void runs_acknowledge(struct sandbox *sb)
{
	for (struct run *run = sb->runs; run; run = run->next)
		if (run->want_ack)
			send_ack(run);
	for (size_t i = 0; i < sb->nforget; i++)
		agentconn_send_later(
			sb->conn,
			&(struct ap_msg){.type = AP_FORGET, .u.ref.id = sb->forget[i]});
	sb->nforget = 0;
}

static void all_runs(struct runner *r, void (*fn)(struct run *, const void *),
		     const void *arg)
{
	for (size_t i = 0; i < HASH_SIZE; i++) {
		struct run *next;

		for (struct run *run = r->runs[i]; run; run = next) {
			next = run->hash_next;
			fn(run, arg);
		}
	}
}

static void cancel_gently(struct run *run, const void *reason)
{
	run_cancel(run, reason);
}

void runs_cancel_gently(struct runner *r, const char *reason)
{
	all_runs(r, cancel_gently, reason);
}

static struct run *find_overdue(struct runner *r, int64_t mono_ms)
{
	for (size_t i = 0; i < HASH_SIZE; i++)
		for (struct run *run = r->runs[i]; run; run = run->hash_next)
			if (run->guard_mono && mono_ms >= run->guard_mono)
				return run;
	return NULL;
}

/* One after the other from the start: the end of one may end others. */
void runs_guard(struct runner *r, int64_t mono_ms)
{
	struct run *run;

	while ((run = find_overdue(r, mono_ms)))
		run_overdue(run);
}

static void drop(struct run *run, const void *arg)
{
	(void)arg;
	run_drop(run);
}

void runs_drop_all(struct runner *r)
{
	all_runs(r, drop, NULL);
}
