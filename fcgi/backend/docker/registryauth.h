/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_DOCKER_REGISTRYAUTH_H
#define BACKEND_DOCKER_REGISTRYAUTH_H

#include <jansson.h>
#include <stdbool.h>

/*
 * Credentials for registries, as `docker login` and `podman login` store them: from
 * the `auths` of $DOCKER_CONFIG/config.json (else ~/.docker/config.json), then of
 * containers/auth.json in $XDG_RUNTIME_DIR (else /run/containers/0/auth.json) and in
 * ~/.config. Credential helpers are programs of the client and are not run.
 */

/* "X-Registry-Auth: …" for an image, to free(); NULL: none are known. */
char *registryauth_header(const char *reference);

/* "X-Registry-Config: …" with all of them, for the FROM of a build; NULL: none. */
char *registryauth_build_header(void);

/* Are credentials for it left to a helper that we do not run? */
bool registryauth_needs_helper(const char *reference);

/* The registry's name of a reference, as the file's keys have it; to free(). Pure. */
char *registryauth_registry(const char *reference);

/* The same from a parsed configuration. Pure. */
char *registryauth_of(const json_t *config, const char *registry);
char *registryauth_all_of(const json_t *config);
bool registryauth_has_helper(const json_t *config, const char *registry);

#endif
