/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_DOCKER_DIRECT_H
#define BACKEND_DOCKER_DIRECT_H

#include "backend/docker/container.h"

/*
 * The short way to a container's agent, for an engine on this machine whose user
 * we may see into (root's): its socket, through the root of the container's first
 * process. No engine, shim or relay is between, so a command costs what it costs
 * locally, and an engine that hangs does not hold it up. What the container's root
 * may put there instead, and why it gains nothing by it: backend/agentsock.h.
 *
 * -1: this way is not open (another machine, pid or user namespace, gVisor); the
 * exec of attach.h always is. A descriptor that is handed out has the agent's first
 * bytes waiting.
 */
int direct_agent(const struct docker *d, const struct container *c, int *ret_fd,
		 struct err *e);

#endif
