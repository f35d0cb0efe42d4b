/* SPDX-License-Identifier: MIT */
#include "store/walbatch.h"

#include <assert.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
	BATCH_MAX = 128 * 1024,
	FRAME_HEADER = 24, /* as in sqlite.org/fileformat2.html, "WAL file format" */
	COMMIT_AT = 4,     /* four bytes, not all 0 in the last frame of a transaction */
	COMMIT_BYTES = 4,
};

struct walfile {
	sqlite3_file base; /* first */
	sqlite3_file *real;
	unsigned char *batch; /* NULL: nothing was ever kept */
	int used;
	sqlite3_int64 at;  /* where the batch belongs */
	sqlite3_int64 end; /* of what was written last: a frame that follows is new */
	bool has_header;   /* the batch ends with a header, its page comes next */
	bool commits;      /* of that header's frame */
};

static sqlite3_vfs *real_vfs;

static struct walfile *of(sqlite3_file *f)
{
	return (struct walfile *)f;
}

static int write_batch(struct walfile *w)
{
	int n = w->used;

	w->used = 0;
	w->has_header = false;
	return n ? w->real->pMethods->xWrite(w->real, w->batch, n, w->at) : SQLITE_OK;
}

static int keep(struct walfile *w, const void *p, int n, sqlite3_int64 at)
{
	int rc = w->used + n > BATCH_MAX ? write_batch(w) : SQLITE_OK;

	if (rc != SQLITE_OK)
		return rc;
	if (!w->batch)
		w->batch = xmalloc(BATCH_MAX);
	if (w->used == 0)
		w->at = at;
	memcpy(w->batch + w->used, p, (size_t)n);
	w->used += n;
	return SQLITE_OK;
}

static int keep_header(struct walfile *w, const void *p, sqlite3_int64 at)
{
	static const unsigned char no_commit[COMMIT_BYTES];
	int rc = keep(w, p, FRAME_HEADER, at);

	w->has_header = rc == SQLITE_OK;
	w->commits = memcmp((const unsigned char *)p + COMMIT_AT, no_commit,
			    COMMIT_BYTES) != 0;
	return rc;
}

static int keep_page(struct walfile *w, const void *p, int n, sqlite3_int64 at)
{
	int rc = keep(w, p, n, at);

	w->has_header = false;
	return rc == SQLITE_OK && w->commits ? write_batch(w) : rc;
}

static int write_now(struct walfile *w, const void *p, int n, sqlite3_int64 at)
{
	int rc = write_batch(w);

	return rc == SQLITE_OK ? w->real->pMethods->xWrite(w->real, p, n, at) : rc;
}

/*
 * Only a new frame waits: a header that follows what was written last, and its page.
 * SQLite also writes in the middle, pages it changes once more and headers of frames
 * that are there; after those comes no commit that would take them out.
 */
static int on_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	struct walfile *w = of(f);
	bool follows = at == w->end;

	w->end = at + n;
	if (follows && w->has_header && n <= BATCH_MAX)
		return keep_page(w, p, n, at);
	if (follows && n == FRAME_HEADER)
		return keep_header(w, p, at);
	return write_now(w, p, n, at);
}

static int on_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
	struct walfile *w = of(f);
	int rc = write_batch(w);

	return rc == SQLITE_OK ? w->real->pMethods->xRead(w->real, p, n, at) : rc;
}

static int on_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	struct walfile *w = of(f);
	int rc = write_batch(w);

	return rc == SQLITE_OK ? w->real->pMethods->xTruncate(w->real, size) : rc;
}

static int on_sync(sqlite3_file *f, int flags)
{
	struct walfile *w = of(f);
	int rc = write_batch(w);

	return rc == SQLITE_OK ? w->real->pMethods->xSync(w->real, flags) : rc;
}

static int on_size(sqlite3_file *f, sqlite3_int64 *ret)
{
	struct walfile *w = of(f);
	int rc = write_batch(w);

	return rc == SQLITE_OK ? w->real->pMethods->xFileSize(w->real, ret) : rc;
}

/* What waits belongs to a transaction that was not committed. */
static int on_close(sqlite3_file *f)
{
	struct walfile *w = of(f);

	free(w->batch);
	w->batch = NULL;
	return w->real->pMethods->xClose(w->real);
}

static int on_lock(sqlite3_file *f, int how)
{
	return of(f)->real->pMethods->xLock(of(f)->real, how);
}

static int on_unlock(sqlite3_file *f, int how)
{
	return of(f)->real->pMethods->xUnlock(of(f)->real, how);
}

static int on_check_lock(sqlite3_file *f, int *ret)
{
	return of(f)->real->pMethods->xCheckReservedLock(of(f)->real, ret);
}

static int on_control(sqlite3_file *f, int op, void *arg)
{
	return of(f)->real->pMethods->xFileControl(of(f)->real, op, arg);
}

static int on_sector_size(sqlite3_file *f)
{
	return of(f)->real->pMethods->xSectorSize(of(f)->real);
}

static int on_characteristics(sqlite3_file *f)
{
	return of(f)->real->pMethods->xDeviceCharacteristics(of(f)->real);
}

static const sqlite3_io_methods methods = {
	.iVersion = 1, /* mappings and shared memory are the database's, not the log's */
	.xClose = on_close,
	.xRead = on_read,
	.xWrite = on_write,
	.xTruncate = on_truncate,
	.xSync = on_sync,
	.xFileSize = on_size,
	.xLock = on_lock,
	.xUnlock = on_unlock,
	.xCheckReservedLock = on_check_lock,
	.xFileControl = on_control,
	.xSectorSize = on_sector_size,
	.xDeviceCharacteristics = on_characteristics,
};

static int on_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags,
		   int *ret_flags)
{
	struct walfile *w = of(f);
	int rc;

	(void)v;
	if (!(flags & SQLITE_OPEN_WAL))
		return real_vfs->xOpen(real_vfs, name, f, flags, ret_flags);
	*w = (struct walfile){.real = (sqlite3_file *)(w + 1)};
	rc = real_vfs->xOpen(real_vfs, name, w->real, flags, ret_flags);
	if (rc == SQLITE_OK)
		w->base.pMethods = &methods;
	else if (w->real->pMethods)
		w->real->pMethods->xClose(w->real);
	return rc;
}

static sqlite3_vfs vfs;

/* Its other calls take either VFS for their own: they look at what is copied. */
static void register_vfs(void)
{
	int rc;

	real_vfs = sqlite3_vfs_find(NULL);
	assert(real_vfs);
	vfs = *real_vfs;
	vfs.zName = "walbatch";
	vfs.pNext = NULL;
	vfs.xOpen = on_open;
	vfs.szOsFile = (int)sizeof(struct walfile) + real_vfs->szOsFile;
	rc = sqlite3_vfs_register(&vfs, 0);
	assert(rc == SQLITE_OK);
}

const char *walbatch_vfs(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_vfs);
	return vfs.zName;
}
