/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_DOCKER_REGISTRYAUTH_H
#define BACKEND_DOCKER_REGISTRYAUTH_H

#include <jansson.h>

/*
 * Credentials for a pull, from the `auths` of Docker's own configuration file
 * ($DOCKER_CONFIG/config.json, else ~/.docker/config.json). Credential helpers are
 * programs of the client and are not run.
 */

/* "X-Registry-Auth: …" for an image, to free(); NULL: none are known. */
char *registryauth_header(const char *reference);

/* The registry's name of a reference, as the file's keys have it; to free(). Pure. */
char *registryauth_registry(const char *reference);

/* The header from a parsed configuration; NULL: it has none. Pure. */
char *registryauth_of(const json_t *config, const char *registry);

#endif
