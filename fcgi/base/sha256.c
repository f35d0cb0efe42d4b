/* SPDX-License-Identifier: MIT */
#include "base/sha256.h"

#include <sha2.h>
#include <stdint.h>
#include <string.h>

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

/* The key as one block; one that is longer is hashed first. */
static void key_block(const void *key, size_t n,
		      uint8_t block[static SHA256_BLOCK_LENGTH])
{
	SHA2_CTX ctx;

	memset(block, 0, SHA256_BLOCK_LENGTH);
	if (n <= SHA256_BLOCK_LENGTH) {
		memcpy(block, key, n);
		return;
	}
	SHA256Init(&ctx);
	SHA256Update(&ctx, key, n);
	SHA256Final(block, &ctx);
}

/* One of the two passes: of the block, each byte changed by pad, then p. */
static void pass(const uint8_t *block, uint8_t pad, const void *p, size_t n,
		 uint8_t raw[static SHA256_DIGEST_LENGTH])
{
	uint8_t padded[SHA256_BLOCK_LENGTH];
	SHA2_CTX ctx;

	for (size_t i = 0; i < sizeof padded; i++)
		padded[i] = (uint8_t)(block[i] ^ pad);
	SHA256Init(&ctx);
	SHA256Update(&ctx, padded, sizeof padded);
	SHA256Update(&ctx, p, n);
	SHA256Final(raw, &ctx);
}

void sha256_hmac_hex(const void *key, size_t nkey, const void *p, size_t n,
		     char out[static SHA256_HEX_LEN + 1])
{
	uint8_t block[SHA256_BLOCK_LENGTH];
	uint8_t inner[SHA256_DIGEST_LENGTH], raw[SHA256_DIGEST_LENGTH];

	key_block(key, nkey, block);
	pass(block, 0x36, p, n, inner);
	pass(block, 0x5c, inner, sizeof inner, raw);
	id_hex_encode(raw, sizeof raw, out);
}
