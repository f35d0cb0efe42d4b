/* SPDX-License-Identifier: MIT */
#ifndef MASTER_DATADIR_H
#define MASTER_DATADIR_H

#include <sys/types.h>

#include "base/err.h"
#include "conf/conf.h"

/*
 * The folder that holds all state, and the folder for sockets. Opening it makes
 * it with the right owners and modes, locks it against a second server, and
 * gives it its instance id. Strings are owned by the struct.
 */
struct datadir {
	int lock_fd;      /* flock; the runner inherits it */
	char instance[9]; /* 8 hex digits, made once per folder */
	char *db_path;    /* <data_dir>/db/mcp-sandboxd.sqlite */
	char *run_dir;    /* RUN_DIR or /run/mcp-sandboxd/<instance> */
	uid_t edge_uid;   /* EDGE_USER; this process's own when not root */
	gid_t edge_gid;
};

#define DATADIR_INIT                                                                     \
	{                                                                                \
		.lock_fd = -1                                                            \
	}

/*
 * Fails in words: a parent folder others may not pass (ERR_DENIED), another
 * server (ERR_CONFLICT, with its pid), no such EDGE_USER (ERR_NOT_FOUND).
 */
int datadir_open(const struct conf *c, struct datadir *ret, struct err *e);

/* Frees and unlocks. remove_run: an orderly stop, nobody uses the sockets any more. */
void datadir_close(struct datadir *d, bool remove_run);

/* The pid in the lock file when a server holds it; 0: none does. */
int datadir_owner(const char *data_dir, pid_t *ret, struct err *e);

/* Every folder on the way to path (which need not exist) must be passable by others. */
int datadir_check_parents(const char *path, struct err *e);

#endif
