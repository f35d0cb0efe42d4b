/* SPDX-License-Identifier: MIT */
#include "mcp/call.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/mem.h"
#include "mcp/failure.h"
#include "mcp/methods.h"
#include "mcp/tools.h"

enum {
	REPLY_MAX = 32 * 1024 * 1024,
	BATCH_MAX = 100,
	TEXT_MAX = 1024, /* of an error's message */
};

/* ---- answering the member in hand */

static bool wants_answer(const struct mcp_call *c)
{
	return c->msg.kind == RPC_IS_REQUEST;
}

static void separate(struct mcp_call *c)
{
	if (c->batch)
		buf_puts(&c->reply, c->reply.len ? "," : "[");
}

static enum rpc_unknown_id unknown_id(const struct mcp_call *c)
{
	return c->version->omits_bad_id ? RPC_OMIT_ID : RPC_NULL_ID;
}

static void add_error(struct mcp_call *c, enum rpc_code code, const char *text)
{
	separate(c);
	rpc_add_error(&c->reply, c->msg.id, unknown_id(c), code, text);
}

enum mcp_next call_result(struct mcp_call *c, const json_t *result)
{
	if (!wants_answer(c))
		return MCP_REPLY;
	separate(c);
	rpc_add_result(&c->reply, c->msg.id, result);
	return MCP_REPLY;
}

enum mcp_next call_result_text(struct mcp_call *c, const char *p, size_t n)
{
	if (!wants_answer(c))
		return MCP_REPLY;
	separate(c);
	rpc_add_result_text(&c->reply, c->msg.id, p, n);
	return MCP_REPLY;
}

enum mcp_next call_error(struct mcp_call *c, enum rpc_code code, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	if (!wants_answer(c))
		return MCP_REPLY;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	add_error(c, code, text);
	return MCP_REPLY;
}

enum mcp_next call_fault(struct mcp_call *c, int status, enum rpc_code code,
			 const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!c->batch)
		c->status = status;
	add_error(c, code, text);
	return MCP_REPLY;
}

enum mcp_next call_failure(struct mcp_call *c, const struct err *why)
{
	const struct failure *f = failure_of(why->kind);
	char text[TEXT_MAX];

	c->retry_after_s = f->retry_after_s;
	return call_fault(c, f->http_status, f->code, "%s",
			  failure_text(why, text, sizeof(text)));
}

enum mcp_next call_send(struct mcp_call *c, enum edgemsg_type type, json_t *body,
			call_answer_fn *then)
{
	json_decref(c->message);
	c->message = body;
	c->message_type = type;
	c->on_answer = then;
	return MCP_SEND;
}

/* ---- who asks */

/*
 * Finds the session that the request names; -1: answered. An id that is in no
 * session is 404, so that a client knows to begin anew; 400 would not tell it.
 */
static int require_session(struct mcp_call *c, const struct mcp_reads *r,
			   const struct mcp_http *in)
{
	struct err e = ERR_INIT;
	int rc;

	if (!in->session_id) {
		call_fault(c, 400, RPC_TRANSPORT,
			   "Mcp-Session-Id is missing: call initialize first and send "
			   "the id that its answer carries in this header");
		return -1;
	}
	rc = sessions_check(c->server->sessions, r, c->tenant, in->session_id,
			    &c->version, &e);
	if (rc < 0)
		call_failure(c, &e);
	else if (rc == 0)
		call_fault(c, 404, RPC_NO_SESSION,
			   "no such session: it ended or never was; call initialize");
	else
		snprintf(c->session_id, sizeof(c->session_id), "%s", in->session_id);
	return rc == 1 ? 0 : -1;
}

/* The header that clients send after initialize; absent is fine (2025-03-26). */
static int check_version_header(struct mcp_call *c, const struct mcp_http *in)
{
	if (!in->protocol_version || mcp_version_find(in->protocol_version))
		return 0;
	call_fault(c, 400, RPC_TRANSPORT,
		   "MCP-Protocol-Version %.32s is not supported; newest: %s",
		   in->protocol_version, mcp_version_newest()->name);
	return -1;
}

/* ---- the members of the body, one after the other */

static enum mcp_next member_step(struct mcp_call *c, const struct mcp_reads *r,
				 const json_t *m)
{
	struct err e = ERR_INIT;

	c->tool = NULL;
	if (rpc_classify(m, &c->msg, &e) < 0)
		return call_fault(c, 400, RPC_INVALID_REQUEST, "%s", e.msg);
	if (c->msg.kind != RPC_IS_REQUEST)
		return MCP_REPLY; /* taken note of: 202 */
	return method_handle(c, r);
}

static const json_t *next_member(struct mcp_call *c)
{
	size_t i = c->index++;

	if (c->batch)
		return json_array_get(c->doc, i);
	return i == 0 ? c->doc : NULL;
}

static enum mcp_next finish(struct mcp_call *c)
{
	if (c->batch && c->reply.len > 0)
		buf_puts(&c->reply, "]");
	if (!buf_ok(&c->reply)) {
		buf_release(&c->reply);
		c->reply = (struct buf)BUF_INIT(REPLY_MAX);
		c->msg.id = c->batch ? NULL : c->msg.id;
		c->batch = false;
		call_fault(c, 500, RPC_INTERNAL, "the answer is larger than %d bytes",
			   REPLY_MAX);
	}
	if (c->status == 0)
		c->status = c->reply.len > 0 ? 200 : 202;
	return MCP_REPLY;
}

static void end_member(struct mcp_call *c)
{
	c->args = NULL;
	json_decref(c->owned_args);
	c->owned_args = NULL;
	json_decref(c->accepted);
	c->accepted = NULL;
}

static enum mcp_next advance(struct mcp_call *c, const struct mcp_reads *r,
			     enum mcp_next next)
{
	const json_t *m;

	while (next == MCP_REPLY) {
		end_member(c);
		m = next_member(c);
		if (!m)
			return finish(c);
		next = member_step(c, r, m);
	}
	return next;
}

/* ---- one POST */

/* Absent is fine; a form or plain text is what a web page could send unasked. */
static bool content_type_ok(const char *type)
{
	return !type || !*type || strncasecmp(type, "application/json", 16) == 0;
}

static bool opens_session(const struct mcp_call *c)
{
	const char *m = json_string_value(json_object_get(c->doc, "method"));

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
static int open_post(struct mcp_call *c, const struct mcp_reads *r,
		     const struct mcp_http *in)
{
	struct err e = ERR_INIT;

	if (!content_type_ok(in->content_type)) {
		call_fault(c, 415, RPC_TRANSPORT,
			   "Content-Type must be application/json");
		return -1;
	}
	if (json_parse(in->body, in->body_len, &c->doc, &e) < 0) {
		call_fault(c, 400, RPC_PARSE, "%s", e.msg);
		return -1;
	}
	if (opens_session(c))
		return 0;
	/* An error about the envelope of a lone message can carry its id. */
	rpc_classify(c->doc, &c->msg, &e);
	if (check_version_header(c, in) < 0 || require_session(c, r, in) < 0)
		return -1;
	if (!json_is_array(c->doc))
		return 0;
	if (check_batch(c) < 0)
		return -1;
	c->batch = true;
	return 0;
}

static struct mcp_call *call_new(struct mcp_server *s, const struct mcp_http *in)
{
	struct mcp_call *c = xcalloc(1, sizeof(*c));

	c->server = s;
	c->tenant = xstrdup(in->tenant);
	c->base_url = xstrdup(in->base_url ? in->base_url : "");
	c->version = mcp_version_newest();
	c->msg.kind = RPC_IS_NOTIFICATION;
	c->reply = (struct buf)BUF_INIT(REPLY_MAX);
	return c;
}

enum mcp_next mcp_post(struct mcp_server *s, const struct mcp_reads *r,
		       const struct mcp_http *in, struct mcp_call **ret)
{
	struct mcp_call *c = call_new(s, in);

	*ret = c;
	if (open_post(c, r, in) < 0)
		return finish(c);
	return advance(c, r, MCP_REPLY);
}

/* ---- DELETE */

static enum mcp_next session_closed(struct mcp_call *c, const struct mcp_reads *r,
				    const json_t *ok, const struct err *why)
{
	(void)r;
	if (!ok)
		return call_failure(c, why);
	sessions_forget(c->server->sessions, c->session_id);
	c->status = 204;
	return MCP_REPLY;
}

enum mcp_next mcp_delete(struct mcp_server *s, const struct mcp_reads *r,
			 const struct mcp_http *in, struct mcp_call **ret)
{
	struct mcp_call *c = call_new(s, in);

	*ret = c;
	if (check_version_header(c, in) < 0 || require_session(c, r, in) < 0)
		return finish(c);
	return call_send(
		c, MSG_SESSION_CLOSE,
		json_pack("{s:s, s:s}", "tenant", c->tenant, "session_id", c->session_id),
		session_closed);
}

/* ---- the steps */

static enum mcp_next go_on(struct mcp_call *c, const struct mcp_reads *r,
			   const json_t *ok, const struct err *why)
{
	call_answer_fn *step = c->on_answer;

	assert(step);
	c->on_answer = NULL;
	return advance(c, r, step(c, r, ok, why));
}

enum mcp_next mcp_call_answer(struct mcp_call *c, const struct mcp_reads *r,
			      const struct edgemsg *m)
{
	struct err why = ERR_INIT;
	const char *kind, *text;

	if (m->type == MSG_OK)
		return go_on(c, r, m->body, NULL);
	kind = json_string_value(json_object_get(m->body, "kind"));
	text = json_string_value(json_object_get(m->body, "message"));
	err_set(&why, kind ? err_kind_parse(kind) : ERR_SYSTEM, "%s",
		text ? text : "the runner refused without words");
	return go_on(c, r, NULL, &why);
}

enum mcp_next mcp_call_fail(struct mcp_call *c, const struct mcp_reads *r,
			    const struct err *why)
{
	return go_on(c, r, NULL, why);
}

enum mcp_next mcp_call_run_done(struct mcp_call *c, const struct mcp_reads *r)
{
	call_done_fn *step = c->on_done;

	assert(step);
	c->on_answer = NULL;
	c->on_done = NULL;
	return advance(c, r, step(c, r));
}

void mcp_call_free(struct mcp_call *c)
{
	if (!c)
		return;
	end_member(c);
	json_decref(c->doc);
	json_decref(c->message);
	buf_release(&c->reply);
	free(c->tenant);
	free(c->base_url);
	free(c);
}

struct mcp_reply mcp_call_reply(const struct mcp_call *c)
{
	return (struct mcp_reply){
		.status = c->status,
		.session_id = c->opened ? c->session_id : NULL,
		.retry_after_s = c->retry_after_s,
		.body = c->reply.p,
		.body_len = c->reply.len,
	};
}

struct mcp_message mcp_call_message(const struct mcp_call *c)
{
	return (struct mcp_message){.type = c->message_type, .body = c->message};
}

struct mcp_await mcp_call_await(const struct mcp_call *c)
{
	return (struct mcp_await){.run_id = c->run_id, .timeout_ms = c->await_timeout_ms};
}

const char *mcp_call_method(const struct mcp_call *c)
{
	return c->msg.method ? c->msg.method : "-";
}

const char *mcp_call_tool(const struct mcp_call *c)
{
	return c->tool ? c->tool->name : "-";
}
