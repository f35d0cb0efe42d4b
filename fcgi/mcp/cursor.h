/* SPDX-License-Identifier: MIT */
#ifndef MCP_CURSOR_H
#define MCP_CURSOR_H

#include <jansson.h>

#include "base/err.h"

/*
 * Cursors of lists: the key of the last one shown, in base64 for urls. A client
 * that makes one up gets a place in its own list, nothing else. Pure.
 */
json_t *cursor_make(const char *key);
/* v NULL, null or "": *ret is NULL. Else the key, the caller's to free. */
int cursor_take(const json_t *v, char **ret, struct err *e);

#endif
