/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_DOCKER_OOMFILES_H
#define BACKEND_DOCKER_OOMFILES_H

#include <stdint.h>

#include "base/err.h"

/*
 * Where the kernel counts the oom kills of a container, for engines whose
 * containers are this machine's: the name of a sandbox to a file. Any thread.
 */
struct oomfiles;

struct oomfiles *oomfiles_new(void);
void oomfiles_free(struct oomfiles *o); /* NULL is fine */

/*
 * Finds the file by the process that the engine calls the container's first; a pid
 * whose control group does not name the container is another machine's, or another
 * pid namespace's, and the count stays unknown.
 */
void oomfiles_learn(struct oomfiles *o, const char *name, int pid, const char *id);
void oomfiles_forget(struct oomfiles *o, const char *name);

/* ERR_NOT_FOUND: unknown. One read of a small file. */
int oomfiles_read(struct oomfiles *o, const char *name, uint64_t *ret, struct err *e);

/* The file for the text of a /proc/<pid>/cgroup, to free(); NULL: none. Pure. */
char *oomfiles_path(const char *cgroup_text, const char *id);

#endif
