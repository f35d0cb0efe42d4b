/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_DOCKER_CONTEXT_H
#define BACKEND_DOCKER_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * What is sent to the engine for a build, as a tar archive: the Dockerfile alone, or
 * the folder it lies in when it copies something from there, without what
 * .dockerignore names. At most CONTEXT_MAX bytes, which also bounds what a wrong path
 * (somebody's home) can send; more is ERR_LIMIT in words.
 */
enum { CONTEXT_MAX = 64 << 20, CONTEXT_DOCKERFILE_MAX = 1 << 20 };
#define CONTEXT_DOCKERFILE ".mcp-sandboxd.Dockerfile" /* its name in the archive */

/* tar: BUF_INIT(CONTEXT_MAX) */
int context_make(const char *dockerfile, struct buf *tar, struct err *e);

/* Does a COPY or ADD of the Dockerfile read from its folder? Pure. */
bool context_is_wanted(const char *text, size_t n);

#endif
