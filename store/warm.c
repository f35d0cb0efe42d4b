/* SPDX-License-Identifier: MIT */
#include "store/rows.h"
#include "store/tx.h"

int store_warm_put(struct store *s, const struct store_warm *row, struct err *e)
{
	static const char sql[] = "REPLACE INTO warm_sandboxes(" ROWS_WARM ")"
				  " VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(row->name), db_text(row->backend), db_text(row->container_id),
		db_text(row->image), db_text(row->policy_fingerprint),
		db_text(row->made_with), db_text(row->host_boot),
		db_int(row->created_at));
	return tx_run(s, st, NULL, e);
}

int store_warm_remove(struct store *s, const char *name, struct err *e)
{
	static const char sql[] = "DELETE FROM warm_sandboxes WHERE name = ?";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(name));
	return tx_run(s, st, NULL, e);
}

int store_warm_all(struct store *s, struct store_warms *ret, struct err *e)
{
	static const char sql[] = "SELECT " ROWS_WARM " FROM warm_sandboxes"
				  " ORDER BY created_at";
	AUTO_STMT *st = tx_read(s, sql, e);

	return st ? tx_check(s, rows_warms(&s->db, st, ret, e), e) : -1;
}
