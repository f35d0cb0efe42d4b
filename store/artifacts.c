/* SPDX-License-Identifier: MIT */
#include "store/arena.h"
#include "store/rows.h"
#include "store/tx.h"

static int insert(struct store *s, const char *run_id, const struct store_artifact *a,
		  struct err *e)
{
	static const char sql[] =
		"REPLACE INTO artifacts(run_id, path, size, mtime_ns, ctime_ns,"
		" hides_base, skipped_reason) VALUES (?, ?, ?, ?, nullif(?, 0), ?, ?)";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(run_id), db_text(a->path), db_int(a->size),
		db_int(a->mtime_ns), db_int(a->ctime_ns),
		db_int(a->in_base == STORE_BASE_OTHER), db_text(a->skipped_reason));
	return tx_run(s, st, NULL, e);
}

/* A base is whole: its count is that of its rows. */
static int count(struct store *s, const char *run_id, const char *base, struct err *e)
{
	static const char sql[] =
		"UPDATE runs SET artifacts_base = ?2, artifact_count ="
		" (SELECT count(*) FROM artifacts a WHERE a.run_id = ?1"
		" AND skipped_reason IS NULL AND hides_base = 0)"
		" + coalesce((SELECT artifact_count FROM runs WHERE run_id = ?2), 0)"
		" WHERE run_id = ?1";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(run_id), db_text(base));
	return tx_run(s, st, NULL, e);
}

static int insert_all(struct store *s, const char *run_id, const struct store_artifact *v,
		      size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (insert(s, run_id, &v[i], e) < 0)
			return -1;
	return 0;
}

int store_artifacts_add(struct store *s, const char *run_id, const char *base,
			const struct store_artifact *v, size_t n, struct err *e)
{
	if (tx_mark(s, e) < 0)
		return -1;
	int rc = insert_all(s, run_id, v, n, e);
	return tx_mark_end(s, rc < 0 ? rc : count(s, run_id, base, e), e);
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
