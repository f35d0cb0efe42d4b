/* SPDX-License-Identifier: MIT */
#ifndef BASE_PATTERNS_H
#define BASE_PATTERNS_H

#include "base/err.h"

/*
 * A comma list of POSIX extended regular expressions. A comma inside brackets,
 * parentheses or braces, or after a backslash, belongs to its expression. Immutable once
 * compiled; matching is safe from any thread.
 */
struct patterns;

/* ERR_INVALID names the expression and what is wrong with it. */
int patterns_compile(const char *list, struct patterns **ret, struct err *e);
void patterns_free(struct patterns *p);

/*
 * The first expression that matches somewhere in the text (^ and $ match at line
 * ends too), or NULL; borrowed from p.
 */
const char *patterns_match(const struct patterns *p, const char *text);

#endif
