/* SPDX-License-Identifier: MIT */
#include "edge/reply.h"

#include <string.h>

#include "base/json.h"

static const struct {
	int status;
	const char *words;
} reasons[] = {
	{200, "OK"},
	{202, "Accepted"},
	{204, "No Content"},
	{400, "Bad Request"},
	{403, "Forbidden"},
	{404, "Not Found"},
	{405, "Method Not Allowed"},
	{409, "Conflict"},
	{413, "Content Too Large"},
	{415, "Unsupported Media Type"},
	{429, "Too Many Requests"},
	{500, "Internal Server Error"},
	{503, "Service Unavailable"},
};

static const int status_of_kind[ERR_KIND_COUNT] = {
	[ERR_NONE] = 500,      [ERR_INVALID] = 400,  [ERR_DENIED] = 403,
	[ERR_NOT_FOUND] = 404, [ERR_CONFLICT] = 409, [ERR_LIMIT] = 429,
	[ERR_BUSY] = 503,      [ERR_TIMEOUT] = 503,  [ERR_BACKEND] = 503,
	[ERR_STORE] = 503,     [ERR_SYSTEM] = 500,
};

static const char *reason(int status)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].status == status)
			return reasons[i].words;
	return "Status";
}

void reply_add_head(const struct reply *r, long long length, struct buf *b)
{
	buf_printf(b, "Status: %d %s\r\n", r->status, reason(r->status));
	/* Without a body there is nothing to keep; and nginx takes Cache-Control over
	 * from an answer that sends it to a file. */
	if (r->type)
		buf_printf(b,
			   "Cache-Control: no-store\r\nContent-Type: %s\r\n"
			   "X-Content-Type-Options: nosniff\r\n",
			   r->type);
	/* RFC 9110 8.6: none in a 204. */
	if (length >= 0 && r->status != 204)
		buf_printf(b, "Content-Length: %lld\r\n", length);
	/* What nginx buffers it sends when we close, which wakes it once more. */
	if (length >= 0 && length <= REPLY_SMALL_MAX)
		buf_puts(b, "X-Accel-Buffering: no\r\n");
	if (r->headers)
		buf_puts(b, r->headers);
	buf_puts(b, "\r\n");
}

void reply_add(const struct reply *r, struct buf *b)
{
	reply_add_head(r, (long long)r->n, b);
	buf_add(b, r->body, r->n);
}

void reply_add_error_body(const struct err *why, struct buf *b)
{
	AUTO_JSON *o = json_must(
		json_pack("{s:{s:s,s:o}}", "error", "kind", err_kind_name(why->kind),
			  "message", json_string_repaired(why->msg, strlen(why->msg))));

	json_dump_buf(o, b);
}

int reply_status(enum err_kind kind)
{
	return status_of_kind[kind];
}
