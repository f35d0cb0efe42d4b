/* SPDX-License-Identifier: MIT */
#ifndef EDGE_CHUNK_H
#define EDGE_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Immutable bytes on their way out, counted, so that one encoded event is shared
 * by every client of its run. The count is not atomic: a chunk belongs to one
 * thread at a time (an accepting thread may make one and hand it over whole).
 */
struct chunk {
	uint32_t refs;
	uint32_t len;
	bool is_raw; /* finished FastCGI records; not wrapped in FCGI_STDOUT again */
	char p[];
};

/* A copy of n bytes (less than 4 GiB) with one reference. */
struct chunk *chunk_new(const void *p, size_t n);
struct chunk *chunk_get(struct chunk *k);
void chunk_put(struct chunk *k); /* NULL is fine */

#endif
