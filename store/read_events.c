/* SPDX-License-Identifier: MIT */
#include "store/reading.h"
#include "store/words.h"

int store_read_run_events(struct store_reader *r, const struct store_run_query *q,
			  struct store_events *ret, struct err *e)
{
	static const char sql[] = "SELECT " ROWS_EVENT " FROM events"
				  " WHERE run_id = ? AND seq > ? ORDER BY seq";
	struct rows_bound bound = {.max_events = q->max_events,
				   .max_bytes = q->max_bytes};
	int64_t last = 0;
	AUTO_READING *reading = reading_begin(r);
	AUTO_STMT *st = db_stmt(&r->db, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_text(q->run_id), db_int(q->after_seq));
	return rows_events(&r->db, st, &bound, ret, &last, e);
}

int store_read_new_events(struct store_reader *r, const struct store_new_query *q,
			  struct store_events *ret, int64_t *ret_last_id, struct err *e)
{
	static const char sql[] = "SELECT " ROWS_EVENT " FROM events"
				  " WHERE event_id > ? ORDER BY event_id";
	struct rows_bound bound = {.max_events = q->max_events,
				   .max_bytes = q->max_bytes,
				   .wanted = q->wanted,
				   .arg = q->arg};
	int64_t last = q->after_id;
	AUTO_READING *reading = reading_begin(r);
	AUTO_STMT *st = db_stmt(&r->db, sql, e);

	if (!st)
		return -1;
	DB_BIND(st, db_int(q->after_id));
	if (rows_events(&r->db, st, &bound, ret, &last, e) < 0)
		return -1;
	*ret_last_id = last;
	return 0;
}

/*
 * The rows that end after `offset`: the last one that begins at or before it, and
 * all that begin after it.
 */
static sqlite3_stmt *output_rows(struct store_reader *r,
				 const struct store_output_query *q, struct err *e)
{
	static const char sql[] =
		"SELECT out_offset, data FROM events WHERE run_id = ?1"
		" AND command_index = ?2 AND type = ?3 AND out_offset IS NOT NULL"
		" AND out_offset >= coalesce((SELECT max(out_offset) FROM events"
		"  WHERE run_id = ?1 AND command_index = ?2 AND type = ?3"
		"  AND out_offset IS NOT NULL AND out_offset <= ?4), 0)"
		" ORDER BY out_offset, seq";
	sqlite3_stmt *st = db_stmt(&r->db, sql, e);

	if (st)
		DB_BIND(st, db_text(q->run_id), db_int(q->command_index),
			db_text(words_event_type[q->stream == STORE_STDOUT
							 ? STORE_EVENT_COMMAND_STDOUT
							 : STORE_EVENT_COMMAND_STDERR]),
			db_int(q->offset));
	return st;
}

/* The part of the row that lies in [offset, offset + max). */
static void add_row(sqlite3_stmt *st, const struct store_output_query *q, size_t *got,
		    struct buf *out)
{
	const char *p = sqlite3_column_blob(st, 1);
	int64_t n = sqlite3_column_bytes(st, 1);
	int64_t skip = q->offset + (int64_t)*got - sqlite3_column_int64(st, 0);

	if (skip < 0 || skip >= n)
		return;
	size_t take = (size_t)(n - skip);
	if (take > q->max - *got)
		take = q->max - *got;
	buf_add(out, p + skip, take);
	*got += take;
}

int store_read_output(struct store_reader *r, const struct store_output_query *q,
		      struct buf *out, size_t *ret_n, struct err *e)
{
	AUTO_READING *reading = reading_begin(r);
	size_t got = 0;
	int rc = 0;

	if (q->offset < 0)
		return err_set(e, ERR_INVALID, "an offset is not negative");
	AUTO_STMT *st = output_rows(r, q, e);
	if (!st)
		return -1;
	while (got < q->max && (rc = db_step(&r->db, st, e)) > 0)
		add_row(st, q, &got, out);
	if (rc < 0)
		return -1;
	if (!buf_ok(out))
		return err_set(e, ERR_LIMIT, "the output is larger than its buffer");
	*ret_n = got;
	return 0;
}
