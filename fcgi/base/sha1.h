/* SPDX-License-Identifier: MIT */
#ifndef BASE_SHA1_H
#define BASE_SHA1_H

#include <stddef.h>
#include <stdint.h>

enum { SHA1_LEN = 20 };

/*
 * The SHA-1 of n bytes: only for the WebSocket handshake, which demands it (RFC
 * 6455, 4.2.2) and where it protects nothing. Any thread.
 */
void sha1_raw(const void *p, size_t n, uint8_t out[static SHA1_LEN]);

#endif
