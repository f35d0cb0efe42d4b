/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/mem.h"
#include "store/arena.h"
#include "store/reading.h"

/* Lists in pages, and the words that complete what a user has begun to type. */

static int64_t created_at(struct store_reader *r, const char *tenant, const char *run_id,
			  struct err *e)
{
	static const char sql[] = "SELECT created_at FROM runs"
				  " WHERE run_id = ? AND tenant = ? AND removing = 0";
	AUTO_STMT *st = db_stmt(&r->db, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(run_id), db_text(tenant));
	int rc = db_step(&r->db, st, e);
	if (rc == 0)
		return err_set(e, ERR_NOT_FOUND, "no such run");
	return rc < 0 ? -1 : sqlite3_column_int64(st, 0);
}

int store_read_runs_after(struct store_reader *r, const char *tenant, const char *after,
			  size_t limit, struct store_runs *ret, struct err *e)
{
	static const char sql[] =
		"SELECT " ROWS_RUN " FROM runs WHERE removing = 0 AND tenant = ?1"
		" AND (?2 IS NULL OR (created_at, run_id) < (?3, ?2))"
		" ORDER BY created_at DESC, run_id DESC LIMIT ?4";
	AUTO_READING *reading = reading_begin(r);
	int64_t at = 0;

	if (reading_snapshot(r, e) < 0)
		return -1;
	if (after && (at = created_at(r, tenant, after, e)) < 0)
		return -1;
	AUTO_STMT *st = db_stmt(&r->db, sql, e);
	if (!st)
		return -1;
	DB_BIND(st, db_text(tenant), db_text(after), db_int(at), db_int((int64_t)limit));
	return rows_runs(&r->db, st, ret, e);
}

int store_read_sandboxes_after(struct store_reader *r, const char *tenant,
			       const char *after, size_t limit,
			       struct store_sandboxes *ret, struct err *e)
{
	static const char sql[] = "SELECT " ROWS_SANDBOX " FROM sandboxes"
				  " WHERE tenant = ? AND identifier > ?"
				  " ORDER BY identifier LIMIT ?";
	AUTO_READING *reading = reading_begin(r);
	AUTO_STMT *st = db_stmt(&r->db, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(tenant), db_text(after ? after : ""), db_int((int64_t)limit));
	return rows_sandboxes(&r->db, st, ret, e);
}

int store_read_sandbox_created(struct store_reader *r, const char *tenant,
			       const char *identifier, int64_t *ret, struct err *e)
{
	static const char sql[] = "SELECT created_at FROM sandboxes"
				  " WHERE tenant = ? AND identifier = ?";
	AUTO_READING *reading = reading_begin(r);
	AUTO_STMT *st = db_stmt(&r->db, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(tenant), db_text(identifier));
	int rc = db_step(&r->db, st, e);
	if (rc < 0)
		return -1;
	*ret = rc > 0 ? sqlite3_column_int64(st, 0) : 0;
	return 0;
}

/* A prefix is compared as text, so that it may hold % and _. */
static const char *const words_sql[] = {
	[STORE_WORD_IDENTIFIER] =
		"SELECT identifier FROM (SELECT identifier, max(created_at) AS at"
		" FROM runs WHERE tenant = ?1 AND removing = 0 GROUP BY identifier"
		" UNION ALL SELECT identifier, last_used_at FROM sandboxes"
		" WHERE tenant = ?1)"
		" WHERE substr(identifier, 1, length(?2)) = ?2"
		" GROUP BY identifier ORDER BY max(at) DESC LIMIT ?3",
	[STORE_WORD_RUN_ID] = "SELECT run_id FROM runs WHERE tenant = ?1 AND removing = 0"
			      " AND substr(run_id, 1, length(?2)) = ?2"
			      " ORDER BY created_at DESC LIMIT ?3",
};

int store_read_words(struct store_reader *r, const struct store_words_query *q,
		     struct store_words *ret, struct err *e)
{
	AUTO_READING *reading = reading_begin(r);
	AUTO_STORE_WORDS w = {.mem = arena_new(), .v = xcalloc(q->limit, sizeof(*w.v))};
	AUTO_STMT *st = db_stmt(&r->db, words_sql[q->what], e);
	int rc;

	if (!st)
		return -1;
	/* One more than asked for tells whether there are more. */
	DB_BIND(st, db_text(q->tenant), db_text(q->prefix),
		db_int((int64_t)q->limit + 1));
	while ((rc = db_step(&r->db, st, e)) > 0) {
		w.more = w.n == q->limit;
		if (!w.more)
			w.v[w.n++] = rows_text(w.mem, st, 0);
	}
	if (rc < 0)
		return -1;
	return rows_hand_over(&w, ret, sizeof w);
}

int store_read_subscriptions(struct store_reader *r, const char *session_id, size_t limit,
			     struct store_words *ret, struct err *e)
{
	static const char sql[] =
		"SELECT uri FROM subscriptions WHERE session_id = ? LIMIT ?";
	AUTO_READING *reading = reading_begin(r);
	AUTO_STORE_WORDS w = {.mem = arena_new(), .v = xcalloc(limit, sizeof(*w.v))};
	AUTO_STMT *st = db_stmt(&r->db, sql, e);
	int rc;

	if (!st)
		return -1;
	DB_BIND(st, db_text(session_id), db_int((int64_t)limit));
	while ((rc = db_step(&r->db, st, e)) > 0)
		w.v[w.n++] = rows_text(w.mem, st, 0);
	if (rc < 0)
		return -1;
	return rows_hand_over(&w, ret, sizeof w);
}

void store_words_release(struct store_words *w)
{
	free(w->v);
	arena_free(w->mem);
	*w = (struct store_words){0};
}
