/* SPDX-License-Identifier: MIT */
#ifndef MASTER_ROLEFD_H
#define MASTER_ROLEFD_H

/*
 * Where a role finds its descriptors. The master puts exactly these at these
 * numbers and closes every other before it executes a role, so a role holds
 * nothing that it may not hold (docs/architecture.md).
 */
enum rolefd {
	ROLEFD_LIFE = 3, /* read end of the life pipe */
	ROLEFD_READY,    /* write end: one byte when the role serves */
	ROLEFD_FIRST,    /* what follows differs by role */

	/* edge */
	ROLEFD_EDGE_LISTEN = ROLEFD_FIRST,
	ROLEFD_EDGE_RUNNER,
	ROLEFD_EDGE_DOORBELL,
	ROLEFD_EDGE_STATS,

	/* runner: the lock on the data folder, so that it is held as long as a
	 * writer lives; the listener of control.sock; then N ends of pairs; then N
	 * doorbells */
	ROLEFD_RUNNER_LOCK = ROLEFD_FIRST,
	ROLEFD_RUNNER_CONTROL,
	ROLEFD_RUNNER_EDGES,
};

enum { ROLE_EDGES_MAX = 64 }; /* upper bound of EDGE_PROCESSES */

#endif
