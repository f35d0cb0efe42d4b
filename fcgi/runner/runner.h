/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_RUNNER_H
#define RUNNER_RUNNER_H

#include "backend/backend.h"
#include "conf/conf.h"

/*
 * The runner role: the only writer of the store, owner of all sandboxes.
 * Two endings, never mixed up. TERM = stop: running runs end as canceled with
 * the reason, sandboxes are stopped, files stay. USR1, or the end of the life
 * pipe = leave: exit at once, commands go on in their sandboxes and the next
 * runner picks them up.
 */
struct runner_args {
	int life_fd;  /* end of file: the master is gone, leave */
	int ready_fd; /* write one byte when requests are served, then close; -1 */
	int nedges;
	const int *edge_fds;     /* the runner's ends of the pairs */
	int control_fd;          /* listener of control.sock; <= 0: none */
	const int *doorbell_fds; /* eventfds to ring after each commit */
	const char *db_path;
	const char *instance_id; /* 8 hex digits, fixed for the data folder */
};

int runner_main(const struct runner_args *a, const struct conf *c);

/* The same with a backend of the caller's choice. */
int runner_main_on(const struct runner_args *a, const struct conf *c,
		   const struct backend_ops *ops);

#endif
