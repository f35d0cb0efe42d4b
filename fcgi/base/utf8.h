/* SPDX-License-Identifier: MIT */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/*
 * UTF-8 as RFC 3629 has it: no surrogates, no overlong forms, nothing above
 * U+10FFFF. Pure.
 */

/* Bytes of the longest prefix that is whole, valid characters. */
size_t utf8_valid_prefix(const char *p, size_t n);
bool utf8_is_valid(const char *p, size_t n);

/*
 * Bytes (0 to 3) at the end of p that begin a character which more bytes could
 * complete. 0 when the end is whole, or is wrong whatever follows.
 */
size_t utf8_incomplete_tail(const char *p, size_t n);

/* Characters in n bytes of valid UTF-8. */
size_t utf8_count(const char *p, size_t n);

/*
 * Make a string valid in place, for text that was cut to fit: a character that is
 * cut at the end goes, any other invalid byte becomes '?'.
 */
void utf8_settle(char *s);

/* Append p with U+FFFD for each maximal invalid part (Unicode 3.9, U+FFFD). */
void utf8_add_repaired(struct buf *b, const char *p, size_t n);

#endif
