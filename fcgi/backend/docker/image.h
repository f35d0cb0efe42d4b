/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_DOCKER_IMAGE_H
#define BACKEND_DOCKER_IMAGE_H

#include "backend/docker/docker.h"

/*
 * The image of the sandboxes in the engine. A missing one is built or pulled, once,
 * however many calls wait for it.
 */

/* SANDBOX_IMAGE as a full reference, with a tag; the caller's. Pure. */
char *image_reference(const char *image);

/* ERR_BACKEND: what an inspect answer describes is for other processors. Pure. */
int image_fits(const json_t *image, const char *engine_arch, struct err *e);

/* Says in the log how it goes. ERR_BACKEND when its processor is another one. */
int image_ensure_present(struct docker *d, struct err *e);

/*
 * The id it has now, the caller's; NULL when it is not there. A container tells of
 * the one it was made from.
 */
int image_id(struct docker *d, char **ret, struct err *e);

#endif
