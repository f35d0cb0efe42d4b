/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "mcp/eventid.h"
#include "mcp/post.h"
#include "mcp/run_tool.h"

/*
 * GET: streams of the legacy era. A session's own stream; the stream that begins
 * a session of the HTTP+SSE transport; the rest of an answer that broke off.
 */

static enum mcp_next stream_opened(struct mcp_call *c, const struct mcp_reads *r,
				   const json_t *ok, const struct err *why)
{
	(void)r;
	if (!ok)
		return call_failure(c, why);
	sessions_add(c->server->sessions, c->tenant, c->session_id,
		     &(struct session_info){.version = c->version, .log_level = -1});
	return MCP_STREAM;
}

/* The client names its version in a later initialize, or never. */
static enum mcp_next begin_sse(struct mcp_call *c)
{
	c->opens_sse = true;
	c->version = mcp_version_find("2024-11-05");
	id_new_session(c->session_id);
	return call_send(c, MSG_SESSION_OPEN,
			 json_pack("{s:s, s:s, s:s, s:s, s:s}", "tenant", c->tenant,
				   "session_id", c->session_id, "protocol_version",
				   c->version->name, "client_name", "", "client_version",
				   ""),
			 stream_opened);
}

/* The wait of an answer that was a stream goes on here. */
static enum mcp_next resume(struct mcp_call *c, const struct mcp_reads *r,
			    struct eventid *x)
{
	int64_t left = x->until_ms - clock_now_ms();

	c->doc = x->doc;
	c->index = 1; /* it was classified when it came first */
	c->msg = (struct rpc_msg){
		.kind = RPC_IS_REQUEST, .method = "tools/call", .id = x->id};
	progress_init(&c->progress, NULL);
	c->progress.token = x->token;
	c->progress.began_mono = clock_mono_ms() - x->place; /* it goes on from there */
	c->progress.last_ms = x->place;
	snprintf(c->run_id, sizeof(c->run_id), "%s", x->run_id);
	return call_advance(c, r, run_tool_resume(c, r, left > 0 ? left : 0));
}

enum mcp_next mcp_get(struct mcp_server *s, const struct mcp_reads *r,
		      const struct mcp_http *in, struct mcp_call **ret)
{
	struct mcp_call *c = call_new(s, in);
	struct eventid x = {0};
	struct err e = ERR_INIT;

	*ret = c;
	c->accepts_stream = post_accepts_stream(in);
	if (!c->accepts_stream || post_is_modern_header(in)) {
		call_fault(c, 405, RPC_TRANSPORT,
			   "a GET here is a stream: Accept: text/event-stream, in the "
			   "versions up to %s",
			   mcp_version_newest(MCP_LEGACY)->name);
		return call_finish(c);
	}
	if (post_check_version_header(c, in) < 0)
		return call_finish(c);
	if (!in->session_id)
		return begin_sse(c);
	if (post_require_session(c, r, in->session_id) < 0)
		return call_finish(c);
	if (in->last_event_id && eventid_parse(in->last_event_id, &x, &e) == 0)
		return resume(c, r, &x);
	return MCP_STREAM;
}
