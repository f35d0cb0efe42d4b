/* SPDX-License-Identifier: MIT */
#ifndef MCP_CALL_H
#define MCP_CALL_H

#include "base/buf.h"
#include "base/id.h"
#include "mcp/jsonrpc.h"
#include "mcp/mcp.h"
#include "mcp/server.h"
#include "mcp/version.h"

/*
 * One HTTP request on its way, private to this folder. A batch is worked through
 * member by member, each by the same steps: a method's handler answers at once
 * (call_result(), call_error()) and returns MCP_REPLY, or asks for something
 * (call_send(), call_await()) and goes on in the step it named. MCP_REPLY from a
 * handler or a step means "this member is answered".
 */
struct tool;

/* ok: the body of MSG_OK, or NULL and why. */
typedef enum mcp_next call_answer_fn(struct mcp_call *c, const struct mcp_reads *r,
				     const json_t *ok, const struct err *why);
/* The awaited run has ended, or its time is over. */
typedef enum mcp_next call_done_fn(struct mcp_call *c, const struct mcp_reads *r);

struct mcp_call {
	struct mcp_server *server;
	char *tenant;
	char *base_url;
	char session_id[ID_HEX_LEN + 1]; /* alive, or being opened */
	const struct mcp_version *version;

	json_t *doc; /* the body; NULL when it was no JSON */
	bool batch;
	size_t index;       /* of the next member */
	struct rpc_msg msg; /* the member in hand */

	call_answer_fn *on_answer;
	call_done_fn *on_done; /* after MCP_AWAIT_RUN */
	enum edgemsg_type message_type;
	json_t *message;

	/* the tool call in hand */
	const struct tool *tool;
	json_t *args; /* borrowed from doc, or owned when it was not given */
	json_t *owned_args;
	json_t *accepted; /* the runner's answer to MSG_RUN */
	char run_id[ID_RUN_LEN + 1];
	bool await;
	int64_t await_timeout_ms;

	int status;  /* 0: not decided yet */
	bool opened; /* answer with Mcp-Session-Id */
	int retry_after_s;
	struct buf reply;
};

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

/* Takes over body. */
enum mcp_next call_send(struct mcp_call *c, enum edgemsg_type type, json_t *body,
			call_answer_fn *then);

#endif
