/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_OOMFILE_H
#define BACKEND_OOMFILE_H

#include <stdint.h>

#include "base/err.h"

/*
 * The kernel's count of processes killed for memory in a control group: the line
 * "oom_kill N" of memory.events (cgroup v2) or memory.oom_control (v1). One read
 * of a small file; any thread. ERR_NOT_FOUND when there is no count.
 */
int oomfile_read(const char *path, uint64_t *ret, struct err *e);

/* The file's name in a memory group's folder. */
const char *oomfile_name(int cgroup_version);

#endif
