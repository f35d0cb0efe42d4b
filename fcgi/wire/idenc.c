/* SPDX-License-Identifier: MIT */
#include "wire/idenc.h"

#include <string.h>

#include "base/sha256.h"

enum { PLAIN_MAX = IDENC_SIZE - 1, TENANT_MAX = 64, HEX_ID = 32 };

static const char lower_hex[] = "0123456789abcdef";
static const char tenant_set[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
static const char plain_set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				"0123456789._-";

bool idenc_is_plain(const char *identifier)
{
	size_t n = strlen(identifier);

	return n >= 1 && n <= PLAIN_MAX && identifier[0] != '.' &&
	       strspn(identifier, plain_set) == n;
}

void idenc(char dst[static IDENC_SIZE], const char *identifier)
{
	if (idenc_is_plain(identifier)) {
		memcpy(dst, identifier, strlen(identifier) + 1);
		return;
	}
	dst[0] = '~';
	sha256_hex(identifier, strlen(identifier), dst + 1);
}

static bool is_hex_id(const char *s)
{
	return strlen(s) == HEX_ID && strspn(s, lower_hex) == HEX_ID;
}

bool idenc_is_run_id(const char *s)
{
	return strncmp(s, "run_", 4) == 0 && is_hex_id(s + 4);
}

bool idenc_is_session_id(const char *s)
{
	return is_hex_id(s);
}

bool idenc_is_tenant(const char *s)
{
	size_t n = strlen(s);

	return n >= 1 && n <= TENANT_MAX && strspn(s, tenant_set) == n && s[0] != '_' &&
	       s[0] != '-';
}
