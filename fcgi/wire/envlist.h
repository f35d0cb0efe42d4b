/* SPDX-License-Identifier: MIT */
#ifndef WIRE_ENVLIST_H
#define WIRE_ENVLIST_H

#include <jansson.h>

#include "base/err.h"

/*
 * The environment of a command from a tool's arguments: an object of strings, or
 * an array of "KEY=VALUE". Names are [A-Za-z_][A-Za-z0-9_]*, one entry is less
 * than the kernel's MAX_ARG_STRLEN, all together at most 1 MiB. Pure.
 */
enum {
	ENV_ENTRIES_MAX = 4096,
	ENV_BYTES_MAX = 1024 * 1024,
	EXEC_STRING_MAX = 128 * 1024 - 1, /* MAX_ARG_STRLEN without its NUL */
};

/*
 * Checks value (NULL: nothing) and makes an object of strings of it, new for the
 * caller. The last of equal names wins.
 */
int envlist_parse(const json_t *value, const char *name, json_t **ret, struct err *e);

/*
 * Two such objects, `over` laid on base, as a NULL-terminated list of KEY=VALUE
 * for the caller to strv_free(). *io_bytes grows by its bytes.
 */
int envlist_merge(const json_t *base, const json_t *over, const char *name, char ***ret,
		  size_t *io_bytes, struct err *e);

#endif
