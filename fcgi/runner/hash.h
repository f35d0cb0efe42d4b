/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_HASH_H
#define RUNNER_HASH_H

#include <stdint.h>

/* FNV-1a, for the runner's own tables. */
static inline uint32_t hash_string(const char *s)
{
	uint32_t h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619u;
	return h;
}

#endif
