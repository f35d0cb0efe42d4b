/* SPDX-License-Identifier: MIT */
#include "edge/http.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/num.h"
#include "edge/query.h"

enum { READ_SIZE = 8192, ERROR_BODY_MAX = 4096, HEAD_MAX = 8192 };

static const struct {
	const char *name;
	enum http_method method;
} methods[] = {
	{"GET", HTTP_GET},       {"HEAD", HTTP_HEAD},       {"POST", HTTP_POST},
	{"DELETE", HTTP_DELETE}, {"OPTIONS", HTTP_OPTIONS},
};

static enum http_method parse_method(const char *name)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (strcmp(methods[i].name, name) == 0)
			return methods[i].method;
	return HTTP_OTHER;
}

const char *http_param(const struct http *h, const char *name)
{
	const char *v = FCGX_GetParam(name, h->fcgi->envp);

	return v && *v ? v : NULL;
}

void http_init(struct http *h, FCGX_Request *fcgi, struct buf *cors)
{
	const char *method, *target;

	*h = (struct http){
		.fcgi = fcgi,
		.cors = cors,
		.route = STATS_OTHER,
		.started_us = clock_mono_us(),
	};
	method = http_param(h, "REQUEST_METHOD");
	target = http_param(h, "REQUEST_URI");
	h->method_name = method ? method : "";
	h->method = parse_method(h->method_name);
	target_split(str_of(target ? target : ""), &h->path, &h->query);
	h->origin = http_param(h, "HTTP_ORIGIN");
}

static void discard_body(struct http *h)
{
	char trash[READ_SIZE];

	while (FCGX_GetStr(trash, sizeof(trash), h->fcgi->in) == (int)sizeof(trash))
		;
}

/* What CONTENT_LENGTH announces; -1: nothing (then the body's end tells). */
static int announced(const struct http *h, int64_t *ret, struct err *e)
{
	const char *text = http_param(h, "CONTENT_LENGTH");

	*ret = -1;
	if (text && num_parse(text, 0, INT64_MAX, ret, e) < 0)
		return err_wrap(e, "Content-Length");
	return 0;
}

static int read_body(struct http *h, struct buf *b, struct err *e)
{
	char piece[READ_SIZE];
	int64_t length;
	int n;

	if (announced(h, &length, e) < 0)
		return -1;
	if (length > (int64_t)b->max)
		return err_set(e, ERR_LIMIT,
			       "the body has %lld bytes; at most %zu are taken",
			       (long long)length, b->max);
	do {
		n = FCGX_GetStr(piece, sizeof(piece), h->fcgi->in);
		buf_add(b, piece, n > 0 ? (size_t)n : 0);
	} while (n == (int)sizeof(piece) && buf_ok(b));
	if (!buf_ok(b))
		return err_set(e, ERR_LIMIT,
			       "the body is too long; at most %zu bytes are taken",
			       b->max);
	if (length >= 0 && b->len != (size_t)length)
		return err_set(e, ERR_INVALID, "the body ended after %zu of %lld bytes",
			       b->len, (long long)length);
	return 0;
}

int http_read_body(struct http *h, struct buf *b, struct err *e)
{
	int rc = read_body(h, b, e);

	if (rc < 0)
		discard_body(h);
	return rc;
}

void http_log(bool wanted, const char *method, struct str path, int status,
	      int64_t started_us)
{
	if (wanted)
		log_info("%s %.*s %d %lld us", method, (int)(path.n > 512 ? 512 : path.n),
			 path.p, status, (long long)(clock_mono_us() - started_us));
}

void http_begin(struct http *h, const struct reply *r, long long n)
{
	AUTO_BUF head = BUF_INIT(HEAD_MAX);
	struct reply with_cors = *r;
	AUTO_BUF lines = BUF_INIT(HEAD_MAX);

	assert(!h->is_done);
	buf_add(&lines, h->cors->p, h->cors->len);
	if (r->headers)
		buf_puts(&lines, r->headers);
	with_cors.headers = lines.p;
	reply_add_head(&with_cors, n, &head);
	stats_count(h->stats, h->route, r->status);
	http_log(h->log, h->method_name, h->path, r->status, h->started_us);
	http_piece(h, head.p, head.len);
}

int http_piece(struct http *h, const char *p, size_t n)
{
	return FCGX_PutStr(p, (int)n, h->fcgi->out) < 0 ? -1 : 0;
}

/*
 * FCGX_Finish_r() would linger until the peer closes. That is only of use while
 * the peer may still be sending, and here all it sends has been read.
 */
void http_end(struct http *h)
{
	discard_body(h);
	FCGX_FClose(h->fcgi->err);
	FCGX_FClose(h->fcgi->out);
	FCGX_Detach(h->fcgi);
	FCGX_Free(h->fcgi, 1);
	h->is_done = true;
}

void http_answer(struct http *h, const struct reply *r)
{
	http_begin(h, r, (long long)r->n);
	if (r->n)
		http_piece(h, r->body, r->n);
	http_end(h);
}

void http_refuse(struct http *h, int status, const struct err *why, const char *headers)
{
	AUTO_BUF body = BUF_INIT(ERROR_BODY_MAX);
	struct reply r = {
		.status = status, .type = "application/json", .headers = headers};

	reply_add_error_body(why, &body);
	r.body = body.p;
	r.n = body.len;
	http_answer(h, &r);
}

void http_fail(struct http *h, const struct err *why)
{
	int status = reply_status(why->kind);

	http_refuse(h, status, why, status == 503 ? "Retry-After: 1\r\n" : NULL);
}

void http_detach(struct http *h, int *ret_fd, uint16_t *ret_id)
{
	assert(!h->is_done);
	*ret_fd = h->fcgi->ipcFd;
	*ret_id = (uint16_t)h->fcgi->requestId;
	FCGX_Free(h->fcgi, 0);
	h->fcgi->ipcFd = -1;
	h->is_done = true;
}
