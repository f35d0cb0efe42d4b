/* SPDX-License-Identifier: MIT */
#ifndef STORE_ARENA_H
#define STORE_ARENA_H

#include <stddef.h>

/*
 * The memory of one result: many small strings, freed at once. Blocks double as
 * the result grows. Not shared between threads.
 */
struct store_arena;

struct store_arena *arena_new(void);
void arena_free(struct store_arena *a); /* NULL is fine */

/* n bytes of p and a NUL. */
char *arena_dup(struct store_arena *a, const void *p, size_t n);

static inline void arena_freep(struct store_arena **a)
{
	arena_free(*a);
}
#define AUTO_ARENA __attribute__((cleanup(arena_freep))) struct store_arena

#endif
