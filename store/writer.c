/* SPDX-License-Identifier: MIT */
#include "store/writer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"
#include "store/migrate.h"
#include "store/tx.h"

enum { BUSY_MS = 500 };

static int on_wal(void *arg, sqlite3 *c, const char *schema, int frames)
{
	struct store *s = arg;

	(void)c;
	(void)schema;
	s->wal_frames = frames;
	return SQLITE_OK;
}

static int set_up(struct store *s, const struct store_opts *o, struct err *e)
{
	bool full = o->synchronous && !strcasecmp(o->synchronous, "FULL");

	if (db_check_version(&s->db, store_schema_version(), e) < 0 ||
	    db_exec(&s->db,
		    full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL",
		    e) < 0 ||
	    db_exec(&s->db, "PRAGMA journal_size_limit=4194304", e) < 0)
		return -1;
	/* Also switches SQLite's own automatic checkpoints off. */
	sqlite3_wal_hook(s->db.c, on_wal, s);
	return 0;
}

int store_open(const char *path, const struct store_opts *o, struct store **ret,
	       struct err *e)
{
	AUTO_STORE *s = xcalloc(1, sizeof *s);
	int64_t busy = o->busy_ms > 0 ? o->busy_ms : BUSY_MS;

	if (db_open(path, DB_WRITE, (int)busy, &s->db, e) < 0 || set_up(s, o, e) < 0 ||
	    checkpoint_start(path, &s->checkpoint, e) < 0)
		return err_wrap(e, "%s", path);
	*ret = MOVE(s);
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	checkpoint_stop(s->checkpoint);
	cursors_clear(&s->cursors);
	db_close(&s->db);
	free(s);
}

static int commit(struct store *s, struct err *e)
{
	static const char sql[] = "COMMIT";
	AUTO_STMT *st = tx_read(s, sql, e);

	return st ? tx_run(s, st, NULL, e) : -1;
}

static int fail(struct store *s, struct err *e)
{
	atomic_fetch_add_explicit(&s->failed_commits, 1, memory_order_relaxed);
	*e = s->lost_why;
	s->lost = false;
	return err_wrap(e, "what was written since the last commit is lost");
}

int store_commit(struct store *s, struct store_commit_info *ret, struct err *e)
{
	int64_t began = clock_mono_us();

	assert(db_is_idle(&s->db));
	if (s->lost)
		return fail(s, e);
	*ret = (struct store_commit_info){0};
	if (!s->open)
		return 0;
	if (commit(s, e) < 0)
		return fail(s, e);
	s->open = false;
	cursors_sweep(&s->cursors);
	checkpoint_committed(s->checkpoint, s->wal_frames);
	atomic_fetch_add_explicit(&s->commits, 1, memory_order_relaxed);
	*ret = (struct store_commit_info){
		.newest_event_id = s->newest_event,
		.duration_us = clock_mono_us() - began,
		.wrote = true,
	};
	s->newest_event = 0;
	return 0;
}

void store_stats(struct store *s, struct store_stats *ret)
{
	struct checkpoint_stats c;

	checkpoint_stats(s->checkpoint, &c);
	*ret = (struct store_stats){
		.commits = atomic_load_explicit(&s->commits, memory_order_relaxed),
		.failed_commits =
			atomic_load_explicit(&s->failed_commits, memory_order_relaxed),
		.wal_bytes = c.wal_bytes,
		.checkpoints = c.done,
		.blocked_checkpoints = c.blocked,
	};
}
