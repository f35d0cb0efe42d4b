/* SPDX-License-Identifier: MIT */
#ifndef MCP_DISKFILE_H
#define MCP_DISKFILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Artifacts as they lie on the disk, for who shows them in an answer. The tree is
 * the runner's and holds folders and regular files, and links of the runner's own
 * that lead to a run's unchanged files (IDENC_UNCHANGED); no other symbolic link is
 * followed and nothing outside is reached. Blocking, but local and bounded. Any
 * thread.
 */
struct diskfile {
	const char *root; /* ARTIFACTS_DIR */
	const char *tenant, *identifier, *run_id;
	const char *path; /* relative, as the store has it */
};

/*
 * Appends at most max bytes from offset on. ERR_NOT_FOUND: no such file.
 * ret_size: of the whole file.
 */
int diskfile_read(const struct diskfile *f, int64_t offset, size_t max, struct buf *out,
		  int64_t *ret_size, struct err *e);

#endif
