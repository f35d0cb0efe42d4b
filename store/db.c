/* SPDX-License-Identifier: MIT */
#include "store/db.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "store/walbatch.h"

struct db_slot {
	const char *sql; /* NULL: free */
	sqlite3_stmt *st;
};

/* What a person is told for SQLite's result codes; the rest is SQLite's own text. */
static const struct {
	int code;
	const char *words;
} code_words[] = {
	{SQLITE_FULL, "the disk is full (or a quota or file size limit was reached)"},
	{SQLITE_BUSY, "another program holds the database's lock; "
		      "is a transaction open in a sqlite3 shell?"},
	{SQLITE_NOTADB, "the file is not an SQLite database"},
	{SQLITE_CORRUPT, "the database is damaged; restore a backup or run "
			 "'sqlite3 FILE .recover'"},
	{SQLITE_READONLY, "the database may not be written by this user"},
	{SQLITE_CANTOPEN, "the database cannot be opened: is it there and readable, "
			  "with its -wal and -shm files?"},
};

static const char *words_of(int code)
{
	for (size_t i = 0; i < sizeof code_words / sizeof *code_words; i++)
		if (code_words[i].code == (code & 0xff))
			return code_words[i].words;
	return NULL;
}

/*
 * A reader who may not write the -shm file cannot tell a header that the writer is
 * changing at this moment from one that a crash left half-changed: SQLite answers
 * SQLITE_READONLY_RECOVERY to both. The first is over within microseconds, the
 * second when the writer starts again; so it is worth another look, for a while.
 */
static bool look_again(int rc, int *looks)
{
	enum { YIELDS = 100, LOOKS_MAX = 300 };
	const struct timespec pause = {.tv_nsec = 1000000};

	if (rc != SQLITE_READONLY_RECOVERY || *looks >= LOOKS_MAX)
		return false;
	if ((*looks)++ < YIELDS)
		sched_yield();
	else
		nanosleep(&pause, NULL);
	return true;
}

static int step(sqlite3_stmt *st)
{
	int rc, looks = 0;

	while (look_again(rc = sqlite3_step(st), &looks))
		sqlite3_reset(st);
	return rc;
}

static int prepare(struct db *d, const char *sql, unsigned flags, sqlite3_stmt **ret)
{
	int rc, looks = 0;

	while (look_again(rc = sqlite3_prepare_v3(d->c, sql, -1, flags, ret, NULL),
			  &looks))
		;
	return rc;
}

int db_fail(struct db *d, const char *what, struct err *e)
{
	int code = sqlite3_extended_errcode(d->c);
	const char *text = d->c ? sqlite3_errmsg(d->c) : "out of memory";
	const char *words = words_of(code);

	if (code == SQLITE_CONSTRAINT_FOREIGNKEY)
		return err_set(e, ERR_NOT_FOUND, "%s: what it belongs to does not exist",
			       what);
	if ((code & 0xff) == SQLITE_CONSTRAINT)
		return err_set(e, ERR_CONFLICT, "%s: %s", what, text);
	if (words)
		return err_set(e, ERR_STORE, "%s: %s", what, words);
	return err_set(e, ERR_STORE, "%s: %s (SQLite code %d, system error %d)", what,
		       text, code, sqlite3_system_errno(d->c));
}

static int configure(struct db *d, enum db_mode mode, int busy_ms, struct err *e)
{
	int on = 1;

	sqlite3_extended_result_codes(d->c, 1);
	sqlite3_busy_timeout(d->c, busy_ms);
	sqlite3_db_config(d->c, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(d->c, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_file_control(d->c, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
	/* Checkpoints are the business of checkpoint.c alone. */
	sqlite3_wal_autocheckpoint(d->c, 0);
	if (mode == DB_READ)
		return db_exec(d, "PRAGMA cache_size=-512", e);
	/*
	 * The CHECKs are for people who write by hand: we bind words of closed sets
	 * only. Each CHECK (x IN (...)) would fill a table of its own, every time.
	 */
	return db_exec(d,
		       "PRAGMA foreign_keys=ON; PRAGMA ignore_check_constraints=ON;"
		       " PRAGMA cache_size=-4096",
		       e);
}

/* SQLite opens for reading what it may not write, and says nothing. */
static int check_writable(struct db *d, enum db_mode mode, struct err *e)
{
	if (mode == DB_WRITE && sqlite3_db_readonly(d->c, "main"))
		return err_set(e, ERR_STORE,
			       "the database may not be written by this user");
	return 0;
}

/* Nobody asks how much memory SQLite has; counting it takes a lock of the process. */
static void count_no_memory(void)
{
	/* Refused when SQLite is in use already, by a test: then it counts. */
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

int db_open(const char *path, enum db_mode mode, int busy_ms, struct db *ret,
	    struct err *e)
{
	int flags = mode == DB_READ ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct db d = {0};
	int rc;

	pthread_once(&once, count_no_memory);
	rc = sqlite3_open_v2(path, &d.c, flags | SQLITE_OPEN_NOMUTEX,
			     mode == DB_READ ? NULL : walbatch_vfs());

	if ((rc != SQLITE_OK && db_fail(&d, "open", e) < 0) ||
	    check_writable(&d, mode, e) < 0 || configure(&d, mode, busy_ms, e) < 0) {
		db_close(&d);
		return -1;
	}
	*ret = d;
	return 0;
}

void db_close(struct db *d)
{
	for (size_t i = 0; i < d->nslots; i++)
		sqlite3_finalize(d->slots[i].st);
	free(d->slots);
	int rc = sqlite3_close(d->c);
	assert(rc == SQLITE_OK); /* else a statement was not ours */
	*d = (struct db){0};
}

int db_check_version(struct db *d, int version, struct err *e)
{
	int64_t found = 0;

	if (db_exec_int(d, "PRAGMA user_version", &found, e) < 0)
		return -1;
	if (found != version)
		return err_set(e, ERR_STORE,
			       "the database has schema version %lld, this program "
			       "works with version %d; %s",
			       (long long)found, version,
			       found > version ? "a newer program made it"
					       : "it was not migrated");
	return 0;
}

int db_exec(struct db *d, const char *sql, struct err *e)
{
	return sqlite3_exec(d->c, sql, NULL, NULL, NULL) == SQLITE_OK
		       ? 0
		       : db_fail(d, "store", e);
}

int db_exec_int(struct db *d, const char *sql, int64_t *ret, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int rc = prepare(d, sql, 0, &st);

	if (rc == SQLITE_OK)
		rc = step(st);
	int64_t value = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		db_fail(d, "store", e);
	sqlite3_finalize(st);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return -1;
	*ret = value;
	return 0;
}

/* The slot of sql, or the free one where it belongs. */
static struct db_slot *slot_of(struct db_slot *slots, size_t n, const char *sql)
{
	size_t i = ((uintptr_t)sql >> 4) * 0x9e3779b97f4a7c15ULL >> 40;

	while (slots[i & (n - 1)].sql && slots[i & (n - 1)].sql != sql)
		i++;
	return &slots[i & (n - 1)];
}

static void grow(struct db *d)
{
	size_t n = d->nslots ? 2 * d->nslots : 32;
	struct db_slot *slots = xcalloc(n, sizeof *slots);

	for (size_t i = 0; i < d->nslots; i++)
		if (d->slots[i].sql)
			*slot_of(slots, n, d->slots[i].sql) = d->slots[i];
	free(d->slots);
	d->slots = slots;
	d->nslots = n;
}

sqlite3_stmt *db_stmt(struct db *d, const char *sql, struct err *e)
{
	if (2 * d->nused >= d->nslots)
		grow(d);
	struct db_slot *slot = slot_of(d->slots, d->nslots, sql);
	if (slot->sql) {
		assert(!sqlite3_stmt_busy(slot->st));
		return slot->st;
	}
	sqlite3_stmt *st = NULL;
	if (prepare(d, sql, SQLITE_PREPARE_PERSISTENT, &st) != SQLITE_OK) {
		db_fail(d, "store", e);
		return NULL;
	}
	*slot = (struct db_slot){.sql = sql, .st = st};
	d->nused++;
	return st;
}

int db_step(struct db *d, sqlite3_stmt *st, struct err *e)
{
	int rc = step(st);

	if (rc == SQLITE_ROW)
		return 1;
	return rc == SQLITE_DONE ? 0 : db_fail(d, "store", e);
}

bool db_is_idle(const struct db *d)
{
	for (sqlite3_stmt *st = NULL; (st = sqlite3_next_stmt(d->c, st));)
		if (sqlite3_stmt_busy(st))
			return false;
	return true;
}

static int bind_one(sqlite3_stmt *st, int at, const struct db_val *v)
{
	switch (v->type) {
	case DB_VAL_NULL:
		return sqlite3_bind_null(st, at);
	case DB_VAL_INT:
		return sqlite3_bind_int64(st, at, v->i);
	case DB_VAL_TEXT:
		return sqlite3_bind_text64(st, at, v->p, v->n, SQLITE_STATIC,
					   SQLITE_UTF8);
	case DB_VAL_BLOB:
		return sqlite3_bind_blob64(st, at, v->p, v->n, SQLITE_STATIC);
	}
	return SQLITE_MISUSE;
}

void db_bind(sqlite3_stmt *st, const struct db_val *v, size_t n)
{
	assert((int)n == sqlite3_bind_parameter_count(st));
	for (size_t i = 0; i < n; i++) {
		int rc = bind_one(st, (int)i + 1, &v[i]);
		assert(rc == SQLITE_OK); /* a value over 1 GB, or a slip in the code */
	}
}

struct db_val db_text(const char *s)
{
	if (!s)
		return (struct db_val){.type = DB_VAL_NULL};
	return (struct db_val){.type = DB_VAL_TEXT, .p = s, .n = strlen(s)};
}

struct db_val db_bytes(const void *p, size_t n)
{
	if (n == 0)
		return db_text("");
	bool is_text = !memchr(p, '\0', n) && utf8_is_valid(p, n);
	return (struct db_val){
		.type = is_text ? DB_VAL_TEXT : DB_VAL_BLOB, .p = p, .n = n};
}
