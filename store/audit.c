/* SPDX-License-Identifier: MIT */
#include "store/tx.h"

int store_audit(struct store *s, const struct store_audit_row *row, struct err *e)
{
	static const char sql[] =
		"INSERT INTO audit(at, tenant, actor, action, subject, detail)"
		" VALUES (?, ?, ?, ?, ?, ?)";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_int(row->at), db_text(row->tenant), db_text(row->actor),
		db_text(row->action), db_text(row->subject), db_text(row->detail));
	return tx_run(s, st, NULL, e);
}
