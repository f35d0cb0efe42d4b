/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_LOCAL_LOCAL_H
#define BACKEND_LOCAL_LOCAL_H

#include <stdbool.h>

#include "backend/backend.h"
#include "backend/caps.h"
#include "backend/local/cgroup.h"
#include "backend/local/gateway.h"

/*
 * Sandboxes on this machine, by an OCI runtime and without a daemon. Immutable
 * after open() but for the gateway, which has a lock of its own; so calls for
 * different sandboxes may run at once. Files:
 *   DATA_DIR/images/<image>/      root file systems, owners shifted (image.h)
 *   DATA_DIR/agent/<hash>/        the agent's binary, bound into every sandbox
 *   DATA_DIR/sandboxes/<name>/    files of one sandbox (box.h)
 *   DATA_DIR/trash/               what is being removed
 *   RUN_DIR/agents/<name>         the agents' sockets, 0700
 *   RUN_DIR/runtime/              the OCI runtime's own state
 *   RUN_DIR/gateway/              the network's (gateway.h)
 */
struct local {
	struct backend base;
	const struct conf *conf; /* outlives the backend */
	backend_progress_fn *progress;
	void *progress_arg;
	char *run_dir;
	char *sandboxes_dir, *trash_dir, *agents_dir, *runtime_dir;
	int agents_fd;     /* the folder of the sockets: bind and connect through it */
	char *image_lower; /* "<image>/<folder>" under images/: the current one */
	char *agent_file;  /* on the host, read-only in the sandboxes */
	char *runtime;     /* path of the OCI runtime that passed */
	char *cgroup_parent;
	char *seccomp_text; /* the profile in OCI form, as JSON */
	char *fingerprint;  /* of everything that decides what a sandbox may do */
	struct caps caps;
	struct cgroups cgroups;
	struct trash *trash;
	struct gateway *gateway; /* NULL: network mode none */
};

extern const struct backend_ops backend_local;

#endif
