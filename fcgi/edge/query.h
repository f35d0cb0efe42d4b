/* SPDX-License-Identifier: MIT */
#ifndef EDGE_QUERY_H
#define EDGE_QUERY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/*
 * The parts of a request target as RFC 3986 and the HTML form encoding have
 * them: a path whose segments and a query whose values are percent-encoded.
 * Pure and bounded; the bytes are a stranger's (fuzzed). A decoded value never
 * holds a NUL byte.
 */

/* "path?query" into its halves; no '?': an empty query. */
void target_split(struct str target, struct str *ret_path, struct str *ret_query);

/*
 * Decodes s into dst with a NUL; '+' is a blank only in a query. -1: a '%' without
 * two hex digits, a NUL byte, or no room.
 */
int url_decode(struct str s, bool is_query, char *dst, size_t size);

enum query_result { QUERY_ABSENT, QUERY_FOUND, QUERY_BAD };

/* The first value of `name` in a query; BAD as for url_decode(). */
enum query_result query_get(struct str query, const char *name, char *dst, size_t size);

#endif
