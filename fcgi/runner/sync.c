/* SPDX-License-Identifier: MIT */
#include "runner/sync.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/mem.h"
#include "runner/agentlink.h"
#include "runner/filejob.h"
#include "runner/runevents.h"
#include "runner/runs.h"
#include "runner/syncstage.h"
#include "runner/turn.h"
#include "wire/idenc.h"

enum {
	CREDIT = 512 * 1024,
	TRIES = 3, /* of a file that changes while it is read */
	/* Each has at most one request open; the file tools have the others. */
	AT_ONCE = AP_FS_REQUESTS_MAX - FILEJOBS_OPEN_MAX,
	GUARD_MS = 600000, /* an agent that has not given all by then gives no more */
};

enum phase { WAITING, LISTING, STAGING, READING, PUBLISHING };

struct sync {
	struct control_job job; /* first: what threads hold */
	struct runner *r;
	struct run *run; /* NULL: given up; freed when the job is done */
	enum phase phase;
	bool at_work; /* a control thread has it */
	struct syncplan *plan;
	uint32_t req; /* open request; 0: none */
	size_t at;    /* entry being read */
	int fd;
	uint64_t got, copied_bytes, copied_files;
	int rc;
	struct err e;
};

static void on_staged(struct sync *s);
static void on_published(struct sync *s);

/* ---- life */

static void sync_free(struct sync *s)
{
	if (s->fd >= 0)
		close(s->fd);
	plan_free(s->plan);
	free(s);
}

static void work_discard(struct control_job *j)
{
	plan_discard(((struct sync *)j)->plan);
}

static void done_free(struct control_job *j)
{
	sync_free((struct sync *)j);
}

/* Many files may have to go: not on the loop. */
static void discard(struct sync *s)
{
	if (s->plan->staging_fd < 0) {
		sync_free(s);
		return;
	}
	s->job = (struct control_job){.work = work_discard, .done = done_free};
	control_submit(s->r->control, &s->job);
}

static void list_begin(struct sync *s);

static void start_waiting(struct sandbox *sb)
{
	if (!sb->conn)
		return;
	for (struct run *run = sb->runs; run; run = run->next)
		if (run->sync && run->sync->phase == WAITING) {
			list_begin(run->sync);
			return;
		}
}

/* Its place is free for another one. */
static void give_up_place(struct sync *s)
{
	s->req = 0;
	if (s->phase != WAITING)
		s->run->sb->syncs--;
}

void sync_abort(struct sync *s)
{
	if (!s)
		return;
	if (s->req && s->run->sb->conn)
		agentconn_send(
			s->run->sb->conn,
			&(struct ap_msg){.type = AP_FS_CANCEL, .u.fs_ref.req = s->req});
	give_up_place(s);
	s->run = NULL;
	if (!s->at_work)
		discard(s);
}

/* ---- the end of it, in every way */

static void stored(struct sync *s, int rc, const struct err *e)
{
	if (rc < 0)
		log_error("%s: %s", s->run->run_id, e->msg);
	turn_dirty(s->r);
}

/* Of what was skipped it is the agent's word, which may be any. */
static int64_t size_of(const struct plan_entry *entry)
{
	return entry->size < INT64_MAX ? (int64_t)entry->size : INT64_MAX;
}

static struct store_artifact row_of(const struct plan_entry *entry)
{
	bool is_copied = entry->fate != PLAN_SKIPPED;

	return (struct store_artifact){
		.path = entry->path,
		.size = size_of(entry),
		.mtime_ns = entry->mtime_ns,
		.ctime_ns = is_copied ? entry->ctime_ns : 0,
		.in_base =
			is_copied ? (enum store_in_base)entry->in_base : STORE_BASE_NONE,
		.skipped_reason = entry->reason,
	};
}

static void write_rows(struct sync *s)
{
	const struct syncplan *p = s->plan;
	AUTO_FREE struct store_artifact *rows = xcalloc(p->n + 1, sizeof(*rows));
	struct err e = ERR_INIT;
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].fate == PLAN_FETCH || p->v[i].fate == PLAN_SKIPPED ||
		    (p->v[i].fate == PLAN_SAME && p->v[i].in_base != STORE_BASE_SAME))
			rows[n++] = row_of(&p->v[i]);
	if (n > 0 || p->shares)
		stored(s,
		       store_artifacts_add(s->r->store, s->run->run_id,
					   p->shares ? p->base_run_id : NULL, rows, n,
					   &e),
		       &e);
}

static void leave(struct sync *s)
{
	struct run *run = s->run;
	struct sandbox *sb = run->sb;

	give_up_place(s);
	s->run = NULL;
	run->sync = NULL;
	run->guard_mono = 0;
	discard(s);
	start_waiting(sb);
	run_synced(run);
}

static void finish(struct sync *s)
{
	if (s->plan->n > 0)
		write_rows(s);
	s->r->metrics.artifact_bytes += s->copied_bytes;
	s->r->metrics.artifact_files += s->copied_files;
	event_artifacts(s->run, (int64_t)s->plan->files);
	leave(s);
}

static void fail(struct sync *s, const struct err *why)
{
	struct err e = ERR_INIT;

	log_warn("%s: artifacts: %s", s->run->run_id, why->msg);
	stored(s, store_run_artifacts_error(s->r->store, s->run->run_id, why->msg, &e),
	       &e);
	leave(s);
}

/* ---- folder work on a control thread */

static void work_stage(struct control_job *j)
{
	struct sync *s = (struct sync *)j;

	s->rc = plan_stage(s->plan, &s->e);
}

static void work_publish(struct control_job *j)
{
	struct sync *s = (struct sync *)j;

	s->rc = plan_publish(s->plan, &s->e);
}

static void work_done(struct control_job *j)
{
	struct sync *s = (struct sync *)j;

	s->at_work = false;
	if (!s->run)
		discard(s);
	else if (s->rc < 0)
		fail(s, &s->e);
	else if (s->phase == STAGING)
		on_staged(s);
	else
		on_published(s);
}

static void submit(struct sync *s, enum phase phase, void (*work)(struct control_job *))
{
	s->phase = phase;
	s->at_work = true;
	s->job = (struct control_job){.work = work, .done = work_done};
	control_submit(s->r->control, &s->job);
}

static void on_published(struct sync *s)
{
	finish(s);
}

/* ---- requests to the agent */

static void send_now(struct sync *s, const struct ap_msg *m)
{
	agentconn_send(s->run->sb->conn, m);
	agentconn_flush(s->run->sb->conn);
}

static uint32_t new_req(struct sync *s)
{
	s->req = sandbox_next_req(s->run->sb);
	return s->req;
}

static struct ap_bytes bytes_of(const char *text)
{
	return (struct ap_bytes){.p = (const uint8_t *)text, .n = strlen(text)};
}

/* What there was before; read while the agent lists. */
static void find_previous(struct sync *s)
{
	struct err ignored = ERR_INIT;

	/* None: everything is read. */
	store_artifacts_previous(s->r->store, s->run->tenant, s->run->sb->identifier,
				 &s->plan->previous, &ignored);
}

static void list_begin(struct sync *s)
{
	struct ap_msg m = {.type = AP_FS_LIST};

	s->phase = LISTING;
	s->run->sb->syncs++;
	m.u.fs_list.req = new_req(s);
	m.u.fs_list.credit = CREDIT;
	m.u.fs_list.root = bytes_of(AP_ARTIFACTS);
	send_now(s, &m);
	find_previous(s);
}

static void give_credit(struct sync *s, size_t bytes)
{
	struct ap_msg m = {.type = AP_FS_CREDIT};

	m.u.fs_credit.req = s->req;
	m.u.fs_credit.bytes = (uint32_t)bytes;
	send_now(s, &m);
}

static struct syncplan *plan_for(struct run *run)
{
	const struct conf *c = run->sb->r->conf;
	char folder[IDENC_SIZE];
	struct syncplan *p = plan_new();

	idenc(folder, run->sb->identifier);
	p->root = xstrdup(run->sb->r->artifacts_dir);
	p->tenant = xstrdup(run->tenant);
	p->folder = xstrdup(folder);
	p->run_id = xstrdup(run->run_id);
	p->gid = run->sb->r->artifacts_gid;
	p->limits = (struct plan_limits){
		.max_files = (uint64_t)c->artifacts_max_files,
		.max_bytes = (uint64_t)c->artifacts_max_bytes,
		.max_file_bytes = (uint64_t)c->artifacts_max_file_bytes,
	};
	return p;
}

void sync_begin(struct run *run)
{
	struct sandbox *sb = run->sb;
	struct sync *s;

	if (!sb->conn) /* it goes on when the agent is back */
		return;
	s = xcalloc(1, sizeof(*s));
	s->r = sb->r;
	s->run = run;
	s->fd = -1;
	s->plan = plan_for(run);
	run->sync = s;
	run->guard_mono = clock_mono_ms() + GUARD_MS;
	if (sb->syncs < AT_ONCE)
		list_begin(s);
}

/* ---- the listing */

static struct sync *owner(const struct sandbox *sb, uint32_t req)
{
	for (const struct run *run = sb->runs; run; run = run->next)
		if (run->sync && run->sync->req == req && req)
			return run->sync;
	return NULL;
}

void sync_on_entries(struct sandbox *sb, const struct ap_fs_entries *m)
{
	struct sync *s = owner(sb, m->req);
	struct ap_bytes list = m->entries;
	struct ap_entry entry;
	struct err e = ERR_INIT;

	if (!s || s->phase != LISTING)
		return;
	while (ap_entry_next(&list, &entry) > 0)
		if (plan_add(s->plan, &entry, &e) < 0) {
			struct ap_msg m2 = {.type = AP_FS_CANCEL};

			m2.u.fs_ref.req = s->req;
			send_now(s, &m2);
			fail(s, &e);
			return;
		}
	give_credit(s, m->entries.n);
}

static void listed(struct sync *s, const struct ap_fs_end *m)
{
	char words[128];
	struct err e = ERR_INIT;

	if (m->error && m->error != ENOENT) {
		err_set(&e, ERR_BACKEND, "/artifacts cannot be listed (%s)",
			strerror_r((int)(m->error % 4096), words, sizeof(words)));
		fail(s, &e);
	} else if (s->plan->files == 0) {
		finish(s);
	} else {
		submit(s, STAGING, work_stage);
	}
}

/* ---- reading what changed */

static void read_next(struct sync *s)
{
	struct syncplan *p = s->plan;
	struct ap_msg m = {.type = AP_FS_READ};
	struct err e = ERR_INIT;

	while (s->at < p->n && p->v[s->at].fate != PLAN_FETCH)
		s->at++;
	if (s->at == p->n) {
		if (p->files > 0)
			submit(s, PUBLISHING, work_publish);
		else
			finish(s);
		return;
	}
	if (plan_open(p, &p->v[s->at], &s->fd, &e) < 0) {
		fail(s, &e);
		return;
	}
	s->got = 0;
	m.u.fs_read.req = new_req(s);
	m.u.fs_read.credit = CREDIT;
	m.u.fs_read.len = p->v[s->at].size;
	m.u.fs_read.root = bytes_of(AP_ARTIFACTS);
	m.u.fs_read.path = bytes_of(p->v[s->at].path);
	send_now(s, &m);
}

static void on_staged(struct sync *s)
{
	s->phase = READING;
	if (s->run->sb->conn)
		read_next(s);
}

void sync_on_data(struct sandbox *sb, const struct ap_fs_data *m)
{
	struct sync *s = owner(sb, m->req);
	struct err e = ERR_INIT;

	if (!s || s->phase != READING)
		return;
	if (m->bytes.n == 0 || m->offset != s->got ||
	    m->bytes.n > s->plan->v[s->at].size - s->got) {
		agentlink_distrust(sb, "the agent sent bytes of a file that were not "
				       "asked for");
		return;
	}
	if (io_pwrite_all(s->fd, m->bytes.p, m->bytes.n, (off_t)s->got, &e) < 0) {
		err_wrap(&e, "write %.200s", s->plan->v[s->at].path);
		fail(s, &e);
		return;
	}
	s->got += m->bytes.n;
	give_credit(s, m->bytes.n);
}

static bool is_whole(const struct sync *s, const struct ap_fs_end *m)
{
	const struct plan_entry *entry = &s->plan->v[s->at];

	return !m->error && s->got == entry->size && m->size == entry->size &&
	       m->ctime_ns == entry->ctime_ns;
}

/* It changed since the listing: once more, as it is now, or not at all. */
static void read_again(struct sync *s, const struct ap_fs_end *m)
{
	struct syncplan *p = s->plan;
	struct plan_entry *entry = &p->v[s->at];
	uint64_t others = p->bytes - entry->size;
	bool fits = (!p->limits.max_bytes || m->size <= p->limits.max_bytes - others) &&
		    (!p->limits.max_file_bytes || m->size <= p->limits.max_file_bytes);
	char words[128], reason[200];

	close(s->fd);
	s->fd = -1;
	plan_remove(p, entry);
	if (!m->error && fits && ++entry->tries < TRIES) {
		entry->size = m->size;
		entry->ctime_ns = m->ctime_ns;
		entry->mtime_ns = m->mtime_ns;
		p->bytes = others + m->size;
		return;
	}
	if (m->error)
		snprintf(reason, sizeof(reason), "it could not be read (%s)",
			 strerror_r((int)(m->error % 4096), words, sizeof(words)));
	else
		snprintf(reason, sizeof(reason), "it %s while it was copied",
			 fits ? "kept changing" : "grew over a limit");
	plan_skip(p, entry, reason);
}

static void file_read(struct sync *s, const struct ap_fs_end *m)
{
	struct err e = ERR_INIT;

	if (is_whole(s, m)) {
		if (plan_close(&s->plan->v[s->at], s->fd, &e) < 0) {
			s->fd = -1;
			fail(s, &e);
			return;
		}
		s->fd = -1;
		s->copied_bytes += s->got;
		s->copied_files++;
		s->at++;
	} else {
		read_again(s, m);
	}
	read_next(s);
}

void sync_on_end(struct sandbox *sb, const struct ap_fs_end *m)
{
	struct sync *s = owner(sb, m->req);

	if (!s)
		return;
	s->req = 0;
	if (s->phase == LISTING)
		listed(s, m);
	else
		file_read(s, m);
}
