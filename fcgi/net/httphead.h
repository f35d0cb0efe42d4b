/* SPDX-License-Identifier: MIT */
#ifndef NET_HTTPHEAD_H
#define NET_HTTPHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/*
 * The head of an HTTP/1.x answer, as far as an upgrade needs it. Pure.
 */
enum { HTTPHEAD_MAX = 16384 };

struct httphead {
	int status;             /* 100 to 599 */
	size_t len;             /* bytes of the head with its empty line */
	int64_t content_length; /* -1: not said */
	bool is_raw_stream;     /* Content-Type: application/vnd.docker.*-stream */
};

enum httphead_result { HTTPHEAD_OK, HTTPHEAD_MORE, HTTPHEAD_BAD };

enum httphead_result httphead_parse(const char *p, size_t n, struct httphead *ret);

/*
 * The value of the first field of that name (of any case) in a head of n bytes that
 * has been parsed: a view, without blanks around it. False: there is none.
 */
bool httphead_field(const char *p, size_t n, const char *name, struct str *ret);

#endif
