/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_DOCKER_CONTAINER_H
#define BACKEND_DOCKER_CONTAINER_H

#include <jansson.h>
#include <stdbool.h>

#include "backend/docker/docker.h"
#include "backend/docker/limits.h"

/* One container, as the engine describes it. Owned strings. */
struct container {
	char *id;
	char *instance, *fingerprint, *image; /* of its labels; "" when absent */
	bool running, paused;
	int pid;       /* of PID 1 as the engine's host sees it; 0: none */
	int exit_code; /* -1: the engine does not know; one that did not begin has none */
	char *error;   /* why its last start failed; "" */
	struct limits limits;
};
void container_release(struct container *c);
#define AUTO_CONTAINER __attribute__((cleanup(container_release))) struct container

/* Reads an inspect answer; ERR_BACKEND when it is not one. Pure. */
int container_parse(const json_t *root, struct container *ret, struct err *e);

/*
 * By name. ERR_NOT_FOUND: there is none. ERR_CONFLICT: there is one that is not
 * this instance's, and nobody may touch it.
 */
int container_find(struct docker *d, const char *name, struct container *ret,
		   struct err *e);

/* The body of a create call; the caller's. Pure. */
json_t *container_body(const struct docker *d, const struct sandbox_spec *spec);

int container_create(struct docker *d, const struct sandbox_spec *spec, struct err *e);
int container_start(struct docker *d, const char *name, struct err *e);
int container_unpause(struct docker *d, const char *name, struct err *e);
int container_stop(struct docker *d, const char *name, struct err *e);

/* Other limits from now on, also while it runs; see limits_change(). */
int container_update(struct docker *d, const char *name, const json_t *body,
		     struct err *e);

/* With its volumes, whatever it is at. Not there: fine. */
int container_remove(struct docker *d, const char *name, struct err *e);

/*
 * Reads an answer of the list call into sandbox infos; image_id (NULL: not known)
 * is the one that new containers are made from. Pure.
 */
int container_parse_list(const json_t *root, const char *image_id,
			 struct sandbox_list *ret, struct err *e);
int container_list(struct docker *d, const char *image_id, struct sandbox_list *ret,
		   struct err *e);

#endif
