/* SPDX-License-Identifier: MIT */
#include "mcp/post.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/str.h"
#include "mcp/modern.h"

enum { BATCH_MAX = 100 };

/* ---- who asks */

int post_check_version_header(struct mcp_call *c, const struct mcp_http *in)
{
	const struct mcp_version *v;

	if (!in->protocol_version)
		return 0; /* 2025-03-26 and older send none */
	v = mcp_version_find(in->protocol_version);
	if (v && v->era == MCP_LEGACY)
		return 0;
	call_fault(c, 400, RPC_TRANSPORT,
		   "MCP-Protocol-Version %.32s is not supported here; newest: %s",
		   in->protocol_version, mcp_version_newest(MCP_LEGACY)->name);
	return -1;
}

static void take_session(struct mcp_call *c, const char *id,
			 const struct session_info *info)
{
	snprintf(c->session_id, sizeof(c->session_id), "%s", id);
	c->version = info->version;
	c->can = info->can;
	c->log_level = info->log_level;
}

/*
 * An id that is in no session is 404, so that a client knows to begin anew; 400
 * would not tell it.
 */
int post_require_session(struct mcp_call *c, const struct mcp_reads *r, const char *id)
{
	struct session_info info = {0};
	struct err e = ERR_INIT;
	int rc;

	if (!id) {
		call_fault(c, 400, RPC_TRANSPORT,
			   "Mcp-Session-Id is missing: call initialize first and send "
			   "the id that its answer carries in this header");
		return -1;
	}
	rc = sessions_check(c->server->sessions, r, c->tenant, id, &info, &e);
	if (rc < 0)
		call_failure(c, &e);
	else if (rc == 0)
		call_fault(c, 404, RPC_NO_SESSION,
			   "no such session: it ended or never was; call initialize");
	else
		take_session(c, id, &info);
	return rc == 1 ? 0 : -1;
}

bool post_accepts_stream(const struct mcp_http *in)
{
	struct str rest = str_of(in->accept ? in->accept : ""), word;
	static const char type[] = "text/event-stream";

	while (str_cut(&rest, ',', &word)) {
		word = str_trim(word);
		if (word.n >= sizeof(type) - 1 &&
		    strncasecmp(word.p, type, sizeof(type) - 1) == 0)
			return true;
	}
	return false;
}

/* ---- the legacy envelope */

static bool opens_session(const struct mcp_call *c)
{
	const char *m = json_get_string(c->doc, "method");

	return m && strcmp(m, "initialize") == 0;
}

static int check_batch(struct mcp_call *c)
{
	size_t n = json_array_size(c->doc);

	if (!c->version->batches)
		call_fault(c, 400, RPC_INVALID_REQUEST,
			   "batches exist in protocol version 2025-03-26 only");
	else if (n == 0 || n > BATCH_MAX)
		call_fault(c, 400, RPC_INVALID_REQUEST, "a batch has 1 to %d messages",
			   BATCH_MAX);
	else
		return 0;
	return -1;
}

/* Everything before the first member; -1: the request is answered. */
static int open_legacy(struct mcp_call *c, const struct mcp_reads *r,
		       const struct mcp_http *in)
{
	struct err e = ERR_INIT;

	c->by_session = in->stream_session != NULL;
	if (opens_session(c) && !c->by_session)
		return 0;
	/* An error about the envelope of a lone message can carry its id. */
	rpc_classify(c->doc, &c->msg, &e);
	if (!opens_session(c) && post_check_version_header(c, in) < 0)
		return -1;
	if (post_require_session(c, r,
				 c->by_session ? in->stream_session : in->session_id) < 0)
		return -1;
	if (!json_is_array(c->doc))
		return 0;
	if (check_batch(c) < 0)
		return -1;
	c->batch = true;
	return 0;
}

/* ---- one POST */

/* Absent is fine; a form or plain text is what a web page could send unasked. */
static bool content_type_ok(const char *type)
{
	static const char json[] = "application/json";
	size_t n = sizeof(json) - 1;

	if (!type || !*type)
		return true;
	if (strncasecmp(type, json, n) != 0)
		return false;
	type += n + strspn(type + n, " \t");
	return *type == '\0' || *type == ';';
}

static int open_post(struct mcp_call *c, const struct mcp_reads *r,
		     const struct mcp_http *in)
{
	struct err e = ERR_INIT;

	if (!content_type_ok(in->content_type)) {
		call_fault(c, 415, RPC_TRANSPORT,
			   "Content-Type must be application/json");
		return -1;
	}
	if (json_parse_bounded(in->body, in->body_len, MCP_VALUES_MAX, &c->doc, &e) < 0) {
		if (e.kind == ERR_LIMIT)
			call_fault(c, 413, RPC_INVALID_REQUEST, "the body has %s", e.msg);
		else
			call_fault(c, 400, RPC_PARSE, "%s", e.msg);
		return -1;
	}
	return modern_is(c->doc, in) ? modern_open(c, in) : open_legacy(c, r, in);
}

enum mcp_next mcp_post(struct mcp_server *s, const struct mcp_reads *r,
		       const struct mcp_http *in, struct mcp_call **ret)
{
	struct mcp_call *c = call_new(s, in);

	*ret = c;
	c->accepts_stream = post_accepts_stream(in);
	c->is_stdio = in->is_stdio;
	if (open_post(c, r, in) < 0) {
		c->by_session = false; /* a fault of this POST is its own answer */
		if (c->is_stdio && !rpc_expects_answer(c->doc))
			call_drop_reply(c);
		return call_finish(c);
	}
	return call_advance(c, r, MCP_REPLY);
}

/* ---- DELETE */

static enum mcp_next stream_told(struct mcp_call *c, const struct mcp_reads *r,
				 const json_t *ok, const struct err *why)
{
	(void)r;
	(void)ok;
	(void)why; /* the session is closed all the same */
	c->status = 204;
	return MCP_REPLY;
}

/* Its stream may be held by any edge. */
static enum mcp_next session_closed(struct mcp_call *c, const struct mcp_reads *r,
				    const json_t *ok, const struct err *why)
{
	(void)r;
	if (!ok)
		return call_failure(c, why);
	sessions_forget(c->server->sessions, c->session_id);
	return call_send(
		c, MSG_RELAY,
		json_pack("{s:s, s:s}", "session_id", c->session_id, "kind", "closed"),
		stream_told);
}

bool post_is_modern_header(const struct mcp_http *in)
{
	const struct mcp_version *v =
		in->protocol_version ? mcp_version_find(in->protocol_version) : NULL;

	return v && v->era == MCP_MODERN;
}

enum mcp_next mcp_delete(struct mcp_server *s, const struct mcp_reads *r,
			 const struct mcp_http *in, struct mcp_call **ret)
{
	struct mcp_call *c = call_new(s, in);

	*ret = c;
	if (post_is_modern_header(in)) {
		call_fault(c, 405, RPC_TRANSPORT, "this version has no sessions");
		return call_finish(c);
	}
	if (post_check_version_header(c, in) < 0 ||
	    post_require_session(c, r, in->session_id) < 0)
		return call_finish(c);
	return call_send(
		c, MSG_SESSION_CLOSE,
		json_pack("{s:s, s:s}", "tenant", c->tenant, "session_id", c->session_id),
		session_closed);
}
