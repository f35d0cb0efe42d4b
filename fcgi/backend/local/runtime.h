/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_LOCAL_RUNTIME_H
#define BACKEND_LOCAL_RUNTIME_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * The OCI runtime as a program: run, delete, and the choice of one that works
 * here. Blocking; any thread.
 */
struct runtime_run {
	const char *runtime;   /* path of the program */
	const char *state_dir; /* its --root */
	const char *id;
	const char *dir;   /* the sandbox's folder: bundle and overlay */
	const char *lower; /* absolute path of the image's tree */
	int pass_fd;       /* becomes 3 in the sandbox; -1: none */
	bool detach;       /* false: waits for its end, which must be code 0 */
	pid_t *ret_pid;    /* with detach */
};

/*
 * Mounts the overlay in a mount namespace that ends with this call (the
 * container's own copy keeps it) and starts the container.
 */
int runtime_run(const struct runtime_run *r, struct err *e);

/* Forgets the container, killing what still runs in it. Absent: fine. */
int runtime_delete(const char *runtime, const char *state_dir, const char *id,
		   struct err *e);

/*
 * Kills runs of the runtime on our state that an earlier server began and did
 * not see the end of: else one could finish a start that we have given up.
 */
int runtime_kill_strays(const char *state_dir, struct err *e);
bool runtime_knows(const char *state_dir, const char *id);

#endif
