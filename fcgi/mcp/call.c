/* SPDX-License-Identifier: MIT */
#include "mcp/call.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "mcp/failure.h"
#include "mcp/methods.h"
#include "mcp/modern.h"
#include "mcp/tools.h"

enum {
	REPLY_MAX = 32 * 1024 * 1024,
	LOG_MAX = 1024 * 1024,
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

static void add_error(struct mcp_call *c, enum rpc_code code, const char *text,
		      const json_t *data)
{
	separate(c);
	rpc_add_error(&c->reply, c->msg.id, unknown_id(c),
		      &(struct rpc_error){.code = code, .message = text, .data = data});
}

enum mcp_next call_result(struct mcp_call *c, const json_t *result)
{
	if (!wants_answer(c))
		return MCP_REPLY;
	separate(c);
	if (c->version->era == MCP_MODERN) {
		AUTO_JSON *whole = modern_result(c->method, result);

		rpc_add_result(&c->reply, c->msg.id, whole);
	} else {
		rpc_add_result(&c->reply, c->msg.id, result);
	}
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
	add_error(c, code, text, NULL);
	return MCP_REPLY;
}

enum mcp_next call_fault_data(struct mcp_call *c, int status, enum rpc_code code,
			      json_t *data, const char *text)
{
	if (!c->batch)
		c->status = status;
	add_error(c, code, text, data);
	json_decref(data);
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
	return call_fault_data(c, status, code, NULL, text);
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

enum mcp_next call_session_changed(struct mcp_call *c, call_answer_fn *then)
{
	c->has_changed_session = true;
	return call_send(
		c, MSG_RELAY,
		json_pack("{s:s, s:s}", "session_id", c->session_id, "kind", "changed"),
		then);
}

enum mcp_next call_await(struct mcp_call *c, int64_t timeout_ms, call_done_fn *then,
			 call_answer_fn *failed)
{
	c->await_timeout_ms = timeout_ms;
	c->await_until_mono = clock_mono_ms() + timeout_ms;
	c->on_done = then;
	c->on_answer = failed; /* only mcp_call_fail() comes there */
	return MCP_AWAIT_RUN;
}

/* ---- the members of the body, one after the other */

/* Where only a message could tell what is wrong, nobody is told of what wants none. */
static bool is_silent(const struct mcp_call *c, const json_t *m)
{
	return (c->batch || c->by_session || c->is_stdio) && !rpc_expects_answer(m);
}

static enum mcp_next member_step(struct mcp_call *c, const struct mcp_reads *r,
				 const json_t *m)
{
	struct err e = ERR_INIT;

	c->tool = NULL;
	c->method = NULL;
	c->member = m;
	if (rpc_classify(m, &c->msg, &e) < 0)
		return is_silent(c, m)
			       ? MCP_REPLY
			       : call_fault(c, 400, RPC_INVALID_REQUEST, "%s", e.msg);
	progress_init(&c->progress, c->msg.params);
	return method_handle(c, r);
}

static const json_t *next_member(struct mcp_call *c)
{
	size_t i = c->index++;

	if (c->batch)
		return json_array_get(c->doc, i);
	return i == 0 ? c->doc : NULL;
}

void call_drop_reply(struct mcp_call *c)
{
	buf_release(&c->reply);
	c->reply = (struct buf)BUF_INIT(REPLY_MAX);
	c->status = 0;
}

enum mcp_next call_finish(struct mcp_call *c)
{
	if (c->batch && c->reply.len > 0)
		buf_puts(&c->reply, "]");
	if (!buf_ok(&c->reply)) {
		call_drop_reply(c);
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
	c->run_is_ours = false;
	c->waits_streaming = false;
	json_decref(MOVE(c->questions));
	json_decref(MOVE(c->answers));
	c->then = NULL;
	c->consent_for = -1;
}

enum mcp_next call_advance(struct mcp_call *c, const struct mcp_reads *r,
			   enum mcp_next next)
{
	const json_t *m;

	while (next == MCP_REPLY) {
		end_member(c);
		m = next_member(c);
		if (!m)
			return call_finish(c);
		next = member_step(c, r, m);
	}
	return next;
}

struct mcp_call *call_new(struct mcp_server *s, const struct mcp_http *in)
{
	struct mcp_call *c = xcalloc(1, sizeof(*c));

	c->server = s;
	c->tenant = xstrdup(in->tenant);
	c->base_url = xstrdup(in->base_url ? in->base_url : "");
	c->version = mcp_version_newest(MCP_LEGACY);
	c->msg.kind = RPC_IS_NOTIFICATION;
	c->reply = (struct buf)BUF_INIT(REPLY_MAX);
	c->log = (struct buf)BUF_INIT(LOG_MAX);
	c->log_level = -1;
	c->consent_for = -1;
	c->began_mono = clock_mono_ms();
	return c;
}

/* ---- the steps */

static enum mcp_next go_on(struct mcp_call *c, const struct mcp_reads *r,
			   const json_t *ok, const struct err *why)
{
	call_answer_fn *step = c->on_answer;

	assert(step);
	c->on_answer = NULL;
	return call_advance(c, r, step(c, r, ok, why));
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

enum mcp_next mcp_call_refuse(struct mcp_call *c, const struct err *why)
{
	c->on_answer = NULL;
	c->on_done = NULL;
	c->then = NULL;
	json_decref(MOVE(c->listens));
	call_failure(c, why);
	return call_finish(c);
}

enum mcp_next mcp_call_run_done(struct mcp_call *c, const struct mcp_reads *r)
{
	call_done_fn *step = c->on_done;

	assert(step);
	c->on_answer = NULL;
	c->on_done = NULL;
	return call_advance(c, r, step(c, r));
}

enum mcp_next mcp_call_canceled(struct mcp_call *c, const struct mcp_reads *r)
{
	c->on_answer = NULL;
	c->on_done = NULL;
	c->then = NULL;
	return call_advance(c, r, MCP_REPLY);
}

void mcp_call_free(struct mcp_call *c)
{
	if (!c)
		return;
	end_member(c);
	json_decref(c->doc);
	json_decref(c->message);
	json_decref(c->listens);
	buf_release(&c->log);
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

bool mcp_call_has_changed_session(const struct mcp_call *c)
{
	return c->has_changed_session;
}

const char *mcp_call_method(const struct mcp_call *c)
{
	return c->msg.method ? c->msg.method : "-";
}

const char *mcp_call_tool(const struct mcp_call *c)
{
	return c->tool ? c->tool->name : "-";
}
