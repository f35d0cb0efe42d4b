/* SPDX-License-Identifier: MIT */
#include "base/sha1.h"

#include <sha1.h>

_Static_assert(SHA1_LEN == SHA1_DIGEST_LENGTH, "the header's number is libmd's");

void sha1_raw(const void *p, size_t n, uint8_t out[static SHA1_LEN])
{
	SHA1_CTX ctx;

	SHA1Init(&ctx);
	SHA1Update(&ctx, p, n);
	SHA1Final(out, &ctx);
}
