/* SPDX-License-Identifier: MIT */
#include "mcp/hello.h"

#include "base/json.h"
#include "base/version.h"
#include "mcp/ask.h"
#include "mcp/extra.h"
#include "mcp/modern.h"

enum { CLIENT_NAME_MAX = 200 };

json_t *hello_server_info(void)
{
	return json_pack("{s:s, s:s, s:s}", "name", "mcp-sandboxd", "title",
			 "Persistent Linux sandboxes", "version", MCP_SANDBOXD_VERSION);
}

/* For those who show it: a prompt in a frame. */
static const char icon[] =
	"data:image/svg+xml,%3Csvg%20xmlns='http://www.w3.org/2000/svg'%20viewBox='0%20"
	"0%2016%2016'%20fill='none'%20stroke='%23667'%20stroke-width='1.5'%3E%3Crect%20"
	"x='1'%20y='2'%20width='14'%20height='12'%20rx='2'/%3E%3Cpath%20d='m4%206%202%2"
	"02-2%202m4%200h4'/%3E%3C/svg%3E";

/* Where client and server meet, for versions that know icons. */
static json_t *introduction(const struct mcp_version *v)
{
	json_t *info = hello_server_info();

	if (v->has_icons)
		json_put(info, "icons",
			 json_pack("[{s:s, s:s, s:[s]}]", "src", icon, "mimeType",
				   "image/svg+xml", "sizes", "any"));
	return info;
}

/* ---- what we can, by version */

static bool always(const struct mcp_version *v)
{
	(void)v;
	return true;
}

static bool has_legacy_tasks(const struct mcp_version *v)
{
	return v->has_tasks;
}

static bool is_modern(const struct mcp_version *v)
{
	return v->era == MCP_MODERN;
}

static const struct {
	const char *name;
	bool (*is_offered)(const struct mcp_version *v);
	const char *text;
} capabilities[] = {
	{"tools", always, "{}"},
	{"resources", always, "{\"subscribe\":true}"},
	{"completions", always, "{}"},
	{"logging", always, "{}"},
	{"tasks", has_legacy_tasks,
	 "{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}"},
	{"extensions", is_modern, "{\"" MODERN_EXT_TASKS "\":{}}"},
};

static json_t *capabilities_of(const struct mcp_version *v)
{
	json_t *all = json_object();

	for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++)
		if (capabilities[i].is_offered(v))
			json_object_set_new(all, capabilities[i].name,
					    json_loads(capabilities[i].text, 0, NULL));
	if (mcp_extra.capabilities) {
		AUTO_JSON *more = json_loads(mcp_extra.capabilities, 0, NULL);

		json_object_update(all, more);
	}
	return all;
}

/* ---- initialize */

static enum mcp_next welcome(struct mcp_call *c, const struct mcp_reads *r,
			     const json_t *ok, const struct err *why)
{
	AUTO_JSON *result = NULL;

	(void)r;
	(void)ok;
	(void)why; /* other edges look again within a second all the same */
	sessions_add(c->server->sessions, c->tenant, c->session_id,
		     &(struct session_info){.version = c->version,
					    .can = c->can,
					    .log_level = c->log_level});
	c->opened = !c->by_session;
	result = json_pack("{s:s, s:o, s:o, s:s}", "protocolVersion", c->version->name,
			   "capabilities", capabilities_of(c->version), "serverInfo",
			   introduction(c->version), "instructions",
			   c->server->instructions);
	return call_result(c, result);
}

/* On the HTTP+SSE transport the session was known before: not all of it any more. */
static enum mcp_next session_opened(struct mcp_call *c, const struct mcp_reads *r,
				    const json_t *ok, const struct err *why)
{
	if (!ok)
		return call_failure(c, why);
	return c->by_session ? call_session_changed(c, welcome) : welcome(c, r, ok, why);
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

enum mcp_next hello_initialize(struct mcp_call *c, const struct mcp_reads *r)
{
	const char *wanted = json_get_string(c->msg.params, "protocolVersion");
	const struct mcp_version *v;
	char can[ASK_LIST_SIZE];

	(void)r;
	if (c->batch)
		return call_error(c, RPC_INVALID_REQUEST,
				  "initialize cannot be part of a batch");
	if (!wanted)
		return call_error(c, RPC_BAD_PARAMS, "params.protocolVersion is missing");
	v = mcp_version_find(wanted);
	c->version = v && v->era == MCP_LEGACY ? v : mcp_version_newest(MCP_LEGACY);
	/* On the HTTP+SSE transport the session began with its stream. */
	if (!c->by_session)
		id_new_session(c->session_id);
	ask_list_of(json_object_get(c->msg.params, "capabilities"), can);
	c->can = ask_kinds_of(can);
	return call_send(c, MSG_SESSION_OPEN,
			 json_pack("{s:s, s:s, s:s, s:o, s:o, s:s}", "tenant", c->tenant,
				   "session_id", c->session_id, "protocol_version",
				   c->version->name, "client_name",
				   client_word(c, "name"), "client_version",
				   client_word(c, "version"), "client_can", can),
			 session_opened);
}

/* ---- server/discover */

enum mcp_next hello_discover(struct mcp_call *c, const struct mcp_reads *r)
{
	AUTO_JSON *result =
		json_pack("{s:o, s:o, s:s, s:{s:o}}", "supportedVersions",
			  modern_versions(), "capabilities", capabilities_of(c->version),
			  "instructions", c->server->instructions, "_meta",
			  MODERN_META "serverInfo", introduction(c->version));

	(void)r;
	return call_result(c, result);
}
