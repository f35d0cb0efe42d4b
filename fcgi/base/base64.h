/* SPDX-License-Identifier: MIT */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/buf.h"
#include "base/err.h"

/*
 * Base64 (RFC 4648, 4 and 5): encoding in the standard alphabet with padding, or
 * in the one for urls and header values without; decoding takes either alphabet,
 * padding or none, and nothing else. Pure; any thread.
 */
void base64_add(struct buf *b, const void *p, size_t n);
void base64url_add(struct buf *b, const void *p, size_t n);

/* Appends the bytes. ERR_INVALID: no base64; b may then hold a part. */
int base64_decode(struct buf *b, const char *p, size_t n, struct err *e);

#endif
