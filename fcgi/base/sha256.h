/* SPDX-License-Identifier: MIT */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stddef.h>

enum { SHA256_HEX_LEN = 64 };

/* The SHA-256 of n bytes as 64 lower-case hex digits and a NUL. Any thread. */
void sha256_hex(const void *p, size_t n, char out[static SHA256_HEX_LEN + 1]);

/* The HMAC (RFC 2104) of n bytes with a key, in the same form. Any thread. */
void sha256_hmac_hex(const void *key, size_t nkey, const void *p, size_t n,
		     char out[static SHA256_HEX_LEN + 1]);

#endif
