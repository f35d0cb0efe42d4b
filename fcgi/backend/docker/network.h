/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_DOCKER_NETWORK_H
#define BACKEND_DOCKER_NETWORK_H

#include "backend/docker/docker.h"

/*
 * SANDBOX_NETWORK_MODE `bridge`: a network of this instance's own on which
 * containers do not reach each other. Sets d->network to it; other modes are taken
 * as they are, and a named network must be there.
 */
int network_open(struct docker *d, struct err *e);

/* Makes it again when someone removed it. Any thread, after network_open(). */
int network_ensure(struct docker *d, struct err *e);

/* Removes it; quietly not, while a container is on it. */
void network_remove(struct docker *d);

#endif
