/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "backend/docker/muxframe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A stream gives the same whole and in pieces. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_BUF whole = BUF_INIT(1 << 20), pieces = BUF_INIT(1 << 20);
	struct muxframe a = {0}, b = {0};
	size_t i, cut = size ? data[0] % 13 + 1 : 1;
	int ra = muxframe_feed(&a, (const char *)data, size, &whole), rb = 0;

	for (i = 0; i < size && rb == 0; i += cut)
		rb = muxframe_feed(&b, (const char *)data + i,
				   size - i < cut ? size - i : cut, &pieces);
	assert(ra == rb);
	assert(whole.len == pieces.len && memcmp(whole.p, pieces.p, whole.len) == 0);
	assert(strcmp(a.words, b.words) == 0);
	return 0;
}
