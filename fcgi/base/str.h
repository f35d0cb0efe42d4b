/* SPDX-License-Identifier: MIT */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes one looks at and does not own; not NUL-terminated. Pure. */
struct str {
	const char *p;
	size_t n;
};

struct str str_of(const char *s);
struct str str_trim(struct str s); /* without blanks, tabs, CR, LF at both ends */
bool str_eq(struct str s, const char *z);

/*
 * Takes what is before the first `sep` off the front of *rest. False when *rest
 * was used up (p == NULL). "a,,b" gives "a", "", "b"; "" gives "" once.
 */
bool str_cut(struct str *rest, char sep, struct str *ret);

bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);

/* True if the comma list has the word (blanks around words do not count). */
bool str_list_has(const char *list, const char *word);

/* A number of things in words into dst, which is returned: "1 byte", "2 bytes". */
enum { STR_COUNT_SIZE = 64 };
const char *str_count(char dst[static STR_COUNT_SIZE], long long n, const char *one,
		      const char *many);

/* Compares secrets: time depends on the lengths only. */
bool str_same_secret(struct str a, struct str b);

#endif
