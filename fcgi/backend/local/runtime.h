/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_LOCAL_RUNTIME_H
#define BACKEND_LOCAL_RUNTIME_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * The OCI runtime as a program: run and delete. Blocking; any thread.
 *
 * runsc (gVisor) differs from runc and crun: it hands no descriptor in that can
 * be accepted from, and it reads its network's addresses when it starts, so they
 * must be there before.
 */
struct runtime_run {
	const char *runtime;   /* path of the program */
	const char *state_dir; /* its --root */
	const char *id;
	const char *dir;   /* the sandbox's folder: bundle and overlay */
	const char *lower; /* absolute path of the image's tree */
	int pass_fd;       /* becomes 3 in the sandbox; -1: none */
	bool network;      /* it will be connected; runsc wants to know */
	bool detach;       /* false: waits for its end, which must be code 0 */
	/* With detach: its network namespace is there, no command has run. */
	int (*on_created)(void *arg, pid_t pid, struct err *e);
	void *arg;
};

bool runtime_is_gvisor(const char *runtime);

/*
 * Mounts the overlay in a mount namespace that ends with this call (the
 * container's own copy keeps it) and starts the container.
 */
int runtime_run(const struct runtime_run *r, struct err *e);

/*
 * Forgets the container. runc and crun kill what still runs in it; with runsc the
 * caller ends its control group. Absent: fine.
 */
int runtime_delete(const char *runtime, const char *state_dir, const char *id,
		   struct err *e);

/*
 * Kills runs of the runtime on our state that an earlier server began and did
 * not see the end of: else one could finish a start that we have given up.
 */
int runtime_kill_strays(const char *state_dir, struct err *e);
bool runtime_knows(const char *state_dir, const char *id);

#endif
