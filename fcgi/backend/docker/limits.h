/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_DOCKER_LIMITS_H
#define BACKEND_DOCKER_LIMITS_H

#include <jansson.h>
#include <stdint.h>

#include "backend/backend.h"
#include "base/buf.h"

/*
 * What a container may use at most, as the engine's API says it. All pure.
 */
struct limits {
	int64_t nano_cpus, memory, pids; /* 0: no limit */
};

struct limits limits_make(double cpu_cores, int64_t memory_mb, int64_t pids);

/* Of the HostConfig in a container's description. */
struct limits limits_parse(const json_t *host);

/* Into the HostConfig of a new container; no swap besides the memory. */
void limits_put(const struct limits *l, json_t *host);

/* All that the engine's machine has, by its description of itself. */
struct limits limits_host(const json_t *info);

/*
 * The body of the update that makes `want` of `has`; the caller's, NULL: nothing is to
 * be done. The engine takes 0 for "as it is", so a limit that is taken away becomes
 * what the host has; where that is not known it stays.
 */
json_t *limits_change(const struct limits *has, const struct limits *want,
		      const struct limits *host);

/*
 * Appends what the engine keeps no limit of, by its description of itself: "memory,
 * processes"; nothing when it keeps all.
 */
void limits_unkept(const json_t *info, struct buf *words);

#endif
