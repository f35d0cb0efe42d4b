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

enum mcp_next consent_ask(struct mcp_call *c, const struct mcp_reads *r, consent_fn *then)
{
	AUTO_JSON *state = NULL;

	c->consented = then;
	if (!(ask_client_can(c) & ASK_ELICITATION) && c->version->era == MCP_LEGACY)
		return not_given(c, "this server asks the user first, and the client "
				    "does not declare elicitation with a stream to ask "
				    "on");
	state = json_pack("{s:s}", "tool", c->tool->name);
	return ask_client(
		c, r,
		&(struct ask){.questions = question(c), .state = state, .then = told});
}
