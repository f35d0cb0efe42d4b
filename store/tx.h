/* SPDX-License-Identifier: MIT */
#ifndef STORE_TX_H
#define STORE_TX_H

#include <stdatomic.h>

#include "store/checkpoint.h"
#include "store/cursor.h"
#include "store/db.h"
#include "store/writer.h"

/*
 * The inside of the writing half: its state and the transaction that every write
 * goes through. See writer.h for what is promised outside.
 */
struct store {
	struct db db;
	struct checkpoint *checkpoint;
	struct cursors cursors;
	bool open;            /* a transaction is */
	bool lost;            /* it was, since the last store_commit() */
	struct err lost_why;  /* and this is why */
	int64_t newest_event; /* of this transaction; 0: none */
	int wal_frames;       /* told by SQLite at the commit */
	int64_t data_version; /* at the last store_changes_poll(); 0: never */
	int64_t audit_swept;  /* newest audit row when the audit was last bounded */
	_Atomic int64_t commits, failed_commits;
};

/*
 * A statement to write with, in the open transaction; NULL on failure. To read
 * with, without opening one: tx_read().
 */
sqlite3_stmt *tx_write(struct store *s, const char *sql, struct err *e);
sqlite3_stmt *tx_read(struct store *s, const char *sql, struct err *e);

/* As db_step(); ERR_STORE loses the transaction. */
int tx_step(struct store *s, sqlite3_stmt *st, struct err *e);

/* Steps a write to its end. *ret_changed (may be NULL): rows it changed. */
int tx_run(struct store *s, sqlite3_stmt *st, int64_t *ret_changed, struct err *e);

/* For results of helpers that take a db: on ERR_STORE the transaction is lost. */
int tx_check(struct store *s, int rc, struct err *e);

/* All or nothing within the transaction, for calls of several statements. */
int tx_mark(struct store *s, struct err *e);
int tx_mark_end(struct store *s, int rc, struct err *e); /* rc < 0: back to the mark */

#endif
