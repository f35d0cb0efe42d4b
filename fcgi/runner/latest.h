/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_LATEST_H
#define RUNNER_LATEST_H

#include "base/err.h"

/*
 * The link `latest` in an identifier's folder of artifacts, and the folder itself.
 * Publishing makes both, retention takes both away; the lock keeps them apart, on
 * any thread and over two runners. All of it is blocking: control threads only.
 */

/* Held until `root`, the open folder of all artifacts, is closed. */
int latest_lock(int root, struct err *e);

/* In the open folder of an identifier, under the lock. */
int latest_point(int folder, const char *run_id, struct err *e);

/*
 * Runs of root/tenant/folder were removed: a link to one of them goes to the newest
 * that is left; with none left, link and folder go. Takes the lock.
 */
int latest_settle(const char *root, const char *tenant, const char *folder,
		  struct err *e);

#endif
