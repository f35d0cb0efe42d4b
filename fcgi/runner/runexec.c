/* SPDX-License-Identifier: MIT */
#include "runner/runexec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "runner/agentlink.h"
#include "runner/feed.h"
#include "runner/output.h"
#include "runner/runevents.h"
#include "runner/runs.h"
#include "runner/sandboxes.h"
#include "runner/sandboxrec.h"
#include "runner/startframe.h"
#include "runner/sync.h"
#include "runner/turn.h"
#include "runner/verdict.h"

enum {
	PARALLEL_MAX = AP_COMMANDS_MAX / 4,  /* runs at once in one sandbox */
	STARTS_AHEAD_MAX = 32 * 1024 * 1024, /* bytes the agent has not read yet */
	GUARD_MS = 20000, /* after its limit and grace the agent must have ended it */
};

static struct ap_id id_of(const struct run *run, size_t index)
{
	struct ap_id id = {.index = (uint32_t)index};

	memcpy(id.run, run->id, sizeof(id.run));
	return id;
}

/* The id of the command that is running now? */
bool run_owns(const struct run *run, const struct ap_id *id)
{
	return run->at < run->spec.ncommands && id->index == run->at &&
	       memcmp(id->run, run->id, sizeof(run->id)) == 0 &&
	       run->cmds[run->at].status == STORE_COMMAND_RUNNING;
}

/* A store that fails is noticed by the commit, which drops all of this. */
static void stored(const struct run *run, int rc, const struct err *e)
{
	if (rc < 0)
		log_error("%s: %s", run->run_id, e->msg);
	turn_dirty(run->sb->r);
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* ---- start */

static void read_oom(struct run *run, struct command *c)
{
	struct backend *b = run->sb->r->backend;
	struct err ignored = ERR_INIT;

	c->oom_known =
		b && b->ops->oom_kills(b, run->sb->name, &c->oom_before, &ignored) == 0;
}

/* The start, and as much of its input as may follow at once. */
static void send_start(struct run *run)
{
	startframe_send(run->sb->conn, run, run->at);
	feed_begin(run);
	agentconn_flush(run->sb->conn);
}

void run_guard_command(struct run *run)
{
	const struct command_spec *spec = &run->spec.commands[run->at];

	run->guard_mono = spec->timeout_ms
				  ? clock_mono_ms() + spec->timeout_ms +
					    run->sb->r->conf->kill_grace_ms + GUARD_MS
				  : 0;
}

/* Before anything is written down: the agent needs longer to start it than we to write.
 */
static void launch(struct run *run)
{
	struct command *c = &run->cmds[run->at];

	c->status = STORE_COMMAND_RUNNING;
	c->started_at = clock_now_ms();
	send_start(run);
	read_oom(run, c);
	run_guard_command(run);
}

static void note_start(struct run *run)
{
	const struct command *c = &run->cmds[run->at];
	struct err e = ERR_INIT;

	stored(run,
	       store_command_start(run->sb->r->store, run->run_id, (int64_t)run->at,
				   c->started_at, &e),
	       &e);
	event_command_started(run, run->at);
}

bool run_may_begin(const struct run *run)
{
	size_t running = 0;

	if (run->sb->stale) /* not under the old policy any more */
		return false;
	if (run->sb->r->short_of_room) /* it would fill what deletes need */
		return false;
	/* Scripts are megabytes: no more at once than the connection holds. */
	if (agentconn_backlog(run->sb->conn) > STARTS_AHEAD_MAX)
		return false;
	for (const struct run *o = run->sb->runs; o && o != run; o = o->next) {
		if (o->spec.lock_sandbox && run->spec.lock_sandbox)
			return false;
		running += o->state == STORE_RUN_RUNNING;
	}
	return running < PARALLEL_MAX;
}

static bool has_more_from(const struct run *run, size_t at)
{
	return at < run->spec.ncommands && run->ending == ENDING_NOT &&
	       (!run->failed || run->spec.continue_on_error);
}

static bool has_more(const struct run *run)
{
	return has_more_from(run, run->at);
}

static void finish_or_next(struct run *run);

static bool starts_one(const struct run *run)
{
	return has_more(run) && !run->spec.commands[run->at].background;
}

void run_launch(struct run *run)
{
	run->started_at = clock_now_ms();
	if (starts_one(run))
		launch(run);
	run->launched = true;
}

void run_begin(struct run *run)
{
	const bool starts = starts_one(run);
	struct sandbox *sb = run->sb;
	struct err e = ERR_INIT;
	int rc;

	if (!run->launched)
		run_launch(run);
	run->state = STORE_RUN_RUNNING;
	metrics_observe_us(&sb->r->metrics.queue_time,
			   (run->started_at - run->created_at) * 1000);
	rc = store_run_start(sb->r->store, run->run_id, sb->name, sb->container_id,
			     run->started_at, &e);
	stored(run, rc, &e);
	event_run_started(run);
	sb->fresh = false;
	sb->again = NULL;
	if (starts)
		note_start(run);
	else
		finish_or_next(run);
}

/* ---- the end */

static void count_end(struct run *run, enum store_run_state state)
{
	run->sb->r->metrics.runs[state]++;
}

void run_end(struct run *run, enum store_run_state state, const char *error)
{
	struct sandbox *sb = run->sb;
	int64_t now = later(clock_now_ms(), run->started_at);
	struct err e = ERR_INIT;

	event_run_ended(run, now, error);
	stored(run, store_run_finish(sb->r->store, run->run_id, state, now, error, &e),
	       &e);
	count_end(run, state);
	if (!run->background_of)
		sandbox_extend(sb, now, run->spec.ttl_s);
	run_drop(run);
}

static void finish_command(struct run *run, struct store_command *c)
{
	struct runner *r = run->sb->r;
	struct command *cmd = &run->cmds[run->at];
	struct err e = ERR_INIT;

	c->index = (int64_t)run->at;
	/* The wall clock may have been set back meanwhile. */
	c->ended_at = later(clock_now_ms(), cmd->started_at);
	cmd->status = c->status;
	event_command_finished(run, c);
	stored(run, store_command_finish(r->store, run->run_id, c, &e), &e);
	r->metrics.commands[c->status]++;
	metrics_observe_us(&r->metrics.command_duration,
			   (c->ended_at - cmd->started_at) * 1000);
	run->want_ack = false;
}

static bool command_runs(const struct run *run)
{
	return run->at < run->spec.ncommands &&
	       run->cmds[run->at].status == STORE_COMMAND_RUNNING;
}

void run_end_now(struct run *run, enum store_run_state state,
		 enum store_command_status status, const char *why)
{
	sync_abort(MOVE(run->sync));
	if (command_runs(run)) {
		struct store_command c = {.status = status,
					  .exit_code = -1,
					  .reason = why,
					  .oom = -1,
					  .cpu_ms = -1,
					  .max_rss_kb = -1};

		output_end(run, run->at, false, false, &c);
		finish_command(run, &c);
	}
	run_end(run, state, why);
}

bool run_wants(const struct run *run, const struct ap_id *id)
{
	return memcmp(id->run, run->id, sizeof(run->id)) == 0 &&
	       (run_owns(run, id) ||
		(has_more(run) && id->index >= run->at + command_runs(run)));
}

/*
 * To its own run it has done all that is waited for. That it began, and as which
 * run it goes on, is one commit.
 */
static void leave_to_background(struct run *run)
{
	struct store_command c = {.index = (int64_t)run->at,
				  .status = STORE_COMMAND_COMPLETED,
				  .exit_code = -1,
				  .oom = -1,
				  .cpu_ms = -1,
				  .max_rss_kb = -1};
	struct command *cmd = &run->cmds[run->at];
	char id[ID_RUN_LEN + 1], reason[128];
	struct err e = ERR_INIT;

	runspec_background_id(run->run_id, run->at, id);
	snprintf(reason, sizeof(reason), "goes on in the background as %s", id);
	c.reason = reason;
	c.started_at = c.ended_at = cmd->started_at = clock_now_ms();
	cmd->status = c.status;
	event_command_started(run, run->at);
	event_command_finished(run, &c);
	stored(run, store_command_finish(run->sb->r->store, run->run_id, &c, &e), &e);
	runs_accept_background(run, id);
	run->at++;
}

/* Artifacts are fetched after runs that failed or were canceled, too. */
static void finish_or_next(struct run *run)
{
	while (has_more(run) && run->spec.commands[run->at].background)
		leave_to_background(run);
	if (has_more(run)) {
		launch(run);
		note_start(run);
	} else if (run->no_artifacts) {
		event_artifacts(run, 0);
		run_synced(run);
	} else if (!run->sync) {
		sync_begin(run);
	}
}

/* All its commands are over: how they ended is how it ends. */
static void conclude(struct run *run)
{
	run->sync = NULL;
	if (run->ending == ENDING_CANCEL)
		run_end(run, STORE_RUN_CANCELED, run->why);
	else if (run->failed)
		run_end(run, STORE_RUN_FAILED, run->why);
	else
		run_end(run, STORE_RUN_COMPLETED, NULL);
}

void run_synced(struct run *run)
{
	struct sandbox *sb = run->sb;

	conclude(run);
	sandbox_kick(sb); /* who waited for the lock may begin */
}

/* Its commands are over, its artifacts cannot be had: it ends as they did. */
static void conclude_without_artifacts(struct run *run, const char *why)
{
	struct err e = ERR_INIT;

	sync_abort(MOVE(run->sync));
	stored(run, store_run_artifacts_error(run->sb->r->store, run->run_id, why, &e),
	       &e);
	conclude(run);
}

static int oom_of(const struct run *run, const struct command *c)
{
	struct backend *b = run->sb->r->backend;
	struct err ignored = ERR_INIT;
	uint64_t now = 0;

	if (!c->oom_known || b->ops->oom_kills(b, run->sb->name, &now, &ignored) < 0)
		return -1;
	return now > c->oom_before;
}

/* By the backend's own look at the control group, else by the agent's word. */
static int oom_at_end(const struct run *run, const struct command *c,
		      const struct ap_exit *x)
{
	int oom = oom_of(run, c);

	if (oom >= 0 || !(x->flags & AP_EXIT_OOM_KNOWN))
		return oom;
	return (x->flags & AP_EXIT_OOM) != 0;
}

/* Why all of it ended, if the control group knows: gVisor ends as one. */
static char *lost_reason(const struct run *run, const char *why)
{
	if (!command_runs(run) || oom_of(run, &run->cmds[run->at]) != 1)
		return xstrdup(why);
	return xasprintf("%s (it had reached its memory limit of %" PRId64
			 " MB: use less memory, or raise DEFAULT_MEMORY_MB)",
			 why, run->sb->r->conf->default_memory_mb);
}

void run_lose(struct run *run, const char *why)
{
	AUTO_FREE char *reason = NULL;

	if (run->state != STORE_RUN_RUNNING)
		return;
	if (!command_runs(run) && !has_more(run))
		conclude_without_artifacts(run, why);
	else if (run->ending == ENDING_CANCEL)
		run_end_now(run, STORE_RUN_CANCELED, STORE_COMMAND_CANCELED, run->why);
	else
		run_end_now(run, STORE_RUN_FAILED, STORE_COMMAND_LOST,
			    reason = lost_reason(run, why));
}

static void send_cancel(struct run *run)
{
	struct ap_msg m = {.type = AP_CANCEL};

	m.u.cancel.id = id_of(run, run->at);
	m.u.cancel.grace_ms = (uint32_t)run->sb->r->conf->kill_grace_ms;
	agentconn_send(run->sb->conn, &m);
	agentconn_flush(run->sb->conn);
}

void run_overdue(struct run *run)
{
	struct sandbox *sb = run->sb;

	sandbox_replace_later(sb, "its agent had not done what it was told");
	/* It must not go on unseen. */
	if (command_runs(run) && sb->conn)
		send_cancel(run);
	run_lose(run, command_runs(run)
			      ? "the sandbox's agent did not end the command at its "
				"time limit; the sandbox is started anew at its next "
				"use, its files are kept"
			      : "the sandbox's agent did not give the artifacts in time");
	sandbox_kick(sb); /* who waited for the lock may begin */
}

void run_go_on(struct run *run)
{
	if (command_runs(run)) { /* RESUME covers it */
		if (run->ending == ENDING_CANCEL && !run->cancel_sent)
			send_cancel(run);
		run->cancel_sent = run->ending == ENDING_CANCEL;
		return;
	}
	if (!run->sync)
		finish_or_next(run);
}

/* ---- what the agent says */

static void note_failure(struct run *run, const struct store_command *c)
{
	if (c->status == STORE_COMMAND_COMPLETED ||
	    run->spec.commands[run->at].allow_failure || run->failed)
		return;
	run->failed = true;
	free(run->why);
	run->why = xasprintf("command %zu: %s", run->at, c->reason);
}

static bool kept_differs(const struct stream *st, uint64_t kept)
{
	return (uint64_t)(st->stored + st->dropped) + st->ntail != kept;
}

/* All output came before its EXIT; other counts are a lie, and said as a cut. */
static void end_output(struct run *run, const struct ap_exit *x, struct store_command *c)
{
	const struct stream *st = run->cmds[run->at].streams;
	bool lie_out = kept_differs(&st[STORE_STDOUT], x->stdout_kept);
	bool lie_err = kept_differs(&st[STORE_STDERR], x->stderr_kept);

	if (lie_out || lie_err)
		log_error("%s: the agent's count of the output is not what came",
			  run->run_id);
	output_end(run, run->at, lie_out || (x->flags & AP_EXIT_STDOUT_TRUNCATED),
		   lie_err || (x->flags & AP_EXIT_STDERR_TRUNCATED), c);
}

/* True: it waits for the list of its artifacts. */
static bool command_ended(struct run *run, const struct ap_exit *x)
{
	struct command *cmd = &run->cmds[run->at];
	struct store_command c = {.exit_code = -1};
	struct ap_id id = id_of(run, run->at);
	char reason[VERDICT_REASON_MAX];
	const struct verdict_input in = {
		.exit = x,
		.spec = &run->spec.commands[run->at],
		.oom = x->how == AP_EXITED && x->value == 0 ? 0 : oom_at_end(run, cmd, x),
		.memory_mb = run->sb->r->conf->default_memory_mb,
		.cancel_reason = run->ending == ENDING_CANCEL ? run->why : NULL,
	};

	bool lists;

	verdict_of(&in, &c, reason);
	if (run->ending == ENDING_NOT)
		note_failure(run, &c);
	run->guard_mono = 0;
	run->no_artifacts = x->flags & AP_EXIT_NO_ARTIFACTS;
	lists = !has_more_from(run, run->at + 1) && !run->no_artifacts;
	if (lists)
		sync_begin(run); /* the agent lists while we write */
	end_output(run, x, &c);
	finish_command(run, &c);
	sandbox_forget_command(run->sb, &id);
	sandbox_trust(run->sb);
	run->at++;
	finish_or_next(run);
	return lists;
}

static struct run *owner(const struct sandbox *sb, const struct ap_id *id)
{
	struct run *run = sb->runs;

	while (run && !run_owns(run, id))
		run = run->next;
	return run;
}

bool runs_on_started(struct sandbox *sb, const struct ap_started *m)
{
	struct run *run = owner(sb, &m->id);

	if (!run)
		return false;
	run->cmds[run->at].confirmed = true;
	feed_taken(run, m->stdin_off);
	return true;
}

void runs_on_stdin_ack(struct sandbox *sb, const struct ap_stdin_ack *m)
{
	struct run *run = owner(sb, &m->id);

	if (run)
		feed_taken(run, m->offset);
}

/*
 * STARTED comes first, each time a command is told of. What comes before it was on its
 * way when the start was sent once more: the rest of an older telling, whose beginning
 * nobody here has kept. The agent tells all of it again. What could not be started has
 * nothing but an end.
 */
static bool is_leftover(const struct run *run, const struct ap_exit *x)
{
	return !run->cmds[run->at].confirmed && !(x && x->how == AP_SPAWN_FAILED);
}

void runs_on_output(struct sandbox *sb, const struct ap_output *o)
{
	struct run *run = owner(sb, &o->id);
	struct runner *r = sb->r;
	const struct turn_mark before = turn_mark(r);
	struct err e = ERR_INIT;

	if (run && is_leftover(run, NULL))
		return;
	if (run && output_add(run, run->at, o, &e) < 0)
		agentlink_distrust(sb, e.msg);
	else if (run)
		sandbox_acknowledge_later(sb);
	turn_join(r, before);
}

enum { EXIT_CODE_MAX = 255, SIGNAL_MAX = 64 };

static bool exit_is_possible(const struct ap_exit *x)
{
	return x->stdout_kept <= x->stdout_total && x->stderr_kept <= x->stderr_total &&
	       (x->how != AP_EXITED || x->value <= EXIT_CODE_MAX) &&
	       (x->how != AP_SIGNALED || (x->value > 0 && x->value <= SIGNAL_MAX));
}

bool runs_on_exit(struct sandbox *sb, const struct ap_exit *x)
{
	struct run *run = owner(sb, &x->id);
	struct runner *r = sb->r;
	const struct turn_mark before = turn_mark(r);

	if (!run)
		return false;
	if (is_leftover(run, x))
		return true;
	if (!exit_is_possible(x))
		agentlink_distrust(sb, "the agent tells of an end that cannot be");
	else if (command_ended(run, x))
		turn_hold(r, before);
	return true;
}

/*
 * GONE answers RESUME, once. An agent that is the same process as before and does not
 * know the command has never heard of it: the start was lost with the connection.
 * Otherwise it ran, and how it ended is lost with the agent that ran it.
 */
void runs_on_gone(struct sandbox *sb, const struct ap_id *id)
{
	struct run *run = owner(sb, id);

	if (!run)
		return;
	if (!run->cmds[run->at].resumed) {
		agentlink_distrust(sb, "the agent forgot a command while it ran");
		return;
	}
	run->cmds[run->at].resumed = false;
	if (run->cmds[run->at].confirmed) {
		run_end_now(run, STORE_RUN_FAILED, STORE_COMMAND_LOST,
			    "the sandbox was started again while the command ran; its "
			    "files are kept: run the command again");
		sandbox_kick(sb);
		return;
	}
	send_start(run);
}

/* ---- ends from outside */

void run_cancel(struct run *run, const char *reason)
{
	struct sandbox *sb = run->sb;
	const struct conf *conf = sb->r->conf;

	if (run->ending != ENDING_NOT)
		return;
	run->ending = ENDING_CANCEL;
	free(run->why);
	run->why = xstrdup(reason);
	if (run->state == STORE_RUN_QUEUED) {
		run_end(run, STORE_RUN_CANCELED, reason);
		sandbox_kick(sb);
		return;
	}
	run->guard_mono = clock_mono_ms() + conf->kill_grace_ms + GUARD_MS;
	if (sb->state == SANDBOX_READY)
		run_go_on(run);
}
