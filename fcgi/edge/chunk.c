/* SPDX-License-Identifier: MIT */
#include "edge/chunk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct chunk *chunk_new(const void *p, size_t n)
{
	struct chunk *k = xmalloc(sizeof(*k) + n);

	assert(n <= UINT32_MAX);
	*k = (struct chunk){.refs = 1, .len = (uint32_t)n};
	if (n)
		memcpy(k->p, p, n);
	return k;
}

struct chunk *chunk_get(struct chunk *k)
{
	k->refs++;
	return k;
}

void chunk_put(struct chunk *k)
{
	if (k && --k->refs == 0)
		free(k);
}
