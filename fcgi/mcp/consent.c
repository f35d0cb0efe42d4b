/* SPDX-License-Identifier: MIT */
#include "mcp/consent.h"

#include <string.h>

#include "base/auto.h"
#include "base/json.h"
#include "mcp/ask.h"
#include "mcp/tools.h"

enum { MESSAGE_MAX = 2048 };

static enum mcp_next not_given(struct mcp_call *c, const char *why)
{
	struct err e = ERR_INIT;

	err_set(&e, ERR_DENIED, "nothing was done: %s", why);
	return tool_failed(c, &e, NULL);
}

static enum mcp_next told(struct mcp_call *c, const struct mcp_reads *r,
			  const json_t *answers, const struct err *why)
{
	const char *action =
		json_get_string(json_object_get(answers, "consent"), "action");

	(void)r;
	if (!answers)
		return not_given(c, why->msg);
	if (!action || strcmp(action, "accept") != 0)
		return not_given(c, "the user did not agree; do not try again unasked");
	return c->consented(c);
}

/* A form without fields: to accept it is to agree. */
static json_t *question(const struct mcp_call *c)
{
	AUTO_BUF words = BUF_INIT(MESSAGE_MAX);
	const char *identifier = json_get_string(c->args, "identifier");

	buf_printf(&words,
		   "May %s end the sandbox \"%.256s\"? Its files and what was installed "
		   "in it are lost; artifacts of its runs stay.",
		   c->tool->name, identifier ? identifier : "");
	return json_must(json_pack("{s:{s:s, s:{s:o, s:{s:s, s:{}}}}}", "consent",
				   "method", "elicitation/create", "params", "message",
				   rpc_text(words.p, words.len), "requestedSchema",
				   "type", "object", "properties"));
}

/* Of the round that is answered now, or of the one that begins. -1: answered. */
static int take_state(struct mcp_call *c, const struct mcp_reads *r, json_t **ret)
{
	struct err e = ERR_INIT;
	int64_t made_at;
	int rc = ask_state(c, r, ret);

	if (rc < 0)
		return -1;
	if (rc == 0) {
		if (r->made_at(r->arg, c->tenant, json_get_string(c->args, "identifier"),
			       &made_at, &e) < 0) {
			tool_failed(c, &e, NULL);
			return -1;
		}
		*ret = json_pack("{s:I}", "made_at", (json_int_t)made_at);
	}
	c->consent_for = json_integer_value(json_object_get(*ret, "made_at"));
	return 0;
}

enum mcp_next consent_ask(struct mcp_call *c, const struct mcp_reads *r, consent_fn *then)
{
	AUTO_JSON *state = NULL;

	c->consented = then;
	if (!(ask_client_can(c) & ASK_ELICITATION) && c->version->era == MCP_LEGACY)
		return not_given(c, "this server asks the user first, and the client "
				    "does not declare elicitation with a stream to ask "
				    "on");
	if (take_state(c, r, &state) < 0)
		return MCP_REPLY;
	return ask_client(
		c, r,
		&(struct ask){.questions = question(c), .state = state, .then = told});
}
