/* SPDX-License-Identifier: MIT */
#include "base/str.h"

#include <stdio.h>
#include <string.h>

struct str str_of(const char *s)
{
	return (struct str){s, strlen(s)};
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct str str_trim(struct str s)
{
	while (s.n && is_blank(s.p[0])) {
		s.p++;
		s.n--;
	}
	while (s.n && is_blank(s.p[s.n - 1]))
		s.n--;
	return s;
}

bool str_eq(struct str s, const char *z)
{
	return strlen(z) == s.n && (s.n == 0 || memcmp(s.p, z, s.n) == 0);
}

bool str_cut(struct str *rest, char sep, struct str *ret)
{
	const char *at;

	if (!rest->p)
		return false;
	at = rest->n ? memchr(rest->p, sep, rest->n) : NULL;
	if (!at) {
		*ret = *rest;
		*rest = (struct str){NULL, 0};
		return true;
	}
	*ret = (struct str){rest->p, (size_t)(at - rest->p)};
	rest->n -= ret->n + 1;
	rest->p = at + 1;
	return true;
}

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

bool str_list_has(const char *list, const char *word)
{
	struct str rest = str_of(list), item;

	while (str_cut(&rest, ',', &item))
		if (str_eq(str_trim(item), word))
			return true;
	return false;
}

const char *str_count(char dst[static STR_COUNT_SIZE], long long n, const char *one,
		      const char *many)
{
	snprintf(dst, STR_COUNT_SIZE, "%lld %s", n, n == 1 ? one : many);
	return dst;
}

bool str_same_secret(struct str a, struct str b)
{
	unsigned diff = 0;
	size_t i;

	if (a.n != b.n)
		return false;
	for (i = 0; i < a.n; i++)
		diff |= (unsigned char)(a.p[i] ^ b.p[i]);
	return diff == 0;
}
