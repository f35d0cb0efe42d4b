/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/mem.h"
#include "store/arena.h"
#include "store/reading.h"
#include "store/words.h"

static int not_found(struct err *e)
{
	return err_set(e, ERR_NOT_FOUND, "no such run");
}

/* The run's row as a list of one or none. */
static int read_row(struct store_reader *r, const char *tenant, const char *run_id,
		    struct store_runs *ret, struct err *e)
{
	static const char sql[] = "SELECT " ROWS_RUN " FROM runs"
				  " WHERE run_id = ? AND tenant = ? AND removing = 0";
	AUTO_STMT *st = db_stmt(&r->db, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(run_id), db_text(tenant));
	return rows_runs(&r->db, st, ret, e);
}

/* A command's row gets its sizes when it ends; before, its events know them. */
static int read_sizes(struct store_reader *r, struct store_run *run, struct err *e)
{
	for (size_t i = 0; i < run->ncommands; i++) {
		struct store_command *c = &run->commands[i];

		for (int s = 0; s < STORE_STREAM_COUNT; s++) {
			struct rows_stream row = {0};

			if (c->status != STORE_COMMAND_RUNNING)
				continue;
			if (rows_stream(&r->db, run->run_id, c->index,
					(enum store_stream)s, &row, e) < 0)
				return -1;
			c->bytes[s] = c->stored[s] = row.stored;
			c->truncated[s] = row.truncated;
		}
	}
	return 0;
}

int store_read_run(struct store_reader *r, const char *tenant, const char *run_id,
		   struct store_run *ret, struct err *e)
{
	AUTO_READING *reading = reading_begin(r);
	AUTO_STORE_RUNS l = {0};

	if (reading_snapshot(r, e) < 0 || read_row(r, tenant, run_id, &l, e) < 0)
		return -1;
	if (l.n == 0)
		return not_found(e);
	l.v[0].mem = l.mem;
	if (rows_run_commands(&r->db, &l.v[0], e) < 0 || read_sizes(r, &l.v[0], e) < 0 ||
	    rows_run_artifacts(&r->db, &l.v[0], e) < 0)
		return -1;
	*ret = l.v[0];
	free(l.v);
	l = (struct store_runs){0};
	return 0;
}

int store_read_run_state(struct store_reader *r, const char *tenant, const char *run_id,
			 enum store_run_state *ret, struct err *e)
{
	static const char sql[] = "SELECT state FROM runs"
				  " WHERE run_id = ? AND tenant = ? AND removing = 0";
	AUTO_READING *reading = reading_begin(r);
	AUTO_STMT *st = db_stmt(&r->db, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(run_id), db_text(tenant));
	int rc = db_step(&r->db, st, e);
	if (rc <= 0)
		return rc < 0 ? -1 : not_found(e);
	int state = words_find(words_run_state, STORE_RUN_STATE_COUNT,
			       (const char *)sqlite3_column_text(st, 0));
	if (state < 0)
		return err_set(e, ERR_STORE, "a run has a state nobody knows");
	*ret = (enum store_run_state)state;
	return 0;
}

int store_read_recent_runs(struct store_reader *r, const char *tenant, size_t limit,
			   struct store_runs *ret, struct err *e)
{
	static const char sql[] = "SELECT " ROWS_RUN " FROM runs"
				  " WHERE removing = 0 AND (?1 IS NULL OR tenant = ?1)"
				  " ORDER BY created_at DESC, rowid DESC LIMIT ?2";
	AUTO_READING *reading = reading_begin(r);
	AUTO_STMT *st = db_stmt(&r->db, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(tenant), db_int((int64_t)limit));
	return rows_runs(&r->db, st, ret, e);
}

int store_read_latest_artifacts(struct store_reader *r, const char *tenant,
				const char *identifier, char ret[STORE_RUN_ID_SIZE],
				struct err *e)
{
	AUTO_READING *reading = reading_begin(r);
	AUTO_ARENA *a = arena_new();
	const char *run_id = NULL;

	if (rows_latest_artifacts(&r->db, tenant, identifier, a, &run_id, e) < 0)
		return -1;
	int n = snprintf(ret, STORE_RUN_ID_SIZE, "%s", run_id);
	if (n < 0 || n >= STORE_RUN_ID_SIZE)
		return err_set(e, ERR_STORE, "a run id is too long");
	return 0;
}

/* Most runs leave no files: one look is enough for them. */
static int identifier_of(struct store_reader *r, const char *tenant, const char *run_id,
			 char **ret, struct err *e)
{
	static const char sql[] = "SELECT identifier FROM runs WHERE run_id = ?"
				  " AND tenant = ? AND artifact_count > 0";
	AUTO_STMT *st = db_stmt(&r->db, sql, e);
	int rc;

	if (!st)
		return -1;
	DB_BIND(st, db_text(run_id), db_text(tenant));
	rc = db_step(&r->db, st, e);
	if (rc <= 0)
		return rc < 0 ? -1 : not_found(e);
	*ret = xstrdup((const char *)sqlite3_column_text(st, 0));
	return 0;
}

int store_read_latest_of(struct store_reader *r, const char *tenant, const char *run_id,
			 char **ret_identifier, struct err *e)
{
	AUTO_READING *reading = reading_begin(r);
	AUTO_ARENA *a = arena_new();
	AUTO_FREE char *identifier = NULL;
	const char *newest = NULL;

	if (identifier_of(r, tenant, run_id, &identifier, e) < 0 ||
	    rows_latest_artifacts(&r->db, tenant, identifier, a, &newest, e) < 0)
		return -1;
	if (strcmp(newest, run_id) != 0)
		return not_found(e);
	*ret_identifier = MOVE(identifier);
	return 0;
}
