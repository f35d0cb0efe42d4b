/* SPDX-License-Identifier: MIT */
#include "store/rows.h"
#include "store/tx.h"

enum {
	DOOM_PER_CALL = 100,
	LIST_PER_CALL = 100,
	BUDGET_ROWS = 1000,
	/* Free pages are used again by new rows: keep some, give the rest back. */
	KEEP_FREE_PAGES = 1024,
	VACUUM_PAGES = 256,
};

static int one_int(struct store *s, const char *sql, int64_t *ret, struct err *e)
{
	AUTO_STMT *st = tx_read(s, sql, e);

	if (!st || tx_step(s, st, e) < 0)
		return -1;
	*ret = sqlite3_column_int64(st, 0);
	return 0;
}

/* `max` of the oldest ended runs that ended before `cutoff`. */
static int doom(struct store *s, int64_t cutoff, int64_t max, int64_t *doomed,
		struct err *e)
{
	static const char sql[] =
		"UPDATE runs SET removing = 1 WHERE run_id IN (SELECT run_id FROM runs"
		" WHERE created_at < ?1 AND ended_at < ?1 AND removing = 0"
		" ORDER BY created_at LIMIT ?2)";
	int64_t n = 0;

	if (max <= 0)
		return 0;
	AUTO_STMT *st = tx_write(s, sql, e);
	if (!st)
		return -1;
	DB_BIND(st, db_int(cutoff), db_int(max < DOOM_PER_CALL ? max : DOOM_PER_CALL));
	if (tx_run(s, st, &n, e) < 0)
		return -1;
	*doomed += n;
	return 0;
}

static int doom_by_rules(struct store *s, const struct store_sweep_opts *o,
			 int64_t *doomed, struct err *e)
{
	static const char kept[] = "SELECT (SELECT count(*) FROM runs)"
				   " - (SELECT count(*) FROM runs WHERE removing = 1)";
	int64_t n = 0;

	if (o->max_age_ms > 0 &&
	    doom(s, o->now - o->max_age_ms, DOOM_PER_CALL, doomed, e) < 0)
		return -1;
	if (o->max_runs <= 0)
		return 0;
	if (one_int(s, kept, &n, e) < 0)
		return -1;
	return doom(s, INT64_MAX, n - o->max_runs, doomed, e);
}

static int delete_log(struct store *s, const char *run_id, int64_t max, int64_t *ret,
		      struct err *e)
{
	static const char sql[] =
		"DELETE FROM events WHERE event_id IN"
		" (SELECT event_id FROM events WHERE run_id = ? LIMIT ?)";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(run_id), db_int(max));
	return tx_run(s, st, ret, e);
}

static int removing(struct store *s, struct store_runs *ret, struct err *e)
{
	static const char sql[] = "SELECT " ROWS_RUN " FROM runs WHERE removing = 1"
				  " AND only_files = 0 ORDER BY run_id LIMIT ?";
	AUTO_STMT *st = tx_read(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_int(LIST_PER_CALL));
	return tx_check(s, rows_runs(&s->db, st, ret, e), e);
}

/* Empties the logs of the doomed, in order; *ret_empty: so many of them are. */
static int empty_logs(struct store *s, const struct store_runs *l, int64_t budget,
		      size_t *ret_empty, struct err *e)
{
	size_t i = 0;

	for (; i < l->n && budget > 0; i++) {
		int64_t n = 0;

		if (delete_log(s, l->v[i].run_id, budget, &n, e) < 0)
			return -1;
		budget -= n;
		if (budget <= 0)
			break; /* perhaps it has more */
	}
	*ret_empty = i;
	return 0;
}

static int shrink(struct store *s, bool *more, struct err *e)
{
	static const char free_sql[] = "PRAGMA freelist_count";
	static const char all_sql[] = "PRAGMA page_count";
	static const char vacuum_sql[] = "PRAGMA incremental_vacuum(256)";
	int64_t nfree = 0, all = 0;

	_Static_assert(VACUUM_PAGES == 256, "as in vacuum_sql");
	if (one_int(s, free_sql, &nfree, e) < 0 || one_int(s, all_sql, &all, e) < 0)
		return -1;
	int64_t keep = all / 8 > KEEP_FREE_PAGES ? all / 8 : KEEP_FREE_PAGES;
	if (nfree <= keep)
		return 0;
	*more = *more || nfree - VACUUM_PAGES > keep;
	AUTO_STMT *st = tx_write(s, vacuum_sql, e);
	return st ? tx_run(s, st, NULL, e) : -1;
}

static int bound_audit(struct store *s, struct err *e)
{
	static const char newest_sql[] = "SELECT max(audit_id) FROM audit";
	static const char sql[] =
		"DELETE FROM audit WHERE audit_id IN (SELECT audit_id FROM audit"
		" WHERE audit_id <= (SELECT max(audit_id) FROM audit) - 100000 LIMIT "
		"1000)";
	int64_t newest = 0;

	if (one_int(s, newest_sql, &newest, e) < 0)
		return -1;
	if (newest == s->audit_swept)
		return 0;
	AUTO_STMT *st = tx_write(s, sql, e);
	s->audit_swept = newest;
	return st ? tx_run(s, st, NULL, e) : -1;
}

int store_sweep(struct store *s, const struct store_sweep_opts *o, struct store_runs *ret,
		bool *ret_more, struct err *e)
{
	AUTO_STORE_RUNS l = {0};
	int64_t doomed = 0;
	size_t empty = 0;
	bool more = false;

	if (doom_by_rules(s, o, &doomed, e) < 0 || removing(s, &l, e) < 0 ||
	    empty_logs(s, &l, o->budget_rows > 0 ? o->budget_rows : BUDGET_ROWS, &empty,
		       e) < 0)
		return -1;
	more = empty < l.n || doomed >= DOOM_PER_CALL || l.n == LIST_PER_CALL;
	if (bound_audit(s, e) < 0 || shrink(s, &more, e) < 0)
		return -1;
	l.n = empty; /* the others have no memory of their own to lose */
	*ret_more = more;
	return rows_hand_over(&l, ret, sizeof l);
}

static int one_run(struct store *s, const char *sql, const char *run_id, struct err *e)
{
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(run_id));
	return tx_run(s, st, NULL, e);
}

/* The base of other runs: nothing stays but the rows of its files. */
static int keep_files(struct store *s, const char *run_id, struct err *e)
{
	static const char mark[] =
		"UPDATE runs SET only_files = 1 WHERE run_id = ?1 AND removing = 1"
		" AND EXISTS (SELECT 1 FROM runs h WHERE h.artifacts_base = ?1)";
	static const char commands[] =
		"DELETE FROM commands WHERE run_id IN"
		" (SELECT run_id FROM runs WHERE run_id = ? AND only_files = 1)";

	return one_run(s, mark, run_id, e) < 0 ? -1 : one_run(s, commands, run_id, e);
}

int store_run_remove(struct store *s, const char *run_id, struct err *e)
{
	static const char sql[] =
		"DELETE FROM runs WHERE run_id = ? AND removing = 1 AND only_files = 0";
	static const char bases[] =
		"DELETE FROM runs WHERE removing = 1 AND only_files = 1 AND NOT EXISTS"
		" (SELECT 1 FROM runs h WHERE h.artifacts_base = runs.run_id)";

	if (keep_files(s, run_id, e) < 0 || one_run(s, sql, run_id, e) < 0)
		return -1;
	AUTO_STMT *st = tx_write(s, bases, e);
	return st ? tx_run(s, st, NULL, e) : -1;
}
