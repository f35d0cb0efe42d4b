/* SPDX-License-Identifier: MIT */
#include "base/sha256.h"

#include <sha2.h>
#include <stdint.h>

#include "base/id.h"

void sha256_hex(const void *p, size_t n, char out[static SHA256_HEX_LEN + 1])
{
	SHA2_CTX ctx;
	uint8_t raw[SHA256_DIGEST_LENGTH];

	SHA256Init(&ctx);
	SHA256Update(&ctx, p, n);
	SHA256Final(raw, &ctx);
	id_hex_encode(raw, sizeof raw, out);
}
