/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include "store/rows.h"
#include "store/tx.h"
#include "store/words.h"

int store_sandbox_put(struct store *s, const struct store_sandbox *row, struct err *e)
{
	static const char sql[] =
		"REPLACE INTO sandboxes(tenant, identifier, name, backend, container_id,"
		" image, policy_fingerprint, state, created_at, expires_at, last_used_at,"
		" ttl_s, error, agent_boot)"
		" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(row->tenant), db_text(row->identifier), db_text(row->name),
		db_text(row->backend), db_text(row->container_id), db_text(row->image),
		db_text(row->policy_fingerprint),
		db_text(words_sandbox_state[row->state]), db_int(row->created_at),
		db_int(row->expires_at), db_int_or(row->last_used_at, 0),
		db_int(row->ttl_s), db_text(row->error), db_text(row->agent_boot));
	return tx_run(s, st, NULL, e);
}

static int not_found(const char *identifier, struct err *e)
{
	return err_set(e, ERR_NOT_FOUND, "no sandbox for identifier %.80s", identifier);
}

int store_sandbox_set_state(struct store *s, const char *tenant, const char *identifier,
			    enum store_sandbox_state state, const char *error,
			    struct err *e)
{
	static const char sql[] = "UPDATE sandboxes SET state = ?, error = ?"
				  " WHERE tenant = ? AND identifier = ?";
	AUTO_STMT *st = tx_write(s, sql, e);
	int64_t n = 0;

	if (!st)
		return -1;
	DB_BIND(st, db_text(words_sandbox_state[state]), db_text(error), db_text(tenant),
		db_text(identifier));
	if (tx_run(s, st, &n, e) < 0)
		return -1;
	return n > 0 ? 0 : not_found(identifier, e);
}

int store_sandbox_extend(struct store *s, const struct store_lease *l,
			 int64_t *ret_expires_at, struct err *e)
{
	static const char sql[] =
		"UPDATE sandboxes SET expires_at = max(expires_at, ?), last_used_at = ?"
		" WHERE tenant = ? AND identifier = ? RETURNING expires_at";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_int(l->expires_at), db_int(l->used_at), db_text(l->tenant),
		db_text(l->identifier));
	int rc = tx_step(s, st, e);
	if (rc == 0)
		return not_found(l->identifier, e);
	if (rc < 0)
		return -1;
	*ret_expires_at = sqlite3_column_int64(st, 0);
	return tx_run(s, st, NULL, e);
}

int store_sandbox_remove(struct store *s, const char *tenant, const char *identifier,
			 struct err *e)
{
	static const char sql[] =
		"DELETE FROM sandboxes WHERE tenant = ? AND identifier = ?";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(tenant), db_text(identifier));
	return tx_run(s, st, NULL, e);
}

int store_sandboxes_all(struct store *s, struct store_sandboxes *ret, struct err *e)
{
	static const char sql[] = "SELECT " ROWS_SANDBOX " FROM sandboxes"
				  " ORDER BY tenant, identifier";
	AUTO_STMT *st = tx_read(s, sql, e);

	return st ? tx_check(s, rows_sandboxes(&s->db, st, ret, e), e) : -1;
}

int store_sandboxes_due(struct store *s, int64_t at, struct store_sandboxes *ret,
			struct err *e)
{
	static const char sql[] = "SELECT " ROWS_SANDBOX " FROM sandboxes"
				  " WHERE expires_at <= ? ORDER BY expires_at";
	AUTO_STMT *st = tx_read(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_int(at));
	return tx_check(s, rows_sandboxes(&s->db, st, ret, e), e);
}

int store_sandbox_name(struct store *s, const char *tenant, const char *identifier,
		       char **ret, int64_t *ret_created_at, struct err *e)
{
	static const char sql[] = "SELECT name, created_at FROM sandboxes"
				  " WHERE tenant = ? AND identifier = ?";
	AUTO_STMT *st = tx_read(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(tenant), db_text(identifier));
	int rc = tx_step(s, st, e);
	if (rc < 0)
		return -1;
	*ret = rc > 0 ? xstrdup((const char *)sqlite3_column_text(st, 0)) : NULL;
	*ret_created_at = rc > 0 ? sqlite3_column_int64(st, 1) : 0;
	return 0;
}
