/* SPDX-License-Identifier: MIT */
#include "mcp/cut.h"

struct cut cut_middle(size_t n, size_t max)
{
	struct cut c = {.head = n};

	if (n > max) {
		c.head = max / 4;
		c.tail = max - c.head;
	}
	return c;
}

size_t cut_partial_start(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && i < 3 && ((unsigned char)p[i] & 0xc0) == 0x80)
		i++;
	return i;
}
