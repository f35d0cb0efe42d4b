/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_RESERVE_H
#define RUNNER_RESERVE_H

#include "runner/state.h"

/*
 * Room kept for the database. A sandbox can fill the disk that holds it, and then
 * nothing could be written any more: not the end of its run, nor the delete that
 * would make room. So a file of RESERVE_BYTES lies beside the database. When the
 * disk stays full, all sandboxes are stopped (else they would fill that too) and
 * the file is given up; r->short_of_room then holds until there is room again:
 * what ran has ended in words, no more is begun, deletes go on. Loop only.
 */
enum { RESERVE_BYTES = 16 * 1024 * 1024, RESERVE_WAIT_MS = 10000 };

/* At the start and each beat: makes the file, or ends the shortness, if it can. */
void reserve_keep(struct runner *r);

/* The store fails: true when the disk has been full for RESERVE_WAIT_MS. */
bool reserve_is_due(struct runner *r);

/* Now there is room, for the database alone. */
void reserve_give_up(struct runner *r);

#endif
