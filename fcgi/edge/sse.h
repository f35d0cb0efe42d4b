/* SPDX-License-Identifier: MIT */
#ifndef EDGE_SSE_H
#define EDGE_SSE_H

#include "base/buf.h"

/* The head of an answer that is an event stream, with further header lines. Pure. */
void sse_add_head(struct buf *b, const struct buf *headers);

#endif
