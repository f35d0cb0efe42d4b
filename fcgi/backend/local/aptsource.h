/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_LOCAL_APTSOURCE_H
#define BACKEND_LOCAL_APTSOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/*
 * Where the packages of the default image come from: the same distribution as
 * this host's, by the host's own apt sources, whose keys are here for certain.
 */
enum { APT_SOURCES_MAX = 8 };

/* `wanted`, or when it is empty the code name of this host's release; to free(). */
int aptsource_suite(const char *wanted, char **ret, struct err *e);

/*
 * What mmdebstrap takes as sources: one line for the mirror when it is set, else
 * the host's files for that suite. NULL-terminated, for strv_free(); empty: none
 * fits, and mmdebstrap's own default is right.
 */
char **aptsource_list(const char *suite, const char *mirror);

/* True if the text of a sources file is the distribution's own for suite. Pure. */
bool aptsource_fits(const char *p, size_t n, const char *suite);

#endif
