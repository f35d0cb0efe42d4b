/* SPDX-License-Identifier: MIT */
#include "base/base64.h"

#include <stdint.h>
#include <string.h>

static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			       "0123456789+/";
static const char for_urls[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			       "0123456789-_";

static void encode(struct buf *b, const unsigned char *p, size_t n, const char *digits,
		   bool pads)
{
	char four[4];

	for (; n > 0; p += 3) {
		size_t have = n < 3 ? n : 3, len = have + 1;
		uint32_t v = (uint32_t)p[0] << 16 | (uint32_t)(have > 1 ? p[1] : 0) << 8 |
			     (have > 2 ? p[2] : 0);

		for (size_t i = 0; i < 4; i++)
			four[i] = i < len ? digits[v >> (18 - 6 * i) & 63] : '=';
		buf_add(b, four, pads ? 4 : len);
		n -= have;
	}
}

void base64_add(struct buf *b, const void *p, size_t n)
{
	encode(b, p, n, standard, true);
}

void base64url_add(struct buf *b, const void *p, size_t n)
{
	encode(b, p, n, for_urls, false);
}

/* -1: no digit. */
static int digit(char c)
{
	const char *at = c ? strchr(standard, c) : NULL;

	if (c == '-' || c == '_')
		return c == '-' ? 62 : 63;
	return at ? (int)(at - standard) : -1;
}

int base64_decode(struct buf *b, const char *p, size_t n, struct err *e)
{
	uint32_t v = 0;
	int bits = 0;

	if (n % 4 == 0)
		for (int i = 0; i < 2 && n > 0 && p[n - 1] == '='; i++)
			n--;
	if (n % 4 == 1)
		return err_set(e, ERR_INVALID, "base64 of an impossible length");
	for (size_t i = 0; i < n; i++) {
		int d = digit(p[i]);
		char byte;

		if (d < 0)
			return err_set(e, ERR_INVALID, "no base64 at byte %zu", i);
		v = v << 6 | (uint32_t)d;
		bits += 6;
		if (bits < 8)
			continue;
		bits -= 8;
		byte = (char)(v >> bits & 0xff);
		buf_add(b, &byte, 1);
	}
	return 0;
}
