/* SPDX-License-Identifier: MIT */
#ifndef MCP_JSONRPC_H
#define MCP_JSONRPC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * JSON-RPC 2.0 as MCP narrows it: an id is a string or an integer, params is an
 * object. Pure; any thread. An id is repeated in answers, notifications and messages
 * between processes, so it has a limit.
 */
enum { RPC_ID_MAX = 4096 };

enum rpc_code {
	RPC_PARSE = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_NO_METHOD = -32601,
	RPC_BAD_PARAMS = -32602,
	RPC_INTERNAL = -32603,
	/* What the SDKs of the legacy era use for faults of the transport. */
	RPC_TRANSPORT = -32000,
	RPC_NO_SESSION = -32001,
	/* The modern era's own (SPEC 2026-07-28, streamable-http). */
	RPC_HEADER_MISMATCH = -32020,
	RPC_MISSING_CAPABILITY = -32021,
	RPC_BAD_VERSION = -32022,
};

enum rpc_kind { RPC_IS_REQUEST, RPC_IS_NOTIFICATION, RPC_IS_RESPONSE };

/* One message, borrowed from its document. */
struct rpc_msg {
	enum rpc_kind kind;
	const char *method;   /* NULL for a response */
	const json_t *id;     /* NULL when there is none we may repeat */
	const json_t *params; /* NULL or an object */
};

/*
 * Sorts one JSON value. ERR_INVALID for what is no JSON-RPC message; ret->id is
 * then still set when the message had a proper id, so that the error can carry it.
 */
/* A string of at most RPC_ID_MAX bytes, or an integer. */
bool rpc_id_ok(const json_t *id);
int rpc_classify(const json_t *m, struct rpc_msg *ret, struct err *e);

/*
 * Must somebody be told what is wrong with this body? NULL: it was no JSON. No: a
 * notification or a response, proper or not, or an array of nothing else (JSON-RPC
 * 2.0, section 4.1).
 */
bool rpc_expects_answer(const json_t *doc);

/* How an error is written whose request's id is not known. */
enum rpc_unknown_id { RPC_OMIT_ID, RPC_NULL_ID };

void rpc_add_result(struct buf *b, const json_t *id, const json_t *result);
/* The same with a result that is JSON text already. */
void rpc_add_result_text(struct buf *b, const json_t *id, const char *p, size_t n);

struct rpc_error {
	enum rpc_code code;
	const char *message;
	const json_t *data; /* NULL: none */
};
void rpc_add_error(struct buf *b, const json_t *id, enum rpc_unknown_id unknown,
		   const struct rpc_error *error);

/* A notification; params is an object. */
void rpc_add_notification(struct buf *b, const char *method, const json_t *params);

/* Appends v as compact JSON. */
void rpc_add_json(struct buf *b, const json_t *v);

/* Appends n bytes from anywhere as a JSON string; what is no UTF-8 as U+FFFD. */
void rpc_add_string(struct buf *b, const char *p, size_t n);

/* The same as a value. */
json_t *rpc_text(const char *p, size_t n);

#endif
