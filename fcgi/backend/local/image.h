/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_LOCAL_IMAGE_H
#define BACKEND_LOCAL_IMAGE_H

#include "backend/backend.h"

/*
 * The root file systems under DATA_DIR/images/<image>/, a 0700 folder: set-id
 * files in them are nobody's on the host. `rootfs` is the tree or a link to it.
 * The default image is made with mmdebstrap from the distribution's packages, in
 * a folder named by its recipe ("r-<hash>"): a changed recipe makes another one,
 * and sandboxes that have files keep the tree they began with. It is made aside
 * and renamed when whole, so a crash leaves none half made, only the one aside. Where
 * several servers share the folder by a link, one makes it and the others wait.
 */
#define IMAGE_ASIDE ".new"

/* Makes it if it is missing; *ret = "<image>/<folder>", relative to images/. */
int image_ensure(const struct conf *c, backend_progress_fn *progress, void *arg,
		 char **ret, struct err *e);

/* True if s is fit to be the name of an image. Pure. */
bool image_name_ok(const char *s);

#endif
