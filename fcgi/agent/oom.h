/* SPDX-License-Identifier: MIT */
#ifndef AGENT_OOM_H
#define AGENT_OOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * How many processes of this sandbox were killed for memory, by its own control
 * group as engines show it in a container (version 1 or 2). For runners that cannot
 * look at it from outside.
 */

/* CLOEXEC; -1: it is not to be seen here, or it is not ours. */
int oom_open(void);

/* fd: of oom_open(). False: unknown. */
bool oom_read(int fd, uint64_t *ret);

/* The count in a memory.events or memory.oom_control. Pure. */
bool oom_parse(const char *text, size_t n, uint64_t *ret);

#endif
