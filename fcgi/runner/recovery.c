/* SPDX-License-Identifier: MIT */
#include "runner/recovery.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "runner/reserve.h"
#include "runner/runs.h"
#include "runner/sandboxall.h"
#include "runner/sandboxes.h"
#include "runner/sandboxrec.h"
#include "runner/turn.h"
#include "runner/waitwords.h"
#include "runner/warmpool.h"

enum { STORE_RETRY_MS = 1000, BACKEND_WAIT_MS = 1000, BACKEND_WAIT_MAX_MS = 60000 };

static const char opening_words[] =
	"the backend is being prepared; the first start makes the sandbox image, see the "
	"server's log for its progress";

/* ---- opening the backend */

struct open_job {
	struct control_job job;
	struct runner *r;
	struct backend *b;
	int rc;
	struct err e;
};

static void work_open(struct control_job *cj)
{
	struct open_job *j = (struct open_job *)cj;
	const struct backend_ops *ops = j->r->ops;

	if (!ops)
		j->rc = err_set(&j->e, ERR_INVALID, "SANDBOX_BACKEND=%s: no such backend",
				j->r->conf->backend);
	else
		j->rc = ops->open(j->r->conf, j->r->args->instance_id, waitwords_say,
				  j->r->words, &j->b, &j->e);
}

static void list_sandboxes(struct runner *r);

static void backend_failed(struct runner *r, const struct err *why)
{
	log_error("backend: %s", why->msg);
	r->backend_failed = true;
	r->backend_wait_ms =
		r->backend_wait_ms ? 2 * r->backend_wait_ms : BACKEND_WAIT_MS;
	if (r->backend_wait_ms > BACKEND_WAIT_MAX_MS)
		r->backend_wait_ms = BACKEND_WAIT_MAX_MS;
	r->backend_due = clock_mono_ms() + r->backend_wait_ms;
	snprintf(r->backend_words, sizeof(r->backend_words), "%s", why->msg);
	sandboxes_kick_all(r); /* what waits hears why */
}

static void done_open(struct control_job *cj)
{
	struct open_job *j = (struct open_job *)cj;
	struct runner *r = j->r;

	r->opening = false;
	if (j->rc < 0) {
		backend_failed(r, &j->e);
	} else {
		r->backend = j->b;
		r->backend_failed = false;
		list_sandboxes(r);
	}
	free(j);
}

static void open_backend(struct runner *r)
{
	struct open_job *j = xcalloc(1, sizeof(*j));

	if (!r->backend_failed)
		snprintf(r->backend_words, sizeof(r->backend_words), "%s", opening_words);
	r->opening = true;
	j->r = r;
	j->job = (struct control_job){.work = work_open, .done = done_open};
	control_submit(r->control, &j->job);
}

void recovery_retry_backend(struct runner *r)
{
	if (!r->backend_failed || r->opening || r->phase != PHASE_SERVING ||
	    clock_mono_ms() < r->backend_due)
		return;
	if (r->backend)
		list_sandboxes(r);
	else
		open_backend(r);
}

/* ---- what really runs */

struct list_job {
	struct control_job job;
	struct runner *r;
	uint32_t generation;
	struct sandbox_list list;
	int rc;
	struct err e;
};

static void work_list(struct control_job *cj)
{
	struct list_job *j = (struct list_job *)cj;

	j->rc = j->r->backend->ops->list(j->r->backend, &j->list, &j->e);
}

struct orphan_job {
	struct control_job job;
	struct orphan_job *next; /* of the runner's */
	struct runner *r;
	struct backend *b;
	char *name;
	char *identifier; /* who asked hears of it; NULL: nobody did */
	struct replyto to;
	bool existed;
	int rc;
	struct err e;
};

static void work_orphan(struct control_job *cj)
{
	struct orphan_job *j = (struct orphan_job *)cj;

	j->rc = j->b->ops->remove(j->b, j->name, &j->existed, &j->e);
}

static void done_orphan(struct control_job *cj)
{
	struct orphan_job *j = (struct orphan_job *)cj;
	struct runner *r = j->r;
	struct orphan_job **p = &r->orphans;

	if (j->rc < 0)
		log_error("remove sandbox %s: %s", j->name, j->e.msg);
	if (j->identifier && j->rc < 0)
		edges_err(r->edges, j->to, &j->e);
	else if (j->identifier)
		edges_ok(r->edges, j->to,
			 json_pack("{s:b,s:s}", "deleted", j->existed, "identifier",
				   j->identifier));
	while (*p != j)
		p = &(*p)->next;
	*p = j->next;
	free(j->identifier);
	free(j->name);
	free(j);
	sandboxes_kick_all(r); /* one of its name may wait */
}

bool recovery_is_removing(const struct runner *r, const char *name)
{
	for (const struct orphan_job *j = r->orphans; j; j = j->next)
		if (strcmp(j->name, name) == 0)
			return true;
	return false;
}

static struct orphan_job *remove_orphan(struct runner *r, const char *name)
{
	struct orphan_job *j = xcalloc(1, sizeof(*j));

	j->job = (struct control_job){.work = work_orphan, .done = done_orphan};
	j->r = r;
	j->b = r->backend;
	j->name = xstrdup(name);
	j->next = r->orphans;
	r->orphans = j;
	control_submit(r->control, &j->job);
	return j;
}

int recovery_remove_unwritten(struct runner *r, const char *tenant,
			      const char *identifier, struct replyto to, struct err *e)
{
	AUTO_FREE char *stored = NULL;
	char own[64];
	struct orphan_job *j;
	int64_t created;

	/* Reading still works when writing does not. */
	if (store_sandbox_name(r->store, tenant, identifier, &stored, &created, e) < 0)
		return -1;
	backend_sandbox_name(own, sizeof(own), r->args->instance_id, tenant, identifier);
	j = remove_orphan(r, stored ? stored : own);
	log_warn("sandbox %s is removed while the database cannot be written", j->name);
	/* Its end is told by this loop: not before we return. */
	j->identifier = xstrdup(identifier);
	j->to = to;
	return 0;
}

static const struct sandbox_info *info_of(const struct sandbox_list *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->v[i].name, name) == 0)
			return &l->v[i];
	return NULL;
}

static const char *why_gone(const struct runner *r, const struct sandbox_info *i)
{
	if (!i)
		return "the sandbox was removed while the server was away, with its "
		       "files: run the command again, in a fresh one";
	if (r->short_of_room)
		return "the server's disk is full, so the sandbox was stopped; its "
		       "files are kept: delete_sandbox makes room";
	return "the sandbox was stopped while the server was away; its files are "
	       "kept: run the command again";
}

static void reconcile_one(struct runner *r, struct sandbox *sb,
			  const struct sandbox_list *l)
{
	const struct sandbox_info *i = info_of(l, sb->name);
	struct err e = ERR_INIT;

	if (sb->state != SANDBOX_ABSENT || sb->job)
		return;
	if (i && i->running) {
		if (i->outdated)
			sandbox_replace_later(sb, "the policy for sandboxes had changed");
		sandbox_adopt(sb);
		return;
	}
	runs_lose(sb, why_gone(r, i));
	if (sb->has_row && store_sandbox_set_state(r->store, sb->tenant, sb->identifier,
						   STORE_SANDBOX_STOPPED, NULL, &e) < 0)
		log_error("sandbox %s: %s", sb->name, e.msg);
	turn_dirty(r);
}

static void reconcile(struct runner *r, const struct sandbox_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (!sandbox_named(r, l->v[i].name) &&
		    !warmpool_has(r->warm, l->v[i].name)) {
			log_warn("sandbox %s is not in the database; removing it",
				 l->v[i].name);
			remove_orphan(r, l->v[i].name);
		}
	for (size_t i = 0; i < HASH_SIZE; i++)
		for (struct sandbox *sb = r->sandboxes[i]; sb; sb = sb->hash_next)
			reconcile_one(r, sb, l);
	r->reconciled = true;
	r->backend_failed = false;
	r->backend_wait_ms = 0;
	sandboxes_kick_all(r);
	warmpool_reconcile(r->warm, l);
}

/* ---- at a stop */

struct stop_job {
	struct control_job job;
	struct backend *b;
	char *name;
	struct err e;
	int rc;
};

static void work_stop(struct control_job *cj)
{
	struct stop_job *j = (struct stop_job *)cj;

	j->rc = j->b->ops->stop(j->b, j->name, &j->e);
}

static void done_stop(struct control_job *cj)
{
	struct stop_job *j = (struct stop_job *)cj;

	if (j->rc < 0)
		log_error("stop sandbox %s: %s", j->name, j->e.msg);
	free(j->name);
	free(j);
}

static void stop_strangers(struct runner *r, const struct sandbox_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct sandbox *sb = sandbox_named(r, l->v[i].name);
		struct stop_job *j;

		if (!l->v[i].running ||
		    (sb && (sb->job || sb->state != SANDBOX_ABSENT)) ||
		    warmpool_has(r->warm, l->v[i].name))
			continue;
		j = xcalloc(1, sizeof(*j));
		j->job = (struct control_job){.work = work_stop, .done = done_stop};
		j->b = r->backend;
		j->name = xstrdup(l->v[i].name);
		control_submit(r->control, &j->job);
	}
}

void recovery_stop_strangers(struct runner *r)
{
	if (r->backend && !r->opening && !r->reconciled)
		list_sandboxes(r);
}

static void done_list(struct control_job *cj)
{
	struct list_job *j = (struct list_job *)cj;
	struct runner *r = j->r;

	r->opening = false;
	if (r->phase == PHASE_STOPPING && r->sandboxes_stopped) {
		if (j->rc < 0)
			log_error("stopping: %s", j->e.msg);
		else
			stop_strangers(r, &j->list);
		warmpool_stop(r->warm); /* the backend may not have been there */
	} else if (r->phase == PHASE_STORE_FAILED && r->making_room) {
		stop_strangers(r, &j->list);
	} else if (r->phase == PHASE_STOPPING) {
		/* Asked for before: recovery_stop_strangers() asks again. */
		r->reconciled = false;
	} else if (r->phase == PHASE_SERVING && j->generation == r->generation) {
		if (j->rc < 0)
			backend_failed(r, &j->e);
		else
			reconcile(r, &j->list);
	}
	sandbox_list_release(&j->list);
	free(j);
}

static void list_sandboxes(struct runner *r)
{
	struct list_job *j = xcalloc(1, sizeof(*j));

	r->opening = true;
	j->job = (struct control_job){.work = work_list, .done = done_list};
	j->r = r;
	j->generation = r->generation;
	control_submit(r->control, &j->job);
}

/* ---- the store */

static void load_sandboxes(struct runner *r)
{
	AUTO_STORE_SANDBOXES rows = {0};
	struct err e = ERR_INIT;

	if (store_sandboxes_all(r->store, &rows, &e) < 0) {
		log_error("reading the sandboxes: %s", e.msg);
		return;
	}
	for (size_t i = 0; i < rows.n; i++) {
		struct sandbox *sb = sandbox_from_row(r, &rows.v[i]);

		sb->remove_next = rows.v[i].state == STORE_SANDBOX_DELETING;
	}
}

static void load_runs(struct runner *r)
{
	AUTO_STORE_RUNS rows = {0};
	struct err e = ERR_INIT;

	if (store_runs_unfinished(r->store, &rows, &e) < 0) {
		log_error("reading the unfinished runs: %s", e.msg);
		return;
	}
	for (size_t i = 0; i < rows.n; i++)
		runs_restore(r, &rows.v[i]);
	if (rows.n > 0)
		log_info("unfinished runs that are taken up: %zu", rows.n);
}

void recovery_begin(struct runner *r)
{
	r->phase = PHASE_SERVING;
	r->reconciled = false;
	r->store_words[0] = '\0';
	reserve_keep(r); /* an earlier runner's is taken over before the first write */
	load_sandboxes(r);
	warmpool_load(r->warm);
	load_runs(r);
	if (r->backend)
		list_sandboxes(r);
	else if (!r->opening)
		open_backend(r);
}

/* First nothing may run that could fill it again, then there is room. */
static void make_room(struct runner *r)
{
	if (r->making_room) {
		r->making_room = false;
		reserve_give_up(r);
		return;
	}
	r->making_room = true;
	if (r->backend)
		list_sandboxes(r);
}

/* A real row, so that a disk that is still full says so. */
static void try_store(uv_timer_t *t)
{
	struct runner *r = t->data;
	const struct store_audit_row row = {.at = clock_now_ms(),
					    .tenant = STORE_TENANT_DEFAULT,
					    .actor = "server",
					    .action = "store_recovered",
					    .subject = "database"};
	struct store_commit_info info;
	struct err e = ERR_INIT, ignored = ERR_INIT;

	/* A job that holds a sandbox must be over before it is looked at again. Not
	 * so the first opening of the backend, which may build an image for minutes. */
	size_t harmless = r->opening && !r->backend ? 1 : 0;

	if (r->phase != PHASE_STORE_FAILED || control_pending(r->control) > harmless)
		return;
	if (store_audit(r->store, &row, &e) < 0 ||
	    store_commit(r->store, &info, &e) < 0) {
		store_commit(r->store, &info, &ignored); /* begins afresh */
		snprintf(r->store_words, sizeof(r->store_words), "%s", e.msg);
		if (reserve_is_due(r))
			make_room(r);
		return;
	}
	r->making_room = false;
	log_info("the database can be written again");
	uv_timer_stop(t);
	recovery_begin(r);
}

void recovery_store_failed(struct runner *r, const struct err *why)
{
	log_error("the database cannot be written: %s", why->msg);
	r->metrics.store_failures++;
	snprintf(r->store_words, sizeof(r->store_words), "%s", why->msg);
	if (r->phase == PHASE_STOPPING)
		return; /* nothing is left to be saved */
	r->phase = PHASE_STORE_FAILED;
	(void)reserve_is_due(r); /* since when */
	r->generation++;
	r->reconciled = false;
	runs_drop_all(r);
	sandboxes_drop_all(r);
	warmpool_drop_all(r->warm);
	r->dirty = false;
	r->store_retry.data = r;
	uv_timer_start(&r->store_retry, try_store, STORE_RETRY_MS, STORE_RETRY_MS);
}
