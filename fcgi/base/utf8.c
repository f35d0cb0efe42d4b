/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/*
 * Length of the whole character at p (1 to 4). Else 0, and *ret_bad is how many
 * bytes are a well-begun but broken or cut character (at least 1), *ret_cut
 * whether n ended in the middle of it.
 */
static size_t char_at(const uint8_t *p, size_t n, size_t *ret_bad, bool *ret_cut)
{
	uint8_t lo = 0x80, hi = 0xbf;
	size_t want, i;

	*ret_bad = 1;
	*ret_cut = false;
	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	want = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		lo = 0xa0; /* overlong */
	else if (p[0] == 0xed)
		hi = 0x9f; /* surrogates */
	else if (p[0] == 0xf0)
		lo = 0x90; /* overlong */
	else if (p[0] == 0xf4)
		hi = 0x8f; /* above U+10FFFF */
	for (i = 1; i < want && i < n; i++) {
		if (p[i] < lo || p[i] > hi)
			return 0;
		*ret_bad = i + 1;
		lo = 0x80;
		hi = 0xbf;
	}
	*ret_cut = i < want;
	return i < want ? 0 : want;
}

size_t utf8_valid_prefix(const char *p, size_t n)
{
	size_t at = 0, len, bad;
	bool cut;

	while (at < n) {
		len = char_at((const uint8_t *)p + at, n - at, &bad, &cut);
		if (len == 0)
			break;
		at += len;
	}
	return at;
}

bool utf8_is_valid(const char *p, size_t n)
{
	return utf8_valid_prefix(p, n) == n;
}

size_t utf8_incomplete_tail(const char *p, size_t n)
{
	size_t back, bad;
	bool cut;

	for (back = 1; back <= 3 && back <= n; back++) {
		uint8_t c = (uint8_t)p[n - back];

		if (c < 0x80)
			return 0;
		if (c < 0xc0)
			continue; /* a continuation byte: its start is further back */
		char_at((const uint8_t *)p + n - back, back, &bad, &cut);
		return cut && bad == back ? back : 0;
	}
	return 0;
}

size_t utf8_count(const char *p, size_t n)
{
	size_t i, count = 0;

	for (i = 0; i < n; i++)
		count += ((uint8_t)p[i] & 0xc0) != 0x80;
	return count;
}

void utf8_settle(char *s)
{
	size_t n = strlen(s), at = 0;

	n -= utf8_incomplete_tail(s, n);
	s[n] = '\0';
	while ((at += utf8_valid_prefix(s + at, n - at)) < n)
		s[at++] = '?';
}

void utf8_add_repaired(struct buf *b, const char *p, size_t n)
{
	size_t good, bad;
	bool cut;

	while (n > 0) {
		good = utf8_valid_prefix(p, n);
		buf_add(b, p, good);
		p += good;
		n -= good;
		if (n == 0)
			return;
		char_at((const uint8_t *)p, n, &bad, &cut);
		buf_puts(b, "\xef\xbf\xbd");
		p += bad;
		n -= bad;
	}
}
