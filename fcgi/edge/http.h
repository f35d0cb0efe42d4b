/* SPDX-License-Identifier: MIT */
#ifndef EDGE_HTTP_H
#define EDGE_HTTP_H

#include <fcgiapp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "edge/reply.h"
#include "edge/stats.h"

/*
 * One HTTP request as it came by FastCGI, on its accepting thread: a view of the
 * parameters, the body, and an answer. A request is answered once, here
 * (blocking; nginx takes small answers at once) or by whoever it was detached
 * to. Everything seen through it dies with the answer or the detaching.
 */
enum http_method {
	HTTP_GET = 1,
	HTTP_HEAD = 2,
	HTTP_POST = 4,
	HTTP_DELETE = 8,
	HTTP_OPTIONS = 16,
	HTTP_OTHER = 32,
};

enum { HTTP_CAPTURES = 3 };

struct http {
	FCGX_Request *fcgi;
	enum http_method method;
	const char *method_name;
	struct str path, query;            /* as sent, still encoded */
	struct str capture[HTTP_CAPTURES]; /* of the route; still encoded */
	const char *origin;                /* Origin, or NULL */
	struct buf *cors;                  /* header lines every answer carries */
	enum stats_route route;
	struct stats *stats;
	bool log;
	int64_t started_us;
	bool is_done; /* answered or detached */
};

/* cors: an empty buffer that lives as long as h. */
void http_init(struct http *h, FCGX_Request *fcgi, struct buf *cors);

/* A CGI parameter ("HTTP_MCP_SESSION_ID"), or NULL when absent or empty. */
const char *http_param(const struct http *h, const char *name);

/*
 * The body into b up to its ceiling. ERR_LIMIT: more than that came, or was
 * announced; ERR_INVALID: less than was announced. What is left is read and
 * thrown away, so that the answer reaches a peer that is still sending.
 */
int http_read_body(struct http *h, struct buf *b, struct err *e);

void http_answer(struct http *h, const struct reply *r);
/* A JSON error body; `headers` as in struct reply. */
void http_refuse(struct http *h, int status, const struct err *why, const char *headers);
void http_fail(struct http *h, const struct err *why); /* by the error's kind */

/* A long answer: the head (n < 0: length unknown), then pieces, then the end. -1: the
 * peer left. */
void http_begin(struct http *h, const struct reply *r, long long n);
int http_piece(struct http *h, const char *p, size_t n);
void http_end(struct http *h);

/* Takes the connection out of libfcgi; its parameters are gone afterwards. */
void http_detach(struct http *h, int *ret_fd, uint16_t *ret_id);

/* The log line of an answered request, when they are wanted. */
void http_log(bool wanted, const char *method, struct str path, int status,
	      int64_t started_us);

#endif
