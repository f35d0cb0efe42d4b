/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_DOCKER_NETWORK_H
#define BACKEND_DOCKER_NETWORK_H

#include "backend/docker/docker.h"

/*
 * SANDBOX_NETWORK_MODE `bridge`: networks of this instance's own, on which sandboxes do
 * not reach each other. Docker keeps the containers of a network apart, so one serves
 * all. Podman keeps only networks apart, so there each sandbox has one of its own,
 * which comes and goes with it and has its name. Other modes are taken as they are, and
 * a named network must be there.
 */
int network_open(struct docker *d, struct err *e);

/* The NetworkMode of a sandbox. Pure. */
const char *network_of(const struct docker *d, const char *sandbox);

/*
 * Makes a sandbox's network; that of all again, when someone removed it. Any thread,
 * after network_open().
 */
int network_ensure(struct docker *d, const char *sandbox, struct err *e);

/* A sandbox is gone, and with it what was its alone. */
void network_forget(struct docker *d, const char *sandbox);

/* Those of sandboxes that are not in the list go. */
void network_tidy(struct docker *d, const struct sandbox_list *all);

/* Removes that of all; quietly not, while a container is on it. */
void network_remove(struct docker *d);

/* The name of the i-th in an engine's list, where it may be a sandbox's; NULL. Pure. */
const char *network_listed(const json_t *list, size_t i);

#endif
