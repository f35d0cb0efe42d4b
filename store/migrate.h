/* SPDX-License-Identifier: MIT */
#ifndef STORE_MIGRATE_H
#define STORE_MIGRATE_H

#include <sys/types.h>

#include "base/err.h"

/*
 * Brings the database at `path` to this program's schema; makes it, and its
 * folder, when they are not there. Run once by the master, before any role
 * starts. Idempotent.
 *
 * Folder 2750 and files 0640, owner the caller, group `gid` ((gid_t)-1: leave
 * it): so the edges, with that group and nothing else, read and never write.
 * Leaves -wal and -shm on disk, which a read-only reader needs.
 *
 * ERR_STORE when the database is newer than this program (the words say which
 * version is needed), damaged, or not a database; ERR_SYSTEM for the folder.
 */
struct store_migrate_opts {
	gid_t group;
	const char *synchronous; /* "NORMAL" or "FULL" */
};

int store_migrate(const char *path, const struct store_migrate_opts *o, struct err *e);

/* The schema this program works with: the number of its migrations. */
int store_schema_version(void);

#endif
