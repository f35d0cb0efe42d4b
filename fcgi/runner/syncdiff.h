/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_SYNCDIFF_H
#define RUNNER_SYNCDIFF_H

#include "runner/syncplan.h"

/*
 * What is new in a listing since the identifier's artifacts were copied last. The
 * store knows each file's size and ctime, which nobody in the sandbox can set: when
 * both are equal, the file is the same. Pure; any thread.
 */

/* Sets `seen`, the fate of files that did not change, and in_base of all. */
void plan_compare(struct syncplan *p);

/*
 * Whether few enough differ that the run's folder needs only these, and no name of the
 * base is missing now, as the base's file would be seen.
 */
bool plan_share(struct syncplan *p);

#endif
