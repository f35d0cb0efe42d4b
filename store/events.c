/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "store/tx.h"
#include "store/words.h"

struct row {
	enum store_event_type type;
	int64_t at, command_index, out_offset;
	bool truncated;
	struct db_val data;
};

/* The number is taken only when the row is in: a refused one leaves no gap. */
static int insert(struct store *s, struct cursor *cur, const struct row *v, struct err *e)
{
	static const char sql[] =
		"INSERT INTO events(run_id, seq, type, at, command_index, out_offset,"
		" truncated, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
	AUTO_STMT *st = tx_write(s, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(cur->run_id), db_int(cur->seq + 1),
		db_text(words_event_type[v->type]), db_int(v->at),
		db_int_or(v->command_index, -1), db_int_or(v->out_offset, -1),
		db_int(v->truncated), v->data);
	if (tx_run(s, st, NULL, e) < 0)
		return -1;
	cur->seq++;
	s->newest_event = sqlite3_last_insert_rowid(s->db.c);
	return 0;
}

int store_event_add(struct store *s, const struct store_new_event *v, struct err *e)
{
	struct row row = {.type = v->type,
			  .at = v->at,
			  .command_index = v->command_index,
			  .out_offset = -1,
			  .data = db_text(v->json)};
	struct cursor *cur = NULL;

	if (store_event_is_output(v->type))
		return err_set(e, ERR_INVALID, "output goes through store_output_add()");
	if (tx_check(s, cursor_get(&s->cursors, &s->db, v->run_id, &cur, e), e) < 0)
		return -1;
	return insert(s, cur, &row, e);
}

/* How many of o's first bytes are stored already; -1: there is a gap before it. */
static int64_t known_part(const struct store_output *o, const struct cursor_stream *st)
{
	if (o->offset < 0 || o->offset > st->stored)
		return -1;
	int64_t known = st->stored - o->offset;
	return known < (int64_t)o->n ? known : (int64_t)o->n;
}

static int add_output(struct store *s, struct cursor *cur, const struct store_output *o,
		      struct err *e)
{
	struct cursor_stream *st = &cur->commands[o->command_index][o->stream];
	int64_t known = known_part(o, st);

	if (known < 0)
		return err_set(
			e, ERR_INVALID,
			"output of run %s continues at byte %lld, but %lld are known",
			o->run_id, (long long)o->offset, (long long)st->stored);
	size_t fresh = o->n - (size_t)known;
	/* After the cut there is nothing more; a repeat brings nothing new. */
	if (st->truncated || (fresh == 0 && !o->truncated))
		return 0;
	struct row v = {
		.type = o->stream == STORE_STDOUT ? STORE_EVENT_COMMAND_STDOUT
						  : STORE_EVENT_COMMAND_STDERR,
		.at = o->at,
		.command_index = o->command_index,
		.out_offset = st->stored,
		.truncated = o->truncated,
		.data = fresh > 0 ? db_bytes((const char *)o->data + known, fresh)
				  : db_text(""),
	};
	if (insert(s, cur, &v, e) < 0)
		return -1;
	st->stored += (int64_t)fresh;
	st->truncated = o->truncated;
	return 0;
}

int store_output_add(struct store *s, const struct store_output *o, int64_t *ret_stored,
		     struct err *e)
{
	struct cursor *cur = NULL;

	if (tx_check(s, cursor_get(&s->cursors, &s->db, o->run_id, &cur, e), e) < 0)
		return -1;
	if (o->command_index < 0 || (size_t)o->command_index >= cur->ncommands)
		return err_set(e, ERR_NOT_FOUND, "run %s has no command %lld", o->run_id,
			       (long long)o->command_index);
	if (add_output(s, cur, o, e) < 0)
		return -1;
	*ret_stored = cur->commands[o->command_index][o->stream].stored;
	return 0;
}
