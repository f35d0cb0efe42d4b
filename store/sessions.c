/* SPDX-License-Identifier: MIT */
#include "store/tx.h"

int store_session_open(struct store *s, const struct store_session *row, struct err *e)
{
	static const char sql[] =
		"INSERT INTO sessions(session_id, tenant, protocol_version,"
		" client_name, client_version, created_at, last_seen_at, client_can)"
		" VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
		" ON CONFLICT (session_id) DO UPDATE SET"
		" protocol_version = excluded.protocol_version,"
		" client_name = excluded.client_name,"
		" client_version = excluded.client_version,"
		" client_can = excluded.client_can"
		" WHERE tenant = excluded.tenant";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(row->id), db_text(row->tenant),
		db_text(row->protocol_version), db_text(row->client_name),
		db_text(row->client_version), db_int(row->created_at),
		db_int(row->last_seen_at), db_text(row->client_can));
	return tx_run(s, st, NULL, e);
}

int store_session_close(struct store *s, const char *tenant, const char *id,
			bool *ret_closed, struct err *e)
{
	static const char sql[] =
		"DELETE FROM sessions WHERE session_id = ? AND tenant = ?";
	AUTO_STMT *st = tx_write(s, sql, e);
	int64_t n = 0;

	if (!st)
		return -1;
	DB_BIND(st, db_text(id), db_text(tenant));
	if (tx_run(s, st, &n, e) < 0)
		return -1;
	*ret_closed = n > 0;
	return 0;
}

static int touch(struct store *s, const char *id, int64_t at, struct err *e)
{
	static const char sql[] = "UPDATE sessions SET last_seen_at = ?2"
				  " WHERE session_id = ?1 AND last_seen_at < ?2";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(id), db_int(at));
	return tx_run(s, st, NULL, e);
}

int store_sessions_touch(struct store *s, const char *const *ids, size_t n, int64_t at,
			 struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (touch(s, ids[i], at, e) < 0)
			return -1;
	return 0;
}

int store_sessions_expire(struct store *s, int64_t seen_before, int64_t most,
			  int64_t *ret_count, struct err *e)
{
	static const char sql[] =
		"DELETE FROM sessions WHERE last_seen_at < ?1 OR session_id IN"
		" (SELECT session_id FROM sessions ORDER BY last_seen_at DESC, "
		"session_id DESC"
		" LIMIT -1 OFFSET ?2)";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_int(seen_before), db_int(most));
	return tx_run(s, st, ret_count, e);
}

int store_session_log_level(struct store *s, const char *tenant, const char *id,
			    const char *level, struct err *e)
{
	static const char sql[] = "UPDATE sessions SET log_level = ?3 WHERE session_id = "
				  "?1 AND tenant = ?2";
	AUTO_STMT *st = tx_write(s, sql, e);
	int64_t n = 0;

	if (!st)
		return -1;
	DB_BIND(st, db_text(id), db_text(tenant), db_text(level));
	if (tx_run(s, st, &n, e) < 0)
		return -1;
	return n > 0 ? 0 : err_set(e, ERR_NOT_FOUND, "no such session");
}

/* The insert itself counts, so that the bound holds whoever else writes. */
int store_subscribe(struct store *s, const struct store_subscription *v, int64_t max,
		    struct err *e)
{
	static const char sql[] =
		"INSERT INTO subscriptions SELECT session_id, ?3 FROM sessions"
		" WHERE session_id = ?1 AND tenant = ?2 AND (SELECT count(*) < ?4"
		" FROM subscriptions WHERE session_id = ?1 AND uri <> ?3)"
		" ON CONFLICT DO UPDATE SET uri = excluded.uri";
	AUTO_STMT *st = tx_write(s, sql, e);
	int64_t n = 0;

	if (!st)
		return -1;
	DB_BIND(st, db_text(v->session_id), db_text(v->tenant), db_text(v->uri),
		db_int(max));
	if (tx_run(s, st, &n, e) < 0)
		return -1;
	return n > 0 ? 0
		     : err_set(e, ERR_LIMIT, "a session has at most %lld subscriptions",
			       (long long)max);
}

int store_unsubscribe(struct store *s, const struct store_subscription *v, struct err *e)
{
	static const char sql[] =
		"DELETE FROM subscriptions WHERE session_id IN (SELECT session_id"
		" FROM sessions WHERE session_id = ?1 AND tenant = ?2) AND uri = ?3";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(v->session_id), db_text(v->tenant), db_text(v->uri));
	return tx_run(s, st, NULL, e);
}
