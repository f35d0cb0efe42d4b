/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Repaired text is valid; a whole text has no tail; prefix and tail never overlap. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data;
	AUTO_BUF b = BUF_INIT(16 * 1024 * 1024);
	size_t valid = utf8_valid_prefix(p, size), tail = utf8_incomplete_tail(p, size);

	utf8_add_repaired(&b, p, size);
	assert(utf8_is_valid(b.p, b.len));
	assert(valid + tail <= size);
	if (valid == size)
		assert(tail == 0 && b.len == size && memcmp(b.p, p, size) == 0);
	return 0;
}
