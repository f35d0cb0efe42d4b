/* SPDX-License-Identifier: MIT */
#ifndef NET_PUMP_H
#define NET_PUMP_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "net/http.h"

/*
 * Makes hijacked streams look like sockets: for each a pair of connected sockets,
 * one end the caller's, the other carried to and from the stream by one thread for
 * all streams, through the stream's own framing. Bounded: about 128 KiB a stream
 * and direction, then the sender waits. When either side ends, both do, after what
 * was on its way to the caller has been handed over.
 */
struct pump;

struct pump_codec {
	/* Framed bytes in, plain bytes appended to out; -1: broken, or over. */
	int (*decode)(void *state, const char *p, size_t n, struct buf *out);
	/* Plain bytes in, framed ones appended to out. NULL: as they are. */
	void (*encode)(void *state, const char *p, size_t n, struct buf *out);
	void (*free)(void *state);
};

int pump_start(struct pump **ret, struct err *e);

struct pump_stream {
	struct hijack *hijack;
	const struct pump_codec *codec;
	void *state;             /* the codec's */
	const struct buf *ready; /* plain bytes that came already; borrowed */
};

/*
 * Takes hijack and state, also when it fails. *ret_fd: CLOEXEC, non-blocking. Any
 * thread.
 */
int pump_add(struct pump *p, const struct pump_stream *stream, int *ret_fd,
	     struct err *e);

/* Ends all streams and the thread. NULL is fine. */
void pump_stop(struct pump *p);

#endif
