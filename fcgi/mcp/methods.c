/* SPDX-License-Identifier: MIT */
#include "mcp/methods.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "mcp/extra.h"
#include "mcp/hello.h"
#include "mcp/logmsg.h"
#include "mcp/resources.h"
#include "mcp/subscribe.h"
#include "mcp/tasks.h"
#include "mcp/tools.h"

enum { LIST_CACHE_MS = 5 * 60 * 1000, REASON_MAX = 500 };

static enum mcp_next do_ping(struct mcp_call *c, const struct mcp_reads *r)
{
	(void)r;
	return call_result_text(c, "{}", 2);
}

static enum mcp_next do_tools_list(struct mcp_call *c, const struct mcp_reads *r)
{
	const json_t *cursor = json_object_get(c->msg.params, "cursor");
	const struct str *list;

	(void)r;
	/* There is one page, so no cursor is ours; an empty one is a client's habit. */
	if (cursor && !json_is_null(cursor) && json_string_length(cursor) > 0)
		return call_error(c, RPC_BAD_PARAMS, "params.cursor is none of ours");
	if (cursor && !json_is_null(cursor) && !json_is_string(cursor))
		return call_error(c, RPC_BAD_PARAMS, "params.cursor must be a string");
	list = &c->server->tools_list[server_list_form(c->version)];
	return call_result_text(c, list->p, list->n);
}

/* ---- notifications */

static enum mcp_next relayed(struct mcp_call *c, const struct mcp_reads *r,
			     const json_t *ok, const struct err *why)
{
	(void)c;
	(void)r;
	(void)ok;
	(void)why; /* the run goes on: a cancel may always come too late */
	return MCP_REPLY;
}

/*
 * The request waits at some edge, perhaps another one: all of them are told. Who
 * canceled what has ended, or never was, is not told anything.
 */
static enum mcp_next do_cancelled(struct mcp_call *c, const struct mcp_reads *r)
{
	json_t *id = json_object_get(c->msg.params, "requestId");
	const char *reason = json_get_string(c->msg.params, "reason");

	(void)r;
	if (!rpc_id_ok(id))
		return MCP_REPLY;
	reason = reason ? reason : "";
	return call_send(c, MSG_RELAY,
			 json_pack("{s:s, s:s, s:O, s:o}", "session_id", c->session_id,
				   "kind", "cancel", "request_id", id, "reason",
				   rpc_text(reason, strnlen(reason, REASON_MAX))),
			 relayed);
}

/* clang-format off */
static const struct method methods[] = {
	{"initialize",      MCP_LEGACY, hello_initialize, NULL, NULL, 0},
	{"server/discover", MCP_MODERN, hello_discover, NULL, "public", LIST_CACHE_MS},
	{"ping",            MCP_LEGACY, do_ping, NULL, NULL, 0},
	{"tools/list",      MCP_LEGACY | MCP_MODERN, do_tools_list, NULL, "public", LIST_CACHE_MS},
	{"tools/call",      MCP_LEGACY | MCP_MODERN, tool_call, "name", NULL, 0},
	{"resources/list",  MCP_LEGACY | MCP_MODERN, resources_list, NULL, "private", 0},
	{"resources/templates/list", MCP_LEGACY | MCP_MODERN, resources_templates, NULL, "public", LIST_CACHE_MS},
	{"resources/read",  MCP_LEGACY | MCP_MODERN, resources_read, "uri", "private", 0},
	{"resources/subscribe", MCP_LEGACY, resources_subscribe, NULL, NULL, 0},
	{"resources/unsubscribe", MCP_LEGACY, resources_unsubscribe, NULL, NULL, 0},
	{"subscriptions/listen", MCP_MODERN, subscriptions_listen, NULL, NULL, 0},
	{"logging/setLevel", MCP_LEGACY, logging_set_level, NULL, NULL, 0},
	{"completion/complete", MCP_LEGACY | MCP_MODERN, completion_complete, NULL, NULL, 0},
	{"tasks/get",       MCP_LEGACY, tasks_get, NULL, NULL, 0},
	{"tasks/get",       MCP_MODERN, tasks_get_detailed, "taskId", NULL, 0},
	{"tasks/list",      MCP_LEGACY, tasks_list, NULL, NULL, 0},
	{"tasks/result",    MCP_LEGACY, tasks_result, NULL, NULL, 0},
	{"tasks/cancel",    MCP_LEGACY, tasks_cancel, NULL, NULL, 0},
	{"tasks/cancel",    MCP_MODERN, tasks_cancel_soon, "taskId", NULL, 0},
	{"tasks/update",    MCP_MODERN, tasks_update, "taskId", NULL, 0},
};
static const struct method notifications[] = {
	{"notifications/cancelled", MCP_LEGACY, do_cancelled, NULL, NULL, 0},
};
/* clang-format on */

static const struct method *find(const struct method *table, size_t n, enum mcp_era era,
				 const char *name)
{
	for (size_t i = 0; i < n; i++)
		if ((table[i].eras & era) && strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

const struct method *method_find(enum mcp_era era, const char *name)
{
	return find(methods, sizeof(methods) / sizeof(methods[0]), era, name);
}

static enum mcp_next handle_notification(struct mcp_call *c, const struct mcp_reads *r)
{
	const struct method *m =
		find(notifications, sizeof(notifications) / sizeof(notifications[0]),
		     c->version->era, c->msg.method);

	return m ? m->handle(c, r) : MCP_REPLY; /* taken note of: 202 */
}

/*
 * To one of our own requests (mcp/ask.h): who asked waits at some edge, perhaps
 * another one. What nobody waits for any more is thrown away there.
 */
static enum mcp_next handle_response(struct mcp_call *c)
{
	const char *id = json_get_string(c->member, "id");

	if (!id || !str_starts(id, MCP_ASK_PREFIX) || c->version->era == MCP_MODERN)
		return MCP_REPLY;
	return call_send(c, MSG_RELAY,
			 json_pack("{s:s, s:s, s:O}", "session_id", c->session_id, "kind",
				   "answer", "message", c->member),
			 relayed);
}

enum mcp_next method_handle(struct mcp_call *c, const struct mcp_reads *r)
{
	enum mcp_next next;

	if (c->msg.kind == RPC_IS_RESPONSE)
		return handle_response(c);
	if (c->msg.kind == RPC_IS_NOTIFICATION)
		return handle_notification(c, r);
	c->method = method_find(c->version->era, c->msg.method);
	if (mcp_extra.handle && mcp_extra.handle(c, r, &next))
		return next;
	if (c->method)
		return c->method->handle(c, r);
	if (c->version->era == MCP_MODERN)
		return call_fault(c, 404, RPC_NO_METHOD, "no method %.100s here",
				  c->msg.method);
	return call_error(c, RPC_NO_METHOD, "no method %.100s here", c->msg.method);
}
