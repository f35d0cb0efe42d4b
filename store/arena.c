/* SPDX-License-Identifier: MIT */
#include "store/arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { BLOCK_FIRST = 1024, BLOCK_MAX = 256 * 1024 };

struct block {
	struct block *next;
	size_t used, cap;
	char data[];
};

struct store_arena {
	struct block *head;
	size_t block_size; /* of the next one */
};

struct store_arena *arena_new(void)
{
	struct store_arena *a = xcalloc(1, sizeof *a);

	a->block_size = BLOCK_FIRST;
	return a;
}

void arena_free(struct store_arena *a)
{
	struct block *next;

	if (!a)
		return;
	for (struct block *b = a->head; b; b = next) {
		next = b->next;
		free(b);
	}
	free(a);
}

static struct block *block_with(struct store_arena *a, size_t n)
{
	struct block *b = a->head;

	if (b && b->cap - b->used >= n)
		return b;
	size_t cap = n > a->block_size ? n : a->block_size;
	if (a->block_size < BLOCK_MAX)
		a->block_size *= 2;
	b = xmalloc(sizeof *b + cap);
	*b = (struct block){.next = a->head, .cap = cap};
	a->head = b;
	return b;
}

char *arena_dup(struct store_arena *a, const void *p, size_t n)
{
	struct block *b = block_with(a, n + 1);
	char *out = b->data + b->used;

	if (n)
		memcpy(out, p, n);
	out[n] = '\0';
	b->used += n + 1;
	return out;
}
