/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdint.h>

#include "net/httphead.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a head is does not depend on what follows it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct httphead h, again;

	if (httphead_parse((const char *)data, size, &h) != HTTPHEAD_OK)
		return 0;
	assert(h.len <= size && h.status >= 100 && h.status <= 599);
	assert(httphead_parse((const char *)data, h.len, &again) == HTTPHEAD_OK);
	assert(again.len == h.len && again.content_length == h.content_length);
	return 0;
}
