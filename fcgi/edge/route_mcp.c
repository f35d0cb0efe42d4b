/* SPDX-License-Identifier: MIT */
#include "edge/routes.h"

#include <stdlib.h>
#include <string.h>

#include "edge/lot.h"
#include "edge/query.h"
#include "edge/sstream.h"
#include "edge/ticket.h"
#include "mcp/jsonrpc.h"

enum { BASE_URL_MAX = 320, SESSION_MAX = 64 };

/* A body that was not taken: JSON-RPC has no code of its own for that, and no id. */
static void refuse(struct http *h, int status, const struct err *why)
{
	char *body = mcp_error_body(RPC_INVALID_REQUEST, why->msg);
	struct reply r = {.status = status,
			  .type = "application/json",
			  .body = body,
			  .n = strlen(body)};

	http_answer(h, &r);
	free(body);
}

static struct mcp_http view(struct worker *w, struct http *h, const struct buf *body,
			    char base_url[static BASE_URL_MAX])
{
	mcp_base_url(w->edge->mcp, http_param(h, "REQUEST_SCHEME"),
		     http_param(h, "HTTP_HOST"), base_url, BASE_URL_MAX);
	return (struct mcp_http){
		.tenant = STORE_TENANT_DEFAULT,
		.content_type = http_param(h, "CONTENT_TYPE"),
		.accept = http_param(h, "HTTP_ACCEPT"),
		.session_id = http_param(h, "HTTP_MCP_SESSION_ID"),
		.protocol_version = http_param(h, "HTTP_MCP_PROTOCOL_VERSION"),
		.method = http_param(h, "HTTP_MCP_METHOD"),
		.name = http_param(h, "HTTP_MCP_NAME"),
		.identifier = http_param(h, "HTTP_MCP_PARAM_IDENTIFIER"),
		.last_event_id = http_param(h, "HTTP_LAST_EVENT_ID"),
		.base_url = base_url,
		.body = body->p,
		.body_len = body->len,
	};
}

typedef enum mcp_next begin_fn(struct mcp_server *s, const struct mcp_reads *r,
			       const struct mcp_http *in, struct mcp_call **ret);

static begin_fn *begin_of(enum http_method method)
{
	if (method == HTTP_POST)
		return mcp_post;
	return method == HTTP_GET ? mcp_get : mcp_delete;
}

/* A request that stays open, or a GET that may become its session's stream. */
static bool is_stream(const struct http *h, const struct mcp_call *call,
		      enum mcp_next next)
{
	return next == MCP_STREAM ||
	       (h->method == HTTP_GET && next == MCP_SEND && !mcp_call_is_stream(call));
}

static void hold_stream(struct worker *w, struct http *h, struct mcp_call *call,
			enum mcp_next next)
{
	struct err e = ERR_INIT;

	if (lot_take_place(w->edge->lot, &e) == 0) {
		sstream_park(w->edge, h, call, next);
		return;
	}
	ticket_go_on(w->edge, h, &w->reads.reads, call, mcp_call_refuse(call, &e), 0);
}

void route_mcp(struct worker *w, struct http *h)
{
	AUTO_BUF body = BUF_INIT((size_t)w->edge->conf->max_body_bytes);
	char base_url[BASE_URL_MAX], stream_session[SESSION_MAX] = "";
	struct err e = ERR_INIT;
	struct mcp_call *call;
	struct mcp_http in;
	enum mcp_next next;

	if (h->method == HTTP_POST && http_read_body(h, &body, &e) < 0) {
		refuse(h, e.kind == ERR_LIMIT ? 413 : 400, &e);
		return;
	}
	in = view(w, h, &body, base_url);
	if (h->method == HTTP_POST && query_get(h->query, "sessionId", stream_session,
						sizeof(stream_session)) != QUERY_ABSENT)
		in.stream_session = stream_session;
	next = begin_of(h->method)(w->edge->mcp, &w->reads.reads, &in, &call);
	if (is_stream(h, call, next))
		hold_stream(w, h, call, next);
	else
		ticket_go_on(w->edge, h, &w->reads.reads, call, next, body.len);
}
