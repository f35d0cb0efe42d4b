/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_DOCKER_DOCKERIGNORE_H
#define BACKEND_DOCKER_DOCKERIGNORE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A .dockerignore as Docker's own client reads it: a pattern a line, `#` comments,
 * `!` takes back, the last that fits decides; `*` and `?` stop at a slash, `**` does
 * not, and a folder that fits takes what is below it along. Pure.
 */
struct dockerignore {
	char **patterns; /* "a/b", "!c"; NULL-terminated */
	bool has_exceptions;
};

void dockerignore_parse(const char *text, size_t n, struct dockerignore *ret);
void dockerignore_release(struct dockerignore *d);

/* path: relative, of no "." or "..", without a slash at its end. */
bool dockerignore_matches(const struct dockerignore *d, const char *path);

/* Does one pattern (without its `!`) fit the whole of n bytes? */
bool dockerignore_fits(const char *pattern, const char *path, size_t n);

#endif
