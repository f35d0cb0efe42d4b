/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "backend/kubernetes/api/jsonstream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int collect(void *arg, const char *p, size_t n, struct err *e)
{
	(void)e;
	buf_add(arg, p, n);
	return 0;
}

/* Objects are the same however the stream was cut. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_BUF whole = BUF_INIT(1 << 20), pieces = BUF_INIT(1 << 20);
	struct jsonstream a = JSONSTREAM_INIT, b = JSONSTREAM_INIT;
	struct err ea = ERR_INIT, eb = ERR_INIT;
	const char *p = (const char *)data;
	int ra = jsonstream_feed(&a, p, size, collect, &whole, &ea), rb = 0;
	size_t i;

	for (i = 0; i < size && rb == 0; i++)
		rb = jsonstream_feed(&b, p + i, 1, collect, &pieces, &eb);
	assert(ra == rb);
	assert(whole.len == pieces.len && memcmp(whole.p, pieces.p, whole.len) == 0);
	jsonstream_release(&a);
	jsonstream_release(&b);
	return 0;
}
