/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_LOCAL_CGROUP_H
#define BACKEND_LOCAL_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"

/*
 * What the control groups of this machine can do for us: version 1, version 2,
 * and "hybrid" (controllers on version 1). Each limit is tried, not assumed.
 * Read-only after cgroups_open().
 */
enum cgroup_limit { CGROUP_CPU, CGROUP_MEMORY, CGROUP_PIDS, CGROUP_LIMIT_COUNT };

struct cgroups {
	char *parent;                  /* "/mcp-sandboxd-<instance>" */
	char *dir[CGROUP_LIMIT_COUNT]; /* our folder of that controller; NULL: none */
	bool enforced[CGROUP_LIMIT_COUNT];
	bool swap; /* memory + swap can be limited too */
	bool v2;
	char **mounts; /* of every hierarchy, NULL-terminated */
};

/* Says through progress what cannot be enforced. Fails only without any cgroup. */
int cgroups_open(const char *parent, backend_progress_fn *progress, void *arg,
		 struct cgroups *ret, struct err *e);

/* Processes killed for memory in the child group; unknown is ERR_NOT_FOUND. */
int cgroups_oom_kills(const struct cgroups *c, const char *child, uint64_t *ret,
		      struct err *e);

/* Kills what is left in the child group, and removes it. Absent: fine. */
int cgroups_end(const struct cgroups *c, const char *child, struct err *e);

/* Removes our own group when no sandbox is in it any more. */
void cgroups_remove_parent(const struct cgroups *c);
void cgroups_release(struct cgroups *c);

#endif
