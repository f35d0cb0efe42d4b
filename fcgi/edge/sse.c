/* SPDX-License-Identifier: MIT */
#include "edge/sse.h"

#include "edge/reply.h"

enum { HEAD_MAX = 8192 };

void sse_add_head(struct buf *b, const struct buf *headers)
{
	AUTO_BUF lines = BUF_INIT(HEAD_MAX);
	struct reply r = {.status = 200, .type = "text/event-stream"};

	buf_puts(&lines, "X-Accel-Buffering: no\r\n");
	buf_add(&lines, headers->p, headers->len);
	r.headers = lines.p;
	reply_add_head(&r, -1, b);
}
