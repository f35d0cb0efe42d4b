/* SPDX-License-Identifier: MIT */
#ifndef MCP_CUT_H
#define MCP_CUT_H

#include <stddef.h>

/*
 * Long output for a model: its beginning and, three times as much, its end,
 * because that is where errors are. Pure.
 */
struct cut {
	size_t head; /* bytes to show from the start */
	size_t tail; /* bytes to show at the end; 0: head is all */
};

struct cut cut_middle(size_t n, size_t max);

/* Bytes (0 to 3) at the start of p that end a character which began before p. */
size_t cut_partial_start(const char *p, size_t n);

#endif
