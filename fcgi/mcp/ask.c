/* SPDX-License-Identifier: MIT */
#include "mcp/ask.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"

enum { STATE_MAX = 16 * 1024, ID_PREFIX_LEN = 16, KEY_MAX = 64 };

static const struct {
	enum ask_kind kind;
	const char *capability, *method;
} kinds[] = {
	{ASK_ELICITATION, "elicitation", "elicitation/create"},
	{ASK_SAMPLING, "sampling", "sampling/createMessage"},
	{ASK_ROOTS, "roots", "roots/list"},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

unsigned ask_kinds_of(const char *list)
{
	unsigned set = 0;

	for (size_t i = 0; i < KINDS; i++)
		if (str_list_has(list, kinds[i].capability))
			set |= (unsigned)kinds[i].kind;
	return set;
}

void ask_list_of(const json_t *capabilities, char dst[static ASK_LIST_SIZE])
{
	size_t n = 0;

	dst[0] = '\0';
	for (size_t i = 0; i < KINDS; i++)
		if (json_is_object(json_object_get(capabilities, kinds[i].capability)))
			n += (size_t)snprintf(dst + n, ASK_LIST_SIZE - n, "%s%s",
					      n ? "," : "", kinds[i].capability);
}

unsigned ask_client_can(const struct mcp_call *c)
{
	char list[ASK_LIST_SIZE];

	if (c->version->era == MCP_LEGACY)
		return (c->accepts_stream || c->by_session) && !c->batch ? c->can : 0;
	ask_list_of(c->capabilities, list);
	return ask_kinds_of(list);
}

static unsigned kind_of(const json_t *question)
{
	const char *method = json_get_string(question, "method");

	for (size_t i = 0; i < KINDS; i++)
		if (method && strcmp(method, kinds[i].method) == 0)
			return (unsigned)kinds[i].kind;
	return 0;
}

static unsigned kinds_asked(const json_t *questions)
{
	unsigned set = 0;
	const char *key;
	json_t *q;

	json_object_foreach((json_t *)questions, key, q)
		set |= kind_of(q);
	return set;
}

enum mcp_next ask_demand(struct mcp_call *c, enum ask_kind kind)
{
	const char *name = "";

	for (size_t i = 0; i < KINDS; i++)
		if (kinds[i].kind == kind)
			name = kinds[i].capability;
	if (c->version->era == MCP_LEGACY)
		return call_error(c, RPC_INVALID_REQUEST,
				  "this needs a client that declares %s and takes "
				  "text/event-stream",
				  name);
	return call_fault_data(
		c, 400, RPC_MISSING_CAPABILITY,
		json_pack("{s:{s:{}}}", "requiredCapabilities", name),
		"the request's clientCapabilities do not declare what this needs");
}

static enum mcp_next demand_missing(struct mcp_call *c, unsigned missing)
{
	for (size_t i = 0; i < KINDS; i++)
		if (missing & (unsigned)kinds[i].kind)
			return ask_demand(c, kinds[i].kind);
	return MCP_REPLY;
}

/* ---- modern: the state that travels through the client */

/* What the state is good for: this request, whatever its _meta and its answers. */
static void request_digest(const struct mcp_call *c, char out[static SHA256_HEX_LEN + 1])
{
	static const char *const beside[] = {"_meta", "inputResponses", "requestState"};
	AUTO_JSON *params = json_copy((json_t *)c->msg.params);
	AUTO_FREE char *text = NULL;
	AUTO_BUF b = BUF_INIT(SIZE_MAX);

	for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++)
		json_object_del(params, beside[i]);
	text = json_dumps(params, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
	buf_printf(&b, "%s\n%s\n", c->tenant, c->msg.method);
	buf_puts(&b, text ? text : "");
	sha256_hex(b.p, b.len, out);
}

static int sign(const struct mcp_reads *r, const char *text, size_t n,
		char out[static SHA256_HEX_LEN + 1], struct err *e)
{
	char key[MCP_KEY_SIZE];

	if (r->key(r->arg, key, e) < 0)
		return -1;
	sha256_hmac_hex(key, strlen(key), text, n, out);
	return 0;
}

/*
 * base64url(payload) "." hmac. Its end is told by the wall clock: any edge may be
 * asked to take it, of this server or of the one after a reboot, and the monotonic
 * clock begins anew with each boot. A clock that is set makes it end early or late,
 * no more; the signature does not depend on it.
 */
static int state_text(const struct mcp_call *c, const struct mcp_reads *r,
		      const json_t *state, struct buf *out, struct err *e)
{
	char digest[SHA256_HEX_LEN + 1], mac[SHA256_HEX_LEN + 1];
	json_int_t until = clock_now_ms();
	AUTO_JSON *payload = NULL;
	AUTO_BUF text = BUF_INIT(STATE_MAX);

	request_digest(c, digest);
	payload = json_must(json_pack("{s:I, s:s, s:O}", "until", until + ASK_STATE_MS,
				      "of", digest, "state", state));
	json_dump_buf(payload, &text);
	base64url_add(out, text.p, text.len);
	if (sign(r, out->p, out->len, mac, e) < 0)
		return -1;
	buf_printf(out, ".%s", mac);
	return 0;
}

/* NULL: not signed by us, not for this request, or too old. */
static json_t *state_of(const struct mcp_call *c, const struct mcp_reads *r,
			const char *text)
{
	const char *dot = strrchr(text, '.');
	size_t n = dot ? (size_t)(dot - text) : 0;
	char mac[SHA256_HEX_LEN + 1], digest[SHA256_HEX_LEN + 1];
	AUTO_BUF plain = BUF_INIT(STATE_MAX);
	AUTO_JSON *payload = NULL;
	struct err e = ERR_INIT;
	const char *of;

	if (!dot || n > STATE_MAX || sign(r, text, n, mac, &e) < 0 ||
	    !str_same_secret(str_of(dot + 1), str_of(mac)) ||
	    base64_decode(&plain, text, n, &e) < 0 || !buf_ok(&plain) ||
	    json_parse(plain.p, plain.len, &payload, &e) < 0)
		return NULL;
	request_digest(c, digest);
	of = json_get_string(payload, "of");
	if (!of || strcmp(of, digest) != 0 ||
	    json_integer_value(json_object_get(payload, "until")) < clock_now_ms())
		return NULL;
	return json_incref(json_object_get(payload, "state"));
}

int ask_state(struct mcp_call *c, const struct mcp_reads *r, json_t **ret)
{
	const json_t *given = json_object_get(c->msg.params, "requestState");
	json_t *state;

	if (c->version->era != MCP_MODERN || !given)
		return 0;
	state = json_is_string(given) ? state_of(c, r, json_string_value(given)) : NULL;
	if (!state) {
		call_error(c, RPC_BAD_PARAMS,
			   "params.requestState is none of ours, is of another request, "
			   "or is too old; send the request without it");
		return -1;
	}
	*ret = state;
	return 1;
}

static enum mcp_next answer_input_required(struct mcp_call *c, const struct mcp_reads *r,
					   const struct ask *a)
{
	AUTO_JSON *result = json_pack("{s:s, s:O}", "resultType", "input_required",
				      "inputRequests", a->questions);
	AUTO_BUF state = BUF_INIT(2 * STATE_MAX);
	struct err e = ERR_INIT;

	if (a->state && state_text(c, r, a->state, &state, &e) < 0)
		return call_failure(c, &e);
	if (a->state)
		json_object_set_new(result, "requestState",
				    json_stringn(state.p, state.len));
	return call_result(c, result);
}

/* Have all questions an answer? Those nobody asked are passed over. */
static bool all_told(const json_t *questions, const json_t *answers)
{
	const char *key;
	json_t *q;

	json_object_foreach((json_t *)questions, key, q)
		if (!json_is_object(json_object_get(answers, key)))
			return false;
	return true;
}

static enum mcp_next ask_modern(struct mcp_call *c, const struct mcp_reads *r,
				const struct ask *a)
{
	const json_t *answers = json_object_get(c->msg.params, "inputResponses");
	AUTO_JSON *state = NULL;

	if (ask_state(c, r, &state) < 0)
		return MCP_REPLY;
	/* Without the state that came with the question, none was asked. */
	if ((state || !a->state) && all_told(a->questions, answers))
		return a->then(c, r, answers, NULL);
	return answer_input_required(c, r, a);
}

/* ---- legacy: on the stream */

static enum mcp_next not_told(struct mcp_call *c, const struct mcp_reads *r,
			      const json_t *ok, const struct err *why)
{
	call_told_fn *then = c->then;

	(void)ok;
	c->then = NULL;
	return then(c, r, NULL, why);
}

static enum mcp_next ask_legacy(struct mcp_call *c, const struct ask *a)
{
	json_decref(c->questions);
	json_decref(c->answers);
	c->questions = json_incref(a->questions);
	c->answers = json_object();
	id_random_hex(c->ask_id, ID_PREFIX_LEN);
	c->then = a->then;
	c->on_answer = not_told; /* only mcp_call_fail() comes there */
	c->waits_streaming = true;
	return MCP_ASK;
}

enum mcp_next ask_client(struct mcp_call *c, const struct mcp_reads *r,
			 const struct ask *a)
{
	AUTO_JSON *questions = a->questions; /* taken over */
	unsigned missing = kinds_asked(questions) & ~ask_client_can(c);

	if (missing || json_object_size(questions) > ASK_QUESTIONS_MAX)
		return demand_missing(c, missing);
	return c->version->era == MCP_MODERN ? ask_modern(c, r, a) : ask_legacy(c, a);
}

static void add_question(const struct mcp_call *c, const char *key, const json_t *q,
			 struct buf *b)
{
	char id[ID_PREFIX_LEN + KEY_MAX + 8];
	json_t *params = json_object_get(q, "params");
	AUTO_JSON *message = NULL;

	snprintf(id, sizeof(id), MCP_ASK_PREFIX "%s-%s", c->ask_id, key);
	message = json_must(json_pack("{s:s, s:s, s:O}", "jsonrpc", "2.0", "id", id,
				      "method", json_object_get(q, "method")));
	if (params)
		json_object_set(message, "params", params);
	rpc_add_json(b, message);
}

void mcp_call_question_lines(const struct mcp_call *c, struct buf *b)
{
	const char *key, *between = "";
	json_t *q;

	json_object_foreach(c->questions, key, q) {
		buf_puts(b, between);
		add_question(c, key, q, b);
		between = "\n";
	}
}

void mcp_call_questions(const struct mcp_call *c, struct buf *b)
{
	const char *key;
	json_t *q;

	json_object_foreach(c->questions, key, q) {
		AUTO_BUF text = BUF_INIT(SIZE_MAX);

		add_question(c, key, q, &text);
		mcp_frame(text.p, text.len, b);
	}
}

/* The key of the question that id asks; NULL: it is none of this call. */
static const char *key_of(const struct mcp_call *c, const json_t *id)
{
	const char *text = json_string_value(id);
	size_t n = strlen(MCP_ASK_PREFIX);

	if (!text || !c->questions || !str_starts(text, MCP_ASK_PREFIX) ||
	    strncmp(text + n, c->ask_id, ID_PREFIX_LEN) != 0 ||
	    text[n + ID_PREFIX_LEN] != '-')
		return NULL;
	text += n + ID_PREFIX_LEN + 1;
	return json_object_get(c->questions, text) ? text : NULL;
}

static enum mcp_next refused(struct mcp_call *c, const struct mcp_reads *r,
			     const json_t *error)
{
	const char *words = json_get_string(error, "message");
	struct err why = ERR_INIT;

	err_set(&why, ERR_DENIED, "the client did not answer: %.200s",
		words ? words : "no words");
	return mcp_call_fail(c, r, &why);
}

bool mcp_call_told(struct mcp_call *c, const struct mcp_reads *r, const char *session_id,
		   const json_t *message, enum mcp_next *next)
{
	const char *key = key_of(c, json_object_get(message, "id"));
	json_t *result = json_object_get(message, "result");
	call_told_fn *then = c->then;
	AUTO_JSON *answers = NULL;

	if (!key || !then || (session_id && strcmp(session_id, c->session_id) != 0))
		return false;
	if (!json_is_object(result)) {
		*next = refused(c, r, json_object_get(message, "error"));
		return true;
	}
	json_object_set(c->answers, key, result);
	if (!all_told(c->questions, c->answers))
		return false;
	answers = MOVE(c->answers);
	json_decref(MOVE(c->questions));
	c->then = NULL;
	c->on_answer = NULL;
	*next = call_advance(c, r, then(c, r, answers, NULL));
	return true;
}

bool mcp_call_is_asking(const struct mcp_call *c)
{
	return c->then != NULL;
}

const json_t *mcp_response_id(const json_t *message)
{
	return json_object_get(message, "method") ? NULL : json_object_get(message, "id");
}
