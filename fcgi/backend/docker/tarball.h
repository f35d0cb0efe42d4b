/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_DOCKER_TARBALL_H
#define BACKEND_DOCKER_TARBALL_H

#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"

/*
 * A small tar archive in memory, as the engine takes files in: ustar, owner root.
 * A name of 100 bytes or more is GNU's extension. Pure; the buffer's `over` tells of
 * too much.
 */
void tarball_dir(struct buf *b, const char *name, mode_t mode); /* ends in '/' */
void tarball_file(struct buf *b, const char *name, mode_t mode, const void *p, size_t n);
void tarball_link(struct buf *b, const char *name, const char *to);
void tarball_end(struct buf *b);

#endif
