/* SPDX-License-Identifier: MIT */
#ifndef NET_PUMP_H
#define NET_PUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "net/http.h"

/*
 * Makes hijacked streams look like sockets: for each a pair of connected sockets,
 * one end the caller's, the other carried to and from the stream by one thread for
 * all streams, through the stream's own framing. Bounded: about 128 KiB a stream
 * and direction, then the sender waits. When either side ends, both do, after what
 * was on its way to the caller has been handed over, or what the caller wrote before
 * it left has been sent as far as the other end takes it at once.
 */
struct pump;

struct pump_codec {
	/* Framed bytes in, plain bytes appended to out; -1: broken, or over. */
	int (*decode)(void *state, const char *p, size_t n, struct buf *out);
	/* Plain bytes in, framed ones appended to out. NULL: as they are. */
	void (*encode)(void *state, const char *p, size_t n, struct buf *out);
	/* Framed bytes that the stream itself has to say (a pong) appended to out. Asked
	 * whenever there is room. NULL: none. */
	void (*answer)(void *state, struct buf *out);
	/* It is over; by_far: the other end, or the connection, and not the caller.
	 * Just before free(). NULL: not told. */
	void (*over)(void *state, bool by_far);
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
 * Reads from a stream that is not pumped yet until its codec has given plain bytes,
 * which are appended to ready: a stream that is handed out is one that works.
 * ERR_BACKEND: it ended, or is broken. ERR_TIMEOUT: it said nothing. Blocking.
 */
int pump_first_bytes(const struct pump_stream *stream, int64_t timeout_ms,
		     struct buf *ready, struct err *e);

/*
 * Takes hijack and state, also when it fails. *ret_fd: CLOEXEC, non-blocking. Any
 * thread.
 */
int pump_add(struct pump *p, const struct pump_stream *stream, int *ret_fd,
	     struct err *e);

/* Ends all streams and the thread. NULL is fine. */
void pump_stop(struct pump *p);

#endif
