/* SPDX-License-Identifier: MIT */
#include "store/rows.h"
#include "store/tx.h"

static int data_version(struct store *s, int64_t *ret, struct err *e)
{
	static const char sql[] = "PRAGMA data_version";
	AUTO_STMT *st = tx_read(s, sql, e);

	if (!st || tx_step(s, st, e) < 0)
		return -1;
	*ret = sqlite3_column_int64(st, 0);
	return 0;
}

static int cancel_requests(struct store *s, struct store_runs *ret, struct err *e)
{
	static const char sql[] = "SELECT " ROWS_RUN " FROM runs"
				  " WHERE ended_at IS NULL"
				  " AND cancel_requested = 1 ORDER BY created_at";
	AUTO_STMT *st = tx_read(s, sql, e);

	return st ? tx_check(s, rows_runs(&s->db, st, ret, e), e) : -1;
}

int store_changes_poll(struct store *s, bool *ret_changed, struct store_changes *ret,
		       struct err *e)
{
	struct store_changes c = {0};
	int64_t version = 0;

	if (data_version(s, &version, e) < 0)
		return -1;
	*ret_changed = version != s->data_version;
	if (!*ret_changed)
		return 0;
	if (cancel_requests(s, &c.cancel, e) < 0 ||
	    store_sandboxes_all(s, &c.sandboxes, e) < 0) {
		store_changes_release(&c);
		return -1;
	}
	s->data_version = version;
	*ret = c;
	return 0;
}

void store_changes_release(struct store_changes *c)
{
	store_runs_release(&c->cancel);
	store_sandboxes_release(&c->sandboxes);
}
