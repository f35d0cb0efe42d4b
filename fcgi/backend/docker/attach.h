/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_DOCKER_ATTACH_H
#define BACKEND_DOCKER_ATTACH_H

#include "backend/docker/docker.h"

/*
 * The stream to a container's agent: an exec of `agent connect` as root, hijacked,
 * and carried by the pump. Returns when the agent has said its first bytes, so a
 * stream that is handed out is one that works. ERR_NOT_FOUND: it does not run.
 */
int attach_agent(struct docker *d, const char *name, int *ret_fd, struct err *e);

/* The id in the answer to the making of an exec, which goes into a path; NULL: none. */
const char *attach_exec_id(const json_t *answer);

#endif
