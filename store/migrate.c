/* SPDX-License-Identifier: MIT */
#include "store/migrate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/id.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "store/db.h"
#include "store/schema.h"

enum { FOLDER_MODE = 02750, FILE_MODE = 0640, BUSY_MS = 10000, REQUEST_KEY_LEN = 64 };

static void db_closep(struct db *d)
{
	db_close(d);
}
#define AUTO_DB __attribute__((cleanup(db_closep))) struct db

/* Owner, group and mode of one file; made when `create`, else absent is fine. */
static int settle_file(const char *path, bool create, gid_t group, struct err *e)
{
	int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0);
	AUTO_CLOSE int fd = open(path, flags, FILE_MODE);

	if (fd < 0 && errno == ENOENT && !create)
		return 0;
	if (fd < 0)
		return err_sys(e, "open %s", path);
	if (fchown(fd, (uid_t)-1, group) < 0)
		return err_sys(e, "give %s to group %u", path, (unsigned)group);
	if (fchmod(fd, FILE_MODE) < 0)
		return err_sys(e, "change the mode of %s", path);
	return 0;
}

/*
 * SQLite gives -wal and -shm the owner and mode of the main file. Not while
 * this process has the database open: closing a descriptor would drop its locks.
 */
static int settle_all(const char *path, gid_t group, struct err *e)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		AUTO_FREE char *name = xasprintf("%s%s", path, suffixes[i]);
		if (settle_file(name, i == 0, group, e) < 0)
			return -1;
	}
	return 0;
}

static int settle_folder(const char *path, gid_t group, struct err *e)
{
	const char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return err_set(e, ERR_INVALID,
			       "the database needs a folder of its own: %s", path);
	AUTO_FREE char *folder = xstrndup(path, (size_t)(slash - path));
	return io_mkdirs_owned(folder, FOLDER_MODE, (uid_t)-1, group, e);
}

/* Only a file without content becomes ours; a foreign database is refused. */
static int check_ours(struct db *d, int64_t version, struct err *e)
{
	int64_t tables = 0, id = 0;

	if (db_exec_int(d, "SELECT count(*) FROM sqlite_schema", &tables, e) < 0 ||
	    db_exec_int(d, "PRAGMA application_id", &id, e) < 0)
		return -1;
	if ((version == 0 && tables > 0) || (version > 0 && id != SCHEMA_APPLICATION_ID))
		return err_set(e, ERR_STORE,
			       "the file holds the tables of another program");
	if (version > schema_step_count)
		return db_check_version(d, schema_step_count, e);
	return 0;
}

static int run_all(struct db *d, const char *const *texts, struct err *e)
{
	for (; *texts; texts++)
		if (db_exec(d, *texts, e) < 0)
			return -1;
	return 0;
}

static int run_step(struct db *d, int64_t from, struct err *e)
{
	AUTO_FREE char *end = xasprintf("PRAGMA application_id=%d;"
					"PRAGMA user_version=%lld;COMMIT",
					SCHEMA_APPLICATION_ID, (long long)from + 1);

	if (db_exec(d, "BEGIN IMMEDIATE", e) < 0 ||
	    run_all(d, schema_steps[from], e) < 0 || db_exec(d, end, e) < 0)
		return err_wrap(e, "schema step %lld", (long long)from + 1);
	return 0;
}

static void hash_views(char out[static SHA256_HEX_LEN + 1])
{
	AUTO_BUF all = BUF_INIT(SIZE_MAX);

	for (const char *const *text = schema_views; *text; text++)
		buf_puts(&all, *text);
	sha256_hex(all.p, all.len, out);
}

/* The views' text is told apart by its hash, kept in meta. */
static int renew_views(struct db *d, struct err *e)
{
	char hash[SHA256_HEX_LEN + 1];
	int64_t same = 0;

	hash_views(hash);
	AUTO_FREE char *ask = xasprintf("SELECT 1 FROM meta WHERE key='views_sha256' "
					"AND value='%s'",
					hash);
	AUTO_FREE char *keep = xasprintf("REPLACE INTO meta VALUES('views_sha256','%s');"
					 "COMMIT",
					 hash);
	if (db_exec_int(d, ask, &same, e) < 0)
		return -1;
	if (same)
		return 0;
	if (db_exec(d, "BEGIN IMMEDIATE", e) < 0 || run_all(d, schema_views, e) < 0 ||
	    db_exec(d, keep, e) < 0)
		return err_wrap(e, "schema views");
	return 0;
}

/* What edges sign with: they share it, and it outlives them. */
static int make_request_key(struct db *d, struct err *e)
{
	char key[REQUEST_KEY_LEN + 1];

	id_random_hex(key, REQUEST_KEY_LEN);
	AUTO_FREE char *keep =
		xasprintf("INSERT OR IGNORE INTO meta VALUES('request_key','%s')", key);
	return db_exec(d, keep, e);
}

static int migrate(struct db *d, const char *synchronous, struct err *e)
{
	bool full = synchronous && !strcasecmp(synchronous, "FULL");
	int64_t version = 0;

	if (db_exec_int(d, "PRAGMA user_version", &version, e) < 0 ||
	    check_ours(d, version, e) < 0)
		return -1;
	/* auto_vacuum only takes hold before the first table is made. */
	if (version == 0 && db_exec(d, "PRAGMA auto_vacuum=INCREMENTAL", e) < 0)
		return -1;
	if (db_exec(d, "PRAGMA journal_mode=WAL", e) < 0 ||
	    db_exec(d, full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL",
		    e) < 0)
		return -1;
	for (; version < schema_step_count; version++)
		if (run_step(d, version, e) < 0)
			return -1;
	return renew_views(d, e) < 0 ? -1 : make_request_key(d, e);
}

int store_migrate(const char *path, const struct store_migrate_opts *o, struct err *e)
{
	AUTO_DB d = {0};

	if (settle_folder(path, o->group, e) < 0 || settle_all(path, o->group, e) < 0)
		return -1;
	if (db_open(path, DB_WRITE, BUSY_MS, &d, e) < 0 ||
	    migrate(&d, o->synchronous, e) < 0)
		return err_wrap(e, "%s", path);
	db_close(&d); /* a failed step is undone here */
	return settle_all(path, o->group, e);
}

int store_schema_version(void)
{
	return schema_step_count;
}
