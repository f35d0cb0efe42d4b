/* SPDX-License-Identifier: MIT */
#include "edge/outlet.h"

#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/log.h"
#include "edge/sse.h"
#include "edge/sstream.h"
#include "edge/stats.h"

enum { REPLY_MAX = 512 * 1024 * 1024, HEAD_MAX = 16 * 1024 };

void outlet_init(struct outlet *o, const struct client_ops *ops, struct edge *edge,
		 struct http *h)
{
	uint16_t id;
	int fd;

	o->edge = edge;
	o->beat.client = &o->client;
	o->started_us = h->started_us;
	o->headers = (struct buf)BUF_INIT(h->cors->max);
	buf_add(&o->headers, h->cors->p, h->cors->len);
	http_detach(h, &fd, &id);
	client_init(&o->client, ops, fd, id);
}

void outlet_release(struct outlet *o)
{
	buf_release(&o->headers);
}

void outlet_gone(struct outlet *o)
{
	keepalive_remove(o->edge->keepalive, &o->beat);
}

struct reply outlet_reply(const struct mcp_reply *m, struct buf *headers)
{
	if (m->session_id)
		buf_printf(headers, "Mcp-Session-Id: %s\r\n", m->session_id);
	if (m->retry_after_s)
		buf_printf(headers, "Retry-After: %d\r\n", m->retry_after_s);
	if (m->status == 405)
		buf_puts(headers, "Allow: POST, DELETE, OPTIONS\r\n");
	return (struct reply){
		.status = m->status,
		.type = m->body_len ? "application/json" : NULL,
		.headers = headers->p,
		.body = m->body,
		.n = m->body_len,
	};
}

void outlet_log(const struct edge *edge, const struct mcp_call *call, int status,
		int64_t started_us)
{
	if (edge->conf->log_mcp)
		log_info("mcp %s %d %lld us", mcp_call_method(call), status,
			 (long long)(clock_mono_us() - started_us));
	if (edge->conf->log_toolcalls && mcp_call_tool(call)[0] != '-')
		log_info("tool %s %lld us", mcp_call_tool(call),
			 (long long)(clock_mono_us() - started_us));
}

static void count(const struct outlet *o, int status)
{
	stats_count(o->edge->stats, STATS_MCP, status);
	http_log(o->edge->conf->log_http, "POST", str_of(o->edge->conf->mcp_path), status,
		 o->started_us);
}

static void send_reply_of(struct outlet *o, const struct mcp_reply *m)
{
	AUTO_BUF headers = BUF_INIT(HEAD_MAX);
	AUTO_BUF b = BUF_INIT(REPLY_MAX);
	struct reply r;

	buf_add(&headers, o->headers.p, o->headers.len);
	r = outlet_reply(m, &headers);
	reply_add(&r, &b);
	count(o, m->status);
	client_send_last(&o->client, chunk_new(b.p, b.len));
}

void outlet_take_leave(struct outlet *o)
{
	send_reply_of(o, &(struct mcp_reply){.status = 202});
}

void outlet_refuse(struct outlet *o)
{
	AUTO_FREE char *body = mcp_error_body(
		-32603, "too many requests wait on this server; try again in a second");

	send_reply_of(o, &(struct mcp_reply){.status = 503,
					     .retry_after_s = 1,
					     .body = body,
					     .body_len = strlen(body)});
}

static void send_frame(struct outlet *o, const struct buf *b)
{
	if (!o->client.is_open || b->len == 0)
		return;
	keepalive_postpone(o->edge->keepalive, &o->beat);
	client_send(&o->client, chunk_new(b->p, b->len));
}

static void begin_stream(struct outlet *o, struct mcp_call *call)
{
	AUTO_BUF b = BUF_INIT(HEAD_MAX);

	if (o->is_streaming || !o->client.is_open)
		return;
	o->is_streaming = true;
	count(o, 200);
	sse_add_head(&b, &o->headers);
	mcp_call_head(call, &b);
	send_frame(o, &b);
}

void outlet_wait(struct outlet *o, struct mcp_call *call)
{
	if (mcp_call_way(call) == MCP_WAY_SSE)
		begin_stream(o, call);
}

bool outlet_ask(struct outlet *o, struct mcp_call *call)
{
	AUTO_BUF b = BUF_INIT(REPLY_MAX);

	mcp_call_questions(call, &b);
	if (mcp_call_way(call) == MCP_WAY_SESSION) {
		sstream_send(o->edge->sstreams, mcp_call_session(call), b.p, b.len);
		return true;
	}
	if (!o->is_streaming || !client_has_room(&o->client))
		return false;
	send_frame(o, &b);
	return true;
}

void outlet_progress(struct outlet *o, struct mcp_call *call)
{
	AUTO_BUF b = BUF_INIT(HEAD_MAX);

	if (mcp_call_way(call) == MCP_WAY_SESSION) {
		mcp_call_progress(call, &b);
		sstream_send(o->edge->sstreams, mcp_call_session(call), b.p, b.len);
	} else if (o->is_streaming && o->client.is_open && o->client.count == 0) {
		mcp_call_progress(call, &b);
		send_frame(o, &b);
	}
}

void outlet_answer(struct outlet *o, struct mcp_call *call)
{
	AUTO_BUF frame = BUF_INIT(REPLY_MAX);
	struct mcp_reply m = mcp_call_reply(call);

	outlet_log(o->edge, call, m.status, o->started_us);
	if (mcp_call_way(call) == MCP_WAY_SESSION) {
		mcp_call_frame(call, &frame);
		if (frame.len > 0)
			sstream_send(o->edge->sstreams, mcp_call_session(call), frame.p,
				     frame.len);
		return;
	}
	if (!o->client.is_open)
		return;
	if (mcp_call_is_stream(call))
		begin_stream(o, call);
	if (!o->is_streaming) {
		send_reply_of(o, &m);
		return;
	}
	mcp_call_frame(call, &frame);
	send_frame(o, &frame);
	client_end(&o->client);
}
