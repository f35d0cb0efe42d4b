/* SPDX-License-Identifier: MIT */
#include "wire/idenc.h"

#include <string.h>

#include "base/id.h"
#include "base/sha256.h"

enum { PLAIN_MAX = IDENC_SIZE - 1, TENANT_MAX = 64 };

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

bool idenc_is_run_id(const char *s)
{
	return id_is_run(s);
}

bool idenc_is_session_id(const char *s)
{
	return id_is_hex(s, ID_HEX_LEN);
}

bool idenc_is_tenant(const char *s)
{
	size_t n = strlen(s);

	return n >= 1 && n <= TENANT_MAX && strspn(s, tenant_set) == n && s[0] != '_' &&
	       s[0] != '-';
}
