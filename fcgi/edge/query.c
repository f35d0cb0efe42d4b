/* SPDX-License-Identifier: MIT */
#include "edge/query.h"

#include <string.h>

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The byte at s[*at], which moves on; -1: not a byte a value may hold. */
static int decode_byte(struct str s, size_t *at, bool is_query)
{
	char c = s.p[(*at)++];
	int high, low;

	if (c == '+' && is_query)
		return ' ';
	if (c != '%')
		return c == '\0' ? -1 : (unsigned char)c;
	if (s.n - *at < 2)
		return -1;
	high = hex_value(s.p[*at]);
	low = hex_value(s.p[*at + 1]);
	*at += 2;
	if (high < 0 || low < 0 || high + low == 0)
		return -1;
	return high * 16 + low;
}

void target_split(struct str target, struct str *ret_path, struct str *ret_query)
{
	const char *mark = target.n ? memchr(target.p, '?', target.n) : NULL;

	if (!mark) {
		*ret_path = target;
		*ret_query = (struct str){target.p + target.n, 0};
		return;
	}
	*ret_path = (struct str){target.p, (size_t)(mark - target.p)};
	*ret_query = (struct str){mark + 1, target.n - ret_path->n - 1};
}

int url_decode(struct str s, bool is_query, char *dst, size_t size)
{
	size_t at = 0, len = 0;

	while (at < s.n) {
		int byte = decode_byte(s, &at, is_query);

		if (byte < 0 || len + 1 >= size)
			return -1;
		dst[len++] = (char)byte;
	}
	if (len >= size)
		return -1;
	dst[len] = '\0';
	return 0;
}

enum query_result query_get(struct str query, const char *name, char *dst, size_t size)
{
	struct str pair, key;

	while (str_cut(&query, '&', &pair)) {
		struct str value = pair;

		if (!str_cut(&value, '=', &key) || !str_eq(key, name))
			continue;
		if (!value.p)
			value = (struct str){"", 0};
		return url_decode(value, true, dst, size) < 0 ? QUERY_BAD : QUERY_FOUND;
	}
	return QUERY_ABSENT;
}
