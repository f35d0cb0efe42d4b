/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_LOCAL_BOX_H
#define BACKEND_LOCAL_BOX_H

#include <stdbool.h>
#include <sys/types.h>

#include "backend/local/pidref.h"
#include "base/err.h"

/*
 * One sandbox's folder, DATA_DIR/sandboxes/<name>/, 0711 for the mapped root to
 * pass through to `merged`:
 *   state.json   this struct; written before the first start, so a folder
 *                without it was never used and may go
 *   store/       0700: upper (what the sandbox wrote) and work (overlayfs's)
 *   merged       where the overlay is mounted, in a namespace of its own only
 *   agent/       of the mapped root: with runsc, the agent's socket
 *   tmp/         with runsc, /tmp: it would lay a file system in memory over it
 *   config.json  the OCI configuration of the last start
 *   hosts        /etc/hosts of the sandbox, and so resolv.conf
 */
struct box {
	char *image;        /* "<image>/<folder>": the tree that upper lies on */
	char *fingerprint;  /* policy of the last start */
	struct pidref init; /* PID 1 as the host sees it; pid 0: stopped */
	int slot;           /* in the gateway; -1: none */
	bool gvisor;        /* started by runsc */
	bool fresh;
};
#define BOX_INIT                                                                         \
	{                                                                                \
		.slot = -1                                                               \
	}
#define AUTO_BOX __attribute__((cleanup(box_release))) struct box

int box_read(const char *dir, struct box *ret, struct err *e);
int box_write(const char *dir, const struct box *b, struct err *e);
void box_release(struct box *b);

/* A file of ours, replaced at once and not synced: it matters while it is used. */
int box_write_file(const char *path, const char *text, mode_t mode, int64_t owner,
		   struct err *e);

/* Makes what is missing of the folder, for the user range that starts at uid. */
int box_make_dirs(const char *dir, int64_t uid, struct err *e);

/* True if s may be a folder's and a container's name. Pure. */
bool box_name_ok(const char *s);

#endif
