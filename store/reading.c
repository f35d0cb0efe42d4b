/* SPDX-License-Identifier: MIT */
#include "store/reading.h"

static int run(struct store_reader *r, const char *sql, struct err *e)
{
	AUTO_STMT *st = db_stmt(&r->db, sql, e);

	return st ? db_step(&r->db, st, e) : -1;
}

int reading_snapshot(struct store_reader *r, struct err *e)
{
	static const char sql[] = "BEGIN";

	if (run(r, sql, e) < 0)
		return -1;
	r->snapshot = true;
	return 0;
}

void reading_end(struct store_reader **rp)
{
	static const char sql[] = "ROLLBACK"; /* it only read: nothing to keep */
	struct store_reader *r = *rp;
	struct err e = ERR_INIT;

	/* A failed read may have ended the transaction by itself. */
	if (r->snapshot && !sqlite3_get_autocommit(r->db.c))
		run(r, sql, &e);
	r->snapshot = false;
	assert(db_is_idle(&r->db) && sqlite3_get_autocommit(r->db.c));
}
