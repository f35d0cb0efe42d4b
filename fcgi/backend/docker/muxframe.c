/* SPDX-License-Identifier: MIT */
#include "backend/docker/muxframe.h"

#include <string.h>

enum { STREAM_OUT = 1, STREAM_ERR = 2, STREAM_SYSTEM = 3 };

static int take_head(struct muxframe *m)
{
	const uint8_t *h = m->head;

	if (h[0] < STREAM_OUT || h[0] > STREAM_SYSTEM || h[1] || h[2] || h[3])
		return -1;
	m->left =
		(uint32_t)h[4] << 24 | (uint32_t)h[5] << 16 | (uint32_t)h[6] << 8 | h[7];
	return 0;
}

static void keep_words(struct muxframe *m, const char *p, size_t n)
{
	size_t room = MUXFRAME_WORDS - m->nwords;

	n = n < room ? n : room;
	memcpy(m->words + m->nwords, p, n);
	m->nwords += n;
}

int muxframe_feed(struct muxframe *m, const char *p, size_t n, struct buf *out)
{
	while (n > 0) {
		size_t part = m->left < n ? m->left : n;

		if (part > 0 && m->head[0] == STREAM_OUT)
			buf_add(out, p, part);
		else if (part > 0)
			keep_words(m, p, part);
		p += part;
		n -= part;
		m->left -= (uint32_t)part;
		if (m->left > 0 || n == 0)
			continue;
		m->head[m->nhead++] = (uint8_t)*p++;
		n--;
		if (m->nhead < sizeof m->head)
			continue;
		m->nhead = 0;
		if (take_head(m) < 0)
			return -1;
	}
	return 0;
}
