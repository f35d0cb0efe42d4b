/* SPDX-License-Identifier: MIT */
#include "mcp/jsonrpc.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"

bool rpc_id_ok(const json_t *id)
{
	return json_is_integer(id) ||
	       (json_is_string(id) && json_string_length(id) <= RPC_ID_MAX);
}

static int classify_response(const json_t *m, struct rpc_msg *ret, struct err *e)
{
	if (!json_object_get(m, "result") && !json_object_get(m, "error"))
		return err_set(e, ERR_INVALID, "method is missing");
	ret->kind = RPC_IS_RESPONSE;
	ret->id = NULL; /* nobody answers an answer */
	return 0;
}

int rpc_classify(const json_t *m, struct rpc_msg *ret, struct err *e)
{
	const json_t *id = json_object_get(m, "id");
	const json_t *method = json_object_get(m, "method");
	const char *version = json_string_value(json_object_get(m, "jsonrpc"));

	*ret = (struct rpc_msg){.id = rpc_id_ok(id) ? id : NULL};
	if (!json_is_object(m))
		return err_set(e, ERR_INVALID, "a message must be an object");
	if (!version || strcmp(version, "2.0") != 0)
		return err_set(e, ERR_INVALID, "jsonrpc must be \"2.0\"");
	if (!method)
		return classify_response(m, ret, e);
	if (!json_is_string(method))
		return err_set(e, ERR_INVALID, "method must be a string");
	if (id && !ret->id)
		return err_set(e, ERR_INVALID,
			       "id must be an integer or a string of at most %d bytes",
			       RPC_ID_MAX);
	ret->params = json_object_get(m, "params");
	if (ret->params && !json_is_object(ret->params))
		return err_set(e, ERR_INVALID, "params must be an object");
	ret->method = json_string_value(method);
	ret->kind = id ? RPC_IS_REQUEST : RPC_IS_NOTIFICATION;
	return 0;
}

static bool is_one_way(const json_t *m)
{
	const json_t *method = json_object_get(m, "method");

	if (method)
		return json_is_string(method) && !json_object_get(m, "id");
	return json_object_get(m, "result") || json_object_get(m, "error");
}

bool rpc_expects_answer(const json_t *doc)
{
	size_t i, n = json_array_size(doc);

	if (n == 0)
		return !is_one_way(doc);
	for (i = 0; i < n; i++)
		if (!is_one_way(json_array_get(doc, i)))
			return true;
	return false;
}

static int add_chunk(const char *p, size_t n, void *arg)
{
	buf_add(arg, p, n);
	return 0;
}

void rpc_add_json(struct buf *b, const json_t *v)
{
	/* Fails only when out of memory; the values are built or parsed by us. */
	int rc = json_dump_callback(v, add_chunk, b, JSON_COMPACT | JSON_ENCODE_ANY);

	assert(rc == 0);
	(void)rc;
}

static void add_escape(struct buf *b, unsigned char c)
{
	static const char short_of[] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};

	if (c == '"' || c == '\\')
		buf_printf(b, "\\%c", c);
	else if (c < sizeof(short_of) && short_of[c])
		buf_printf(b, "\\%c", short_of[c]);
	else
		buf_printf(b, "\\u%04x", c);
}

/* The text is valid UTF-8; spans that need no escape are copied whole. */
static void add_escaped(struct buf *b, const char *p, size_t n)
{
	size_t i, from = 0;

	buf_puts(b, "\"");
	for (i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		buf_add(b, p + from, i - from);
		add_escape(b, c);
		from = i + 1;
	}
	buf_add(b, p + from, n - from);
	buf_puts(b, "\"");
}

void rpc_add_string(struct buf *b, const char *p, size_t n)
{
	AUTO_BUF repaired = BUF_INIT(3 * n + 1);

	if (!utf8_is_valid(p, n)) {
		utf8_add_repaired(&repaired, p, n);
		p = repaired.p;
		n = repaired.len;
	}
	add_escaped(b, p, n);
}

static void add_head(struct buf *b, const json_t *id, enum rpc_unknown_id unknown)
{
	buf_puts(b, "{\"jsonrpc\":\"2.0\"");
	if (id) {
		buf_puts(b, ",\"id\":");
		rpc_add_json(b, id);
	} else if (unknown == RPC_NULL_ID) {
		buf_puts(b, ",\"id\":null");
	}
}

void rpc_add_result_text(struct buf *b, const json_t *id, const char *p, size_t n)
{
	add_head(b, id, RPC_OMIT_ID);
	buf_puts(b, ",\"result\":");
	buf_add(b, p, n);
	buf_puts(b, "}");
}

void rpc_add_result(struct buf *b, const json_t *id, const json_t *result)
{
	add_head(b, id, RPC_OMIT_ID);
	buf_puts(b, ",\"result\":");
	rpc_add_json(b, result);
	buf_puts(b, "}");
}

void rpc_add_error(struct buf *b, const json_t *id, enum rpc_unknown_id unknown,
		   const struct rpc_error *error)
{
	add_head(b, id, unknown);
	buf_printf(b, ",\"error\":{\"code\":%d,\"message\":", (int)error->code);
	rpc_add_string(b, error->message, strlen(error->message));
	if (error->data) {
		buf_puts(b, ",\"data\":");
		rpc_add_json(b, error->data);
	}
	buf_puts(b, "}}");
}

void rpc_add_notification(struct buf *b, const char *method, const json_t *params)
{
	add_head(b, NULL, RPC_OMIT_ID);
	buf_puts(b, ",\"method\":");
	rpc_add_string(b, method, strlen(method));
	buf_puts(b, ",\"params\":");
	rpc_add_json(b, params);
	buf_puts(b, "}");
}

json_t *rpc_text(const char *p, size_t n)
{
	json_t *v = json_stringn(p, n);

	if (!v) {
		AUTO_BUF b = BUF_INIT(3 * n + 1);

		utf8_add_repaired(&b, p, n);
		v = json_stringn_nocheck(b.p, b.len);
	}
	assert(v);
	return v;
}
