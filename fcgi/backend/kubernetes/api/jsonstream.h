/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_API_JSONSTREAM_H
#define BACKEND_KUBERNETES_API_JSONSTREAM_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * JSON objects one after another, as a watch sends them: found by their braces,
 * whatever is between them and wherever they were cut. Pure, bounded.
 */
enum { JSONSTREAM_MAX = 8 << 20 }; /* bytes of one object */

struct jsonstream {
	struct buf text; /* of the object that has begun */
	int depth;
	bool in_string, escaped;
};
#define JSONSTREAM_INIT                                                                  \
	{                                                                                \
		.text = BUF_INIT(JSONSTREAM_MAX)                                         \
	}
void jsonstream_release(struct jsonstream *s);

/*
 * Calls object() with the text of each that is whole. -1: what it answered, or
 * ERR_LIMIT, or ERR_INVALID: something other than blanks between objects.
 */
int jsonstream_feed(struct jsonstream *s, const char *p, size_t n,
		    int (*object)(void *arg, const char *p, size_t n, struct err *e),
		    void *arg, struct err *e);

#endif
