/* SPDX-License-Identifier: MIT */
#ifndef STORE_DB_H
#define STORE_DB_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * One SQLite connection with its prepared statements, used by one thread. A
 * statement is prepared when it is first asked for and kept; it is known by the
 * address of its text, which therefore is a `static const char []` beside the
 * function that runs it. Internal to the store.
 */
struct db {
	sqlite3 *c;
	struct db_slot *slots; /* open addressing, a power of two */
	size_t nslots, nused;
};

enum db_mode { DB_READ, DB_WRITE };

/*
 * Opens an existing file. `busy_ms` bounds how long a lock of another process is
 * waited for. The connection keeps -wal and -shm on disk when it closes.
 */
int db_open(const char *path, enum db_mode mode, int busy_ms, struct db *ret,
	    struct err *e);
void db_close(struct db *d); /* a zeroed one is fine */

/* Refuses in words what is not exactly the schema `version`. */
int db_check_version(struct db *d, int version, struct err *e);

/* ERR_STORE, ERR_CONFLICT or ERR_NOT_FOUND (foreign key) for SQLite's last error. */
int db_fail(struct db *d, const char *what, struct err *e);

int db_exec(struct db *d, const char *sql, struct err *e);
/* The first column of the first row, 0 when there is none. For pragmas; not cached. */
int db_exec_int(struct db *d, const char *sql, int64_t *ret, struct err *e);

/* A cached statement, clean; NULL on failure. Hold it as AUTO_STMT. */
sqlite3_stmt *db_stmt(struct db *d, const char *sql, struct err *e);

/* 1: a row; 0: done; -1. */
int db_step(struct db *d, sqlite3_stmt *st, struct err *e);

/* No statement of this connection is in the middle of its rows. */
bool db_is_idle(const struct db *d);

static inline void db_stmt_reset(sqlite3_stmt **st)
{
	if (*st) {
		sqlite3_reset(*st);
		sqlite3_clear_bindings(*st);
	}
}
#define AUTO_STMT __attribute__((cleanup(db_stmt_reset))) sqlite3_stmt

/* ---- values to bind: DB_BIND(st, db_text(a), db_int(b)). Pointers are borrowed
 * until the statement is reset. */
struct db_val {
	enum { DB_VAL_NULL, DB_VAL_INT, DB_VAL_TEXT, DB_VAL_BLOB } type;
	int64_t i;
	const void *p;
	size_t n;
};

void db_bind(sqlite3_stmt *st, const struct db_val *v, size_t n);
#define DB_BIND(st, ...)                                                                 \
	db_bind(st, (const struct db_val[]){__VA_ARGS__},                                \
		sizeof((const struct db_val[]){__VA_ARGS__}) / sizeof(struct db_val))

static inline struct db_val db_int(int64_t i)
{
	return (struct db_val){.type = DB_VAL_INT, .i = i};
}

/* A number that is NULL in the table when it is `none` here. */
static inline struct db_val db_int_or(int64_t i, int64_t none)
{
	struct db_val null = {.type = DB_VAL_NULL};

	return i == none ? null : db_int(i);
}

/* NUL-terminated; NULL is NULL. */
struct db_val db_text(const char *s);

/* Bytes as TEXT when they are UTF-8 without a NUL, else as BLOB. */
struct db_val db_bytes(const void *p, size_t n);

#endif
