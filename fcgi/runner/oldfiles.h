/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_OLDFILES_H
#define RUNNER_OLDFILES_H

#include <sys/types.h>

#include "base/err.h"

/*
 * Folders with artifacts that later runs have a share in, and their end. In the
 * folder of an identifier:
 *
 *	run_1/                 all files of run_1, the base of run_2 and run_3
 *	run_2/                 only those that are new, and
 *	run_2/.unchanged       -> ../.base/run_1
 *	.base/run_1            -> ../run_1, as long as run_1 is kept;
 *	                       after that the folder itself, until no run leads to it
 *
 * So a link of a run always leads to a whole folder, and it is never changed. All
 * of it is blocking, and done under latest_lock().
 */
enum { OLDFILES_TARGET_SIZE = 64 };

/* What `.unchanged` in the open folder of a run says: the base's run_id; -1: nothing. */
int oldfiles_base_of(int run_fd, char ret[static OLDFILES_TARGET_SIZE]);

/*
 * In the staged folder of a run: the link to a base of the same identifier, which has
 * the open folder `folder`. The base must be there.
 */
int oldfiles_link(int staging, int folder, const char *base, gid_t gid, struct err *e);

/*
 * The files of a run that is no more, and those that nobody has a share in then. Takes
 * the lock. Fine when it was done before, wholly or in part.
 */
int oldfiles_remove(const char *root, const char *tenant, const char *folder,
		    const char *run_id, struct err *e);

#endif
