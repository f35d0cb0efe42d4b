/* SPDX-License-Identifier: MIT */
#include "base/id.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

void id_random_bytes(void *out, size_t n)
{
	unsigned char *p = out;
	ssize_t got;

	while (n > 0) {
		got = getrandom(p, n, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			abort();
		p += got;
		n -= (size_t)got;
	}
}

static const char digits[] = "0123456789abcdef";

void id_hex_encode(const void *p, size_t n, char *out)
{
	const unsigned char *b = p;
	size_t i;

	for (i = 0; i < n; i++) {
		out[2 * i] = digits[b[i] >> 4];
		out[2 * i + 1] = digits[b[i] & 15];
	}
	out[2 * n] = '\0';
}

void id_hex_decode(const char *hex, size_t n, uint8_t *out)
{
	size_t i;

	for (i = 0; i < n; i++)
		out[i] = (uint8_t)((strchr(digits, hex[2 * i]) - digits) << 4 |
				   (strchr(digits, hex[2 * i + 1]) - digits));
}

void id_random_hex(char *out, size_t hex_len)
{
	unsigned char raw[64];

	assert(hex_len % 2 == 0 && hex_len / 2 <= sizeof raw);
	id_random_bytes(raw, hex_len / 2);
	id_hex_encode(raw, hex_len / 2, out);
}

void id_new_run(char out[static ID_RUN_LEN + 1])
{
	enum { TIME_BYTES = 6, TIME_BITS = 8 * TIME_BYTES };
	unsigned char raw[ID_HEX_LEN / 2];
	int64_t now = clock_now_ms();

	for (int i = 0; i < TIME_BYTES; i++)
		raw[i] = (unsigned char)(now >> (TIME_BITS - 8 * (i + 1)));
	id_random_bytes(raw + TIME_BYTES, sizeof raw - TIME_BYTES);
	snprintf(out, ID_RUN_LEN + 1, "run_");
	id_hex_encode(raw, sizeof raw, out + 4);
}

void id_new_session(char out[static ID_HEX_LEN + 1])
{
	id_random_hex(out, ID_HEX_LEN);
}

bool id_is_hex(const char *s, size_t n)
{
	return strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

bool id_is_run(const char *s)
{
	return strncmp(s, "run_", 4) == 0 && id_is_hex(s + 4, ID_HEX_LEN);
}
