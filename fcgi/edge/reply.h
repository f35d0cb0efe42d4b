/* SPDX-License-Identifier: MIT */
#ifndef EDGE_REPLY_H
#define EDGE_REPLY_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * An HTTP answer as bytes for FCGI_STDOUT (CGI form, RFC 3875 section 6). Pure;
 * used by threads and by the loop.
 */
struct reply {
	int status;
	const char *type;    /* Content-Type, or NULL without a body */
	const char *headers; /* further whole lines, each ending in CRLF; NULL: none */
	const char *body;
	size_t n;
};

/*
 * Up to this size an answer is written without ever waiting for the reader: a socket
 * holds it. nginx is asked to pass such a one on as it comes.
 */
enum { REPLY_SMALL_MAX = 64 * 1024 };

/* Header block, then the body. A status with no body (204) must have n = 0. */
void reply_add(const struct reply *r, struct buf *b);
/* The header block alone, with its empty line; length < 0: not known. */
void reply_add_head(const struct reply *r, long long length, struct buf *b);

/* {"error":{"kind":..,"message":..}} for routes that are not JSON-RPC. */
void reply_add_error_body(const struct err *why, struct buf *b);

/* The HTTP status for a kind of failure. */
int reply_status(enum err_kind kind);

#endif
