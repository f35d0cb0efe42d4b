/* SPDX-License-Identifier: MIT */
#include "store/reader.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/mem.h"
#include "store/arena.h"
#include "store/migrate.h"
#include "store/reading.h"
#include "store/words.h"

enum { BUSY_MS = 1000 };

int store_reader_open(const char *path, struct store_reader **ret, struct err *e)
{
	AUTO_STORE_READER *r = xcalloc(1, sizeof *r);

	if (db_open(path, DB_READ, BUSY_MS, &r->db, e) < 0 ||
	    db_check_version(&r->db, store_schema_version(), e) < 0)
		return err_wrap(e, "%s", path);
	*ret = MOVE(r);
	return 0;
}

void store_reader_close(struct store_reader *r)
{
	if (!r)
		return;
	db_close(&r->db);
	free(r);
}

int store_read_session(struct store_reader *r, const char *tenant, const char *id,
		       struct store_session *ret, struct err *e)
{
	static const char sql[] = "SELECT session_id, tenant, protocol_version, "
				  "client_name, client_version,"
				  " created_at, last_seen_at, client_can, log_level"
				  " FROM sessions"
				  " WHERE session_id = ? AND tenant = ?";
	AUTO_READING *reading = reading_begin(r);
	AUTO_STMT *st = db_stmt(&r->db, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(id), db_text(tenant));
	int rc = db_step(&r->db, st, e);
	if (rc == 0)
		return err_set(e, ERR_NOT_FOUND, "no such session");
	if (rc < 0)
		return -1;
	struct store_arena *a = arena_new();
	*ret = (struct store_session){
		.id = rows_text(a, st, 0),
		.tenant = rows_text(a, st, 1),
		.protocol_version = rows_text(a, st, 2),
		.client_name = rows_text(a, st, 3),
		.client_version = rows_text(a, st, 4),
		.created_at = sqlite3_column_int64(st, 5),
		.last_seen_at = sqlite3_column_int64(st, 6),
		.client_can = rows_text(a, st, 7),
		.log_level = rows_text(a, st, 8),
		.mem = a,
	};
	return 0;
}

int store_read_meta(struct store_reader *r, const char *key, char ret[STORE_META_SIZE],
		    struct err *e)
{
	static const char sql[] = "SELECT value FROM meta WHERE key = ?";
	AUTO_READING *reading = reading_begin(r);
	AUTO_STMT *st = db_stmt(&r->db, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(key));
	int rc = db_step(&r->db, st, e);
	if (rc < 0)
		return -1;
	if (rc == 0 || sqlite3_column_bytes(st, 0) >= STORE_META_SIZE)
		return err_set(e, ERR_NOT_FOUND, "no such value");
	snprintf(ret, STORE_META_SIZE, "%s", (const char *)sqlite3_column_text(st, 0));
	return 0;
}

int store_read_sandboxes(struct store_reader *r, const char *tenant,
			 struct store_sandboxes *ret, struct err *e)
{
	static const char sql[] = "SELECT " ROWS_SANDBOX " FROM sandboxes"
				  " WHERE ?1 IS NULL OR tenant = ?1"
				  " ORDER BY tenant, identifier";
	AUTO_READING *reading = reading_begin(r);
	AUTO_STMT *st = db_stmt(&r->db, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(tenant));
	return rows_sandboxes(&r->db, st, ret, e);
}

/* Sums by word; words this program does not know are left out. */
static int count_by(struct store_reader *r, const char *sql, const char *const *words,
		    int nwords, int64_t *counts, struct err *e)
{
	AUTO_STMT *st = db_stmt(&r->db, sql, e);
	int rc;

	if (!st)
		return -1;
	while ((rc = db_step(&r->db, st, e)) > 0) {
		int i = words_find(words, nwords,
				   (const char *)sqlite3_column_text(st, 0));
		if (i >= 0)
			counts[i] = sqlite3_column_int64(st, 1);
	}
	return rc;
}

static int read_int(struct store_reader *r, const char *sql, int64_t *ret, struct err *e)
{
	AUTO_STMT *st = db_stmt(&r->db, sql, e);

	if (!st || db_step(&r->db, st, e) < 0)
		return -1;
	*ret = sqlite3_column_int64(st, 0);
	return 0;
}

int store_read_counts(struct store_reader *r, struct store_counts *ret, struct err *e)
{
	static const char sandboxes[] =
		"SELECT state, count(*) FROM sandboxes GROUP BY 1";
	static const char runs[] = "SELECT state, count(*) FROM runs GROUP BY 1";
	static const char sessions[] = "SELECT count(*) FROM sessions";
	static const char warm[] = "SELECT count(*) FROM warm_sandboxes";
	AUTO_READING *reading = reading_begin(r);
	struct store_counts c = {0};

	if (count_by(r, sandboxes, words_sandbox_state, STORE_SANDBOX_STATE_COUNT,
		     c.sandboxes, e) < 0 ||
	    count_by(r, runs, words_run_state, STORE_RUN_STATE_COUNT, c.runs, e) < 0 ||
	    read_int(r, sessions, &c.sessions, e) < 0 ||
	    read_int(r, warm, &c.warm, e) < 0)
		return -1;
	*ret = c;
	return 0;
}

int store_read_data_version(struct store_reader *r, int64_t *ret, struct err *e)
{
	static const char sql[] = "PRAGMA data_version";
	AUTO_READING *reading = reading_begin(r);

	return read_int(r, sql, ret, e);
}

int store_read_newest_event_id(struct store_reader *r, int64_t *ret, struct err *e)
{
	/* Not max(event_id): retention may have removed the newest. */
	static const char sql[] = "SELECT seq FROM sqlite_sequence WHERE name = 'events'";
	AUTO_READING *reading = reading_begin(r);

	return read_int(r, sql, ret, e);
}
