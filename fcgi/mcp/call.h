/* SPDX-License-Identifier: MIT */
#ifndef MCP_CALL_H
#define MCP_CALL_H

#include "base/buf.h"
#include "base/id.h"
#include "mcp/jsonrpc.h"
#include "mcp/mcp.h"
#include "mcp/progress.h"
#include "mcp/server.h"
#include "mcp/version.h"

/*
 * One HTTP request on its way, private to this folder. A batch is worked through
 * member by member, each by the same steps: a method's handler answers at once
 * (call_result(), call_error()) and returns MCP_REPLY, or asks for something
 * (call_send(), call_await()) and goes on in the step it named. MCP_REPLY from a
 * handler or a step means "this member is answered".
 *
 * post.c and get.c open a call (which era, which session), call.c steps it.
 */
struct tool;
struct method;

/* ok: the body of MSG_OK, or NULL and why. */
typedef enum mcp_next call_answer_fn(struct mcp_call *c, const struct mcp_reads *r,
				     const json_t *ok, const struct err *why);
/* The awaited run ended or the time is over; its row tells which. */
typedef enum mcp_next call_done_fn(struct mcp_call *c, const struct mcp_reads *r);
/* What the client answered, {key: result}, or NULL and why not (mcp/ask.h). */
typedef enum mcp_next call_told_fn(struct mcp_call *c, const struct mcp_reads *r,
				   const json_t *answers, const struct err *why);
/* The ids of our own requests begin so. */
#define MCP_ASK_PREFIX "ask-"

struct mcp_call {
	struct mcp_server *server;
	char *tenant;
	char *base_url;
	char session_id[ID_HEX_LEN +
			1]; /* alive, or being opened; "" in the modern era */
	const struct mcp_version *version;
	bool accepts_stream; /* the client takes text/event-stream */
	bool by_session;     /* MCP_WAY_SESSION */
	bool is_stdio;       /* there is no HTTP status, only messages */
	bool is_stream;      /* the answer has begun as one */
	bool opens_sse;      /* GET of the HTTP+SSE transport */

	json_t *doc; /* the body; NULL when it was no JSON */
	bool batch;
	size_t index;                /* of the next member */
	struct rpc_msg msg;          /* the member in hand */
	const struct method *method; /* its row; NULL: none */
	const json_t *member;        /* the same as JSON */
	const json_t *capabilities;  /* the client's, modern era; borrowed from doc */
	unsigned can;                /* legacy era: what it can be asked (mcp/ask.h) */
	int log_level;               /* -1: no log messages (mcp/logmsg.h) */

	call_answer_fn *on_answer;
	enum edgemsg_type message_type;
	json_t *message;
	call_done_fn *on_done;
	int64_t began_mono; /* the POST came then */
	int64_t await_timeout_ms;
	int64_t await_until_mono;
	bool waits_streaming; /* worth a stream even without a progress token */
	struct progress progress;
	struct buf log; /* messages for the client, a line each */
	int64_t log_left_out;

	call_told_fn *then; /* the client is asked: */
	char ask_id[24];
	json_t *questions, *answers;                    /* owned */
	enum mcp_next (*consented)(struct mcp_call *c); /* mcp/consent.h */
	int64_t consent_for; /* the sandbox that was made then; -1: nobody was asked */

	json_t *listens; /* owned; mcp_call_listens() */
	bool has_changed_session;

	/* the tool call in hand */
	const struct tool *tool;
	json_t *args; /* borrowed from doc, or owned when it was not given */
	json_t *owned_args;
	char run_id[ID_RUN_LEN + 1];
	bool run_is_ours; /* asked for by this member, not handed out yet */
	bool await, as_task;

	int status;  /* 0: not decided yet */
	bool opened; /* answer with Mcp-Session-Id */
	int retry_after_s;
	struct buf reply;
};

struct mcp_call *call_new(struct mcp_server *s, const struct mcp_http *in);
/* Works through the members from `next` on. */
enum mcp_next call_advance(struct mcp_call *c, const struct mcp_reads *r,
			   enum mcp_next next);
/* What was said is taken back. */
void call_drop_reply(struct mcp_call *c);
/* All is said: the whole reply. */
enum mcp_next call_finish(struct mcp_call *c);

/* Answers the member in hand. A notification is never answered. */
enum mcp_next call_result(struct mcp_call *c, const json_t *result);
enum mcp_next call_result_text(struct mcp_call *c, const char *p, size_t n);
enum mcp_next call_error(struct mcp_call *c, enum rpc_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A failure that is not the client's fault nor a tool's, by the table of failures. */
enum mcp_next call_failure(struct mcp_call *c, const struct err *why);

/* The whole request ends with this HTTP status and a JSON-RPC error. */
enum mcp_next call_fault(struct mcp_call *c, int status, enum rpc_code code,
			 const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The same with error.data; takes over data. */
enum mcp_next call_fault_data(struct mcp_call *c, int status, enum rpc_code code,
			      json_t *data, const char *text);

/* Takes over body. */
enum mcp_next call_send(struct mcp_call *c, enum edgemsg_type type, json_t *body,
			call_answer_fn *then);
/* Tells all edges that what is stored of c's session has changed. */
enum mcp_next call_session_changed(struct mcp_call *c, call_answer_fn *then);
/* Wait for c->run_id; when it cannot be waited for, `failed` goes on. */
enum mcp_next call_await(struct mcp_call *c, int64_t timeout_ms, call_done_fn *then,
			 call_answer_fn *failed);

#endif
