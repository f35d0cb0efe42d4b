/* SPDX-License-Identifier: MIT */
#include "mcp/methods.h"

#include <string.h>

#include "base/json.h"
#include "base/version.h"
#include "mcp/tools.h"

enum { CLIENT_NAME_MAX = 200 };

/* ---- initialize */

static json_t *server_info(void)
{
	return json_pack("{s:s, s:s, s:s}", "name", "mcp-sandboxd", "title",
			 "Persistent Linux sandboxes", "version", MCP_SANDBOXD_VERSION);
}

static enum mcp_next session_opened(struct mcp_call *c, const struct mcp_reads *r,
				    const json_t *ok, const struct err *why)
{
	AUTO_JSON *result = NULL;

	(void)r;
	if (!ok)
		return call_failure(c, why);
	sessions_add(c->server->sessions, c->tenant, c->session_id, c->version);
	c->opened = true;
	result = json_pack("{s:s, s:{s:{}}, s:o, s:s}", "protocolVersion",
			   c->version->name, "capabilities", "tools", "serverInfo",
			   server_info(), "instructions", c->server->instructions);
	return call_result(c, result);
}

/* Who the client says it is: for the operator's eyes, so bounded and never checked. */
static json_t *client_word(const struct mcp_call *c, const char *key)
{
	const json_t *info = json_object_get(c->msg.params, "clientInfo");
	const json_t *word = json_object_get(info, key);
	size_t n = json_string_length(word);

	if (!json_is_string(word))
		return json_string("");
	return rpc_text(json_string_value(word),
			n < CLIENT_NAME_MAX ? n : CLIENT_NAME_MAX);
}

static enum mcp_next do_initialize(struct mcp_call *c, const struct mcp_reads *r)
{
	const char *wanted =
		json_string_value(json_object_get(c->msg.params, "protocolVersion"));
	const struct mcp_version *v;

	(void)r;
	if (c->batch)
		return call_error(c, RPC_INVALID_REQUEST,
				  "initialize cannot be part of a batch");
	if (!wanted)
		return call_error(c, RPC_BAD_PARAMS, "params.protocolVersion is missing");
	v = mcp_version_find(wanted);
	c->version = v ? v : mcp_version_newest();
	id_new_session(c->session_id);
	return call_send(c, MSG_SESSION_OPEN,
			 json_pack("{s:s, s:s, s:s, s:o, s:o}", "tenant", c->tenant,
				   "session_id", c->session_id, "protocol_version",
				   c->version->name, "client_name",
				   client_word(c, "name"), "client_version",
				   client_word(c, "version")),
			 session_opened);
}

/* ---- the others */

static enum mcp_next do_ping(struct mcp_call *c, const struct mcp_reads *r)
{
	(void)r;
	return call_result_text(c, "{}", 2);
}

static enum mcp_next do_tools_list(struct mcp_call *c, const struct mcp_reads *r)
{
	const json_t *cursor = json_object_get(c->msg.params, "cursor");

	(void)r;
	/* There is one page, so no cursor is ours; an empty one is a client's habit. */
	if (cursor && !json_is_null(cursor) && json_string_length(cursor) > 0)
		return call_error(c, RPC_BAD_PARAMS, "params.cursor is none of ours");
	if (cursor && !json_is_null(cursor) && !json_is_string(cursor))
		return call_error(c, RPC_BAD_PARAMS, "params.cursor must be a string");
	return call_result_text(c, c->server->tools_list, c->server->tools_list_len);
}

static const struct method {
	const char *name;
	unsigned eras;
	enum mcp_next (*handle)(struct mcp_call *c, const struct mcp_reads *r);
} methods[] = {
	{"initialize", MCP_LEGACY, do_initialize},
	{"ping", MCP_LEGACY, do_ping},
	{"tools/list", MCP_LEGACY, do_tools_list},
	{"tools/call", MCP_LEGACY, tool_call},
};

enum mcp_next method_handle(struct mcp_call *c, const struct mcp_reads *r)
{
	size_t i;

	for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if ((methods[i].eras & c->version->era) &&
		    strcmp(methods[i].name, c->msg.method) == 0)
			return methods[i].handle(c, r);
	return call_error(c, RPC_NO_METHOD, "no method %.100s here", c->msg.method);
}
