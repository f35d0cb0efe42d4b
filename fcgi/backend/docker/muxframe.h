/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_DOCKER_MUXFRAME_H
#define BACKEND_DOCKER_MUXFRAME_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * The framing of an attached stream without a terminal: 8 bytes, of which the
 * first names the stream (1 standard output, 2 standard error), three are zero and
 * four are the length, big-endian; then the payload. Standard output is the
 * stream's content; the first bytes of standard error are kept as words about what
 * went wrong. Pure.
 */
enum { MUXFRAME_WORDS = 256 };

struct muxframe {
	uint8_t head[8];
	unsigned nhead;
	uint32_t left; /* of the payload */
	char words[MUXFRAME_WORDS + 1];
	size_t nwords;
};

/* Appends the content in n bytes to out. -1: that is not this framing. */
int muxframe_feed(struct muxframe *m, const char *p, size_t n, struct buf *out);

#endif
