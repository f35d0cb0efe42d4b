/* SPDX-License-Identifier: MIT */
#include "store/tx.h"
#include "store/words.h"

int store_command_start(struct store *s, const char *run_id, int64_t index, int64_t at,
			struct err *e)
{
	static const char sql[] =
		"UPDATE commands SET status = 'running', started_at = ?"
		" WHERE run_id = ? AND command_index = ? AND status = 'queued'";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_int(at), db_text(run_id), db_int(index));
	return tx_run(s, st, NULL, e);
}

static int finish(struct store *s, const char *run_id, const struct store_command *c,
		  const struct cursor_stream stored[STORE_STREAM_COUNT], struct err *e)
{
	static const char sql[] =
		"UPDATE commands SET status = ?, exit_code = ?, signal = ?, reason = ?,"
		" oom = ?, started_at = coalesce(?, started_at), ended_at = ?,"
		" stdout_bytes = ?, stderr_bytes = ?, stdout_stored = ?, stderr_stored = "
		"?,"
		" stdout_truncated = ?, stderr_truncated = ?, background_left = ?,"
		" cpu_ms = ?, max_rss_kb = ?"
		" WHERE run_id = ? AND command_index = ? AND status IN ('queued', "
		"'running')";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(words_command_status[c->status]), db_int_or(c->exit_code, -1),
		db_int_or(c->signal, 0), db_text(c->reason), db_int_or(c->oom, -1),
		db_int_or(c->started_at, 0), db_int_or(c->ended_at, 0),
		db_int(c->bytes[0]), db_int(c->bytes[1]), db_int(stored[0].stored),
		db_int(stored[1].stored), db_int(c->truncated[0] || stored[0].truncated),
		db_int(c->truncated[1] || stored[1].truncated),
		db_int(c->background_left), db_int_or(c->cpu_ms, -1),
		db_int_or(c->max_rss_kb, -1), db_text(run_id), db_int(c->index));
	return tx_run(s, st, NULL, e);
}

int store_command_finish(struct store *s, const char *run_id,
			 const struct store_command *c, struct err *e)
{
	struct cursor *cur = NULL;

	if (!store_command_ended(c->status))
		return err_set(e, ERR_INVALID, "a command does not end as %s",
			       words_command_status[c->status]);
	if (tx_check(s, cursor_get(&s->cursors, &s->db, run_id, &cur, e), e) < 0)
		return -1;
	if (c->index < 0 || (size_t)c->index >= cur->ncommands)
		return err_set(e, ERR_NOT_FOUND, "run %s has no command %lld", run_id,
			       (long long)c->index);
	return finish(s, run_id, c, cur->commands[c->index], e);
}
