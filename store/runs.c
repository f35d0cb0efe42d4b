/* SPDX-License-Identifier: MIT */
#include "store/rows.h"
#include "store/tx.h"
#include "store/words.h"

static int insert_run(struct store *s, const struct store_run *r, int64_t *ret_changed,
		      struct err *e)
{
	static const char sql[] =
		"INSERT INTO runs(run_id, tenant, identifier, state, created_at, as_user,"
		" continue_on_error, lock_sandbox, ttl_s, sandbox_name, background_of)"
		" VALUES (?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?)"
		" ON CONFLICT(run_id) DO NOTHING";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(r->run_id), db_text(r->tenant), db_text(r->identifier),
		db_int(r->created_at), db_text(r->as_root ? "root" : "sandbox"),
		db_int(r->continue_on_error), db_int(r->lock_sandbox), db_int(r->ttl_s),
		db_text(r->sandbox_name), db_text(r->background_of));
	return tx_run(s, st, ret_changed, e);
}

static int insert_command(struct store *s, const char *run_id,
			  const struct store_command *c, struct err *e)
{
	static const char sql[] =
		"INSERT INTO commands(run_id, command_index, status, timeout_ms,"
		" allow_failure, shell, argv, cwd, env, stdin, background)"
		" VALUES (?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?)";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(run_id), db_int(c->index), db_int(c->timeout_ms),
		db_int(c->allow_failure), db_text(c->shell), db_text(c->argv_json),
		db_text(c->cwd), db_text(c->env_json), db_text(c->stdin_text),
		db_int(c->background));
	return tx_run(s, st, NULL, e);
}

int store_run_is_known(struct store *s, const char *tenant, const char *run_id,
		       bool *ret_known, struct err *e)
{
	static const char sql[] = "SELECT tenant = ? FROM runs WHERE run_id = ?";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(tenant), db_text(run_id));
	int rc = tx_step(s, st, e);
	if (rc > 0 && !sqlite3_column_int(st, 0))
		return err_set(e, ERR_CONFLICT, "the run id %.64s is taken", run_id);
	if (rc < 0)
		return -1;
	*ret_known = rc > 0;
	return 0;
}

static int insert_all(struct store *s, const struct store_run *r, bool *ret_existed,
		      struct err *e)
{
	int64_t changed = 0;

	if (insert_run(s, r, &changed, e) < 0)
		return -1;
	*ret_existed = changed == 0;
	if (changed == 0)
		return store_run_is_known(s, r->tenant, r->run_id, ret_existed, e);
	for (size_t i = 0; i < r->ncommands; i++)
		if (insert_command(s, r->run_id, &r->commands[i], e) < 0)
			return -1;
	return 0;
}

int store_run_insert(struct store *s, const struct store_run *row, bool *ret_existed,
		     struct err *e)
{
	bool existed = false;

	if (tx_mark(s, e) < 0 || tx_mark_end(s, insert_all(s, row, &existed, e), e) < 0)
		return -1;
	if (!existed)
		cursor_begin(&s->cursors, row->run_id, row->ncommands);
	*ret_existed = existed;
	return 0;
}

int store_run_start(struct store *s, const char *run_id, const char *sandbox_name,
		    const char *container_id, int64_t at, struct err *e)
{
	static const char sql[] =
		"UPDATE runs SET state = 'running', started_at = coalesce(started_at, ?),"
		" sandbox_name = ?, sandbox_container_id = ?"
		" WHERE run_id = ? AND ended_at IS NULL";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_int(at), db_text(sandbox_name), db_text(container_id),
		db_text(run_id));
	return tx_run(s, st, NULL, e);
}

int store_run_finish(struct store *s, const char *run_id, enum store_run_state state,
		     int64_t at, const char *error, struct err *e)
{
	static const char sql[] = "UPDATE runs SET state = ?, ended_at = ?, error = ?"
				  " WHERE run_id = ? AND ended_at IS NULL";

	if (!store_run_ended(state))
		return err_set(e, ERR_INVALID, "a run does not end as %s",
			       words_run_state[state]);
	AUTO_STMT *st = tx_write(s, sql, e);
	if (!st)
		return -1;
	DB_BIND(st, db_text(words_run_state[state]), db_int(at), db_text(error),
		db_text(run_id));
	if (tx_run(s, st, NULL, e) < 0)
		return -1;
	cursor_end(&s->cursors, run_id);
	return 0;
}

int store_run_artifacts_error(struct store *s, const char *run_id, const char *text,
			      struct err *e)
{
	static const char sql[] = "UPDATE runs SET artifacts_error = ? WHERE run_id = ?";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(text), db_text(run_id));
	return tx_run(s, st, NULL, e);
}

/* What is stored of each stream is known by the cursor until the command ends. */
static int fill(struct store *s, struct store_run *run, struct store_arena *mem,
		struct err *e)
{
	struct cursor *c = NULL;

	run->mem = mem;
	int rc = rows_run_commands(&s->db, run, e);
	run->mem = NULL;
	if (rc < 0 || cursor_get(&s->cursors, &s->db, run->run_id, &c, e) < 0)
		return -1;
	for (size_t i = 0; i < run->ncommands; i++)
		for (int k = 0; k < STORE_STREAM_COUNT; k++) {
			struct store_command *cmd = &run->commands[i];
			const struct cursor_stream *st = &c->commands[cmd->index][k];

			cmd->stored[k] = st->stored;
			cmd->truncated[k] = cmd->truncated[k] || st->truncated;
		}
	return 0;
}

static int unfinished(struct store *s, struct store_runs *ret, struct err *e)
{
	static const char sql[] = "SELECT " ROWS_RUN " FROM runs"
				  " WHERE ended_at IS NULL"
				  " ORDER BY created_at, rowid";
	AUTO_STORE_RUNS l = {0};
	AUTO_STMT *st = tx_read(s, sql, e);

	if (!st || rows_runs(&s->db, st, &l, e) < 0)
		return -1;
	for (size_t i = 0; i < l.n; i++)
		if (fill(s, &l.v[i], l.mem, e) < 0)
			return -1;
	return rows_hand_over(&l, ret, sizeof l);
}

int store_runs_unfinished(struct store *s, struct store_runs *ret, struct err *e)
{
	return tx_check(s, unfinished(s, ret, e), e);
}
