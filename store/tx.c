/* SPDX-License-Identifier: MIT */
#include "store/tx.h"

#include <assert.h>

/* Everything since the last commit is gone; the cursors knew it, so they go too. */
static int lose(struct store *s, const struct err *why)
{
	if (!sqlite3_get_autocommit(s->db.c))
		sqlite3_exec(s->db.c, "ROLLBACK", NULL, NULL, NULL);
	cursors_clear(&s->cursors);
	s->open = false;
	s->newest_event = 0;
	if (!s->lost)
		s->lost_why = *why;
	s->lost = true;
	return -1;
}

int tx_check(struct store *s, int rc, struct err *e)
{
	if (rc < 0 && e->kind == ERR_STORE && (s->open || s->lost))
		lose(s, e);
	return rc;
}

static int begin(struct store *s, struct err *e)
{
	static const char sql[] = "BEGIN IMMEDIATE";

	if (s->lost) {
		*e = s->lost_why;
		return -1;
	}
	if (s->open)
		return 0;
	AUTO_STMT *st = db_stmt(&s->db, sql, e);
	int rc = -1;
	if (st) {
		checkpoint_gate_lock(s->checkpoint);
		rc = db_step(&s->db, st, e);
		checkpoint_gate_unlock(s->checkpoint);
	}
	if (rc < 0)
		return lose(s, e);
	s->open = true;
	return 0;
}

sqlite3_stmt *tx_write(struct store *s, const char *sql, struct err *e)
{
	return begin(s, e) < 0 ? NULL : tx_read(s, sql, e);
}

sqlite3_stmt *tx_read(struct store *s, const char *sql, struct err *e)
{
	sqlite3_stmt *st = db_stmt(&s->db, sql, e);

	if (!st)
		tx_check(s, -1, e);
	return st;
}

int tx_step(struct store *s, sqlite3_stmt *st, struct err *e)
{
	int rc = db_step(&s->db, st, e);

	/* A rollback with the failed statement still open is fine for SQLite. */
	return rc < 0 ? tx_check(s, rc, e) : rc;
}

int tx_run(struct store *s, sqlite3_stmt *st, int64_t *ret_changed, struct err *e)
{
	int rc;

	while ((rc = tx_step(s, st, e)) > 0)
		;
	if (rc == 0 && ret_changed)
		*ret_changed = sqlite3_changes64(s->db.c);
	return rc;
}

static int mark_word(struct store *s, const char *sql, struct err *e)
{
	AUTO_STMT *st = tx_write(s, sql, e);

	return st ? tx_run(s, st, NULL, e) : -1;
}

int tx_mark(struct store *s, struct err *e)
{
	static const char sql[] = "SAVEPOINT mark";

	return mark_word(s, sql, e);
}

int tx_mark_end(struct store *s, int rc, struct err *e)
{
	static const char back[] = "ROLLBACK TO mark";
	static const char release[] = "RELEASE mark";
	struct err later = ERR_INIT; /* the first error is the one to tell */

	if (!s->open)
		return -1; /* lost as a whole */
	if (rc < 0 && mark_word(s, back, &later) < 0)
		return -1;
	if (mark_word(s, release, &later) < 0) {
		if (rc == 0)
			*e = later;
		return -1;
	}
	return rc;
}
