/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_SYNCSTAGE_H
#define RUNNER_SYNCSTAGE_H

#include "runner/syncplan.h"

/*
 * A plan's work on the disk, from the staging folder to the published one. Blocking:
 * control threads only, but for plan_open, plan_close and plan_remove.
 *
 * What is unchanged costs a link per file, or nothing: a run whose many files are
 * almost all those of a run before has a folder with the others alone and a link,
 * .unchanged, that leads to the base, the folder that has them all. Who looks for
 * a file looks there second (nginx/artifact.conf.in, mcp/diskfile.c). A base has no
 * base. See oldfiles.h for what becomes of it.
 */

/* Make the staging folder; compare with the previous run, keep what is unchanged. */
int plan_stage(struct syncplan *p, struct err *e);

/* A new file in the staging folder; its descriptor. */
int plan_open(const struct syncplan *p, const struct plan_entry *entry, int *ret_fd,
	      struct err *e);
int plan_close(const struct plan_entry *entry, int fd, struct err *e);
void plan_remove(const struct syncplan *p, const struct plan_entry *entry);

/* All at once in its place, and `latest` to it. */
int plan_publish(struct syncplan *p, struct err *e);

/* The staging folder goes. */
void plan_discard(struct syncplan *p);

#endif
