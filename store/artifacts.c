/* SPDX-License-Identifier: MIT */
#include "store/arena.h"
#include "store/rows.h"
#include "store/tx.h"

static int insert(struct store *s, const char *run_id, const struct store_artifact *a,
		  struct err *e)
{
	static const char sql[] =
		"REPLACE INTO artifacts(run_id, path, size, mtime_ns, ctime_ns, in_base,"
		" skipped_reason) VALUES (?, ?, ?, ?, nullif(?, 0), ?, ?)";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(run_id), db_text(a->path), db_int(a->size),
		db_int(a->mtime_ns), db_int(a->ctime_ns), db_int((int64_t)a->in_base),
		db_text(a->skipped_reason));
	return tx_run(s, st, NULL, e);
}

static int count(struct store *s, const char *run_id, struct err *e)
{
	static const char sql[] =
		"UPDATE runs SET artifact_count = (SELECT count(*) FROM artifacts a"
		" WHERE a.run_id = ?1 AND skipped_reason IS NULL) WHERE run_id = ?1";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(run_id));
	return tx_run(s, st, NULL, e);
}

static int insert_all(struct store *s, const char *run_id, const struct store_artifact *v,
		      size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (insert(s, run_id, &v[i], e) < 0)
			return -1;
	return count(s, run_id, e);
}

int store_artifacts_add(struct store *s, const char *run_id,
			const struct store_artifact *v, size_t n, struct err *e)
{
	if (tx_mark(s, e) < 0)
		return -1;
	return tx_mark_end(s, insert_all(s, run_id, v, n, e), e);
}

static int copy(struct store *s, const char *run_id, const struct store_artifacts_diff *d,
		struct err *e)
{
	static const char sql[] =
		"REPLACE INTO artifacts(run_id, path, size, mtime_ns, ctime_ns, in_base)"
		" SELECT ?1, path, size, mtime_ns, ctime_ns,"
		" CASE WHEN ?3 THEN 1 WHEN ?4 THEN in_base ELSE 0 END"
		" FROM artifacts WHERE run_id = ?2 AND skipped_reason IS NULL";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(run_id), db_text(d->from), db_int(d->is_base),
		db_int(d->has_base));
	return tx_run(s, st, NULL, e);
}

static int delete_one(struct store *s, const char *run_id, const char *path,
		      struct err *e)
{
	static const char sql[] = "DELETE FROM artifacts WHERE run_id = ? AND path = ?";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(run_id), db_text(path));
	return tx_run(s, st, NULL, e);
}

static int insert_diff(struct store *s, const char *run_id,
		       const struct store_artifacts_diff *d, struct err *e)
{
	if (copy(s, run_id, d, e) < 0)
		return -1;
	for (size_t i = 0; i < d->ngone; i++)
		if (delete_one(s, run_id, d->gone[i], e) < 0)
			return -1;
	return insert_all(s, run_id, d->v, d->n, e);
}

int store_artifacts_add_diff(struct store *s, const char *run_id,
			     const struct store_artifacts_diff *d, struct err *e)
{
	if (tx_mark(s, e) < 0)
		return -1;
	return tx_mark_end(s, insert_diff(s, run_id, d, e), e);
}

static int previous(struct store *s, const char *tenant, const char *identifier,
		    struct store_run *ret, struct err *e)
{
	AUTO_STORE_RUN run = {.mem = arena_new()};

	if (rows_latest_artifacts(&s->db, tenant, identifier, run.mem, &run.run_id, e) <
		    0 ||
	    rows_run_artifacts(&s->db, &run, e) < 0)
		return -1;
	return rows_hand_over(&run, ret, sizeof run);
}

int store_artifacts_previous(struct store *s, const char *tenant, const char *identifier,
			     struct store_run *ret, struct err *e)
{
	return tx_check(s, previous(s, tenant, identifier, ret, e), e);
}
