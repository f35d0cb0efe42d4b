/* SPDX-License-Identifier: MIT */
#include "mcp/modern.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/str.h"
#include "mcp/hello.h"
#include "mcp/logmsg.h"
#include "mcp/methods.h"

enum { NAME_MAX_BYTES = 64 * 1024 };

static const char VERSION_PATH[] = "params._meta[\"" MODERN_META "protocolVersion\"]";

static const json_t *meta_of(const json_t *doc)
{
	return json_object_get(json_object_get(doc, "params"), "_meta");
}

static const json_t *stated_version(const json_t *doc)
{
	return json_object_get(meta_of(doc), MODERN_META "protocolVersion");
}

static bool begins_handshake(const json_t *doc)
{
	const char *method = json_get_string(doc, "method");

	return method && strcmp(method, "initialize") == 0;
}

bool modern_is(const json_t *doc, const struct mcp_http *in)
{
	const struct mcp_version *v;

	if (stated_version(doc))
		return true;
	if (!in->protocol_version || begins_handshake(doc))
		return false;
	v = mcp_version_find(in->protocol_version);
	return !v || v->era == MCP_MODERN;
}

/* ---- the request */

/* Mcp-Name may be =?base64?...?=, for names that are no header's text. */
static bool says(const char *header, const char *body)
{
	static const char head[] = "=?base64?", tail[] = "?=";
	AUTO_BUF plain = BUF_INIT(NAME_MAX_BYTES);
	struct str h = str_trim(str_of(header));
	size_t around = sizeof(head) - 1 + sizeof(tail) - 1;
	struct err e = ERR_INIT;

	if (h.n < around || memcmp(h.p, head, sizeof(head) - 1) != 0 ||
	    memcmp(h.p + h.n - 2, tail, 2) != 0)
		return str_eq(h, body);
	if ((h.n - around) % 4 != 0) /* without its padding */
		return false;
	if (base64_decode(&plain, h.p + sizeof(head) - 1, h.n - around, &e) < 0)
		return false;
	return buf_ok(&plain) && plain.len == strlen(body) &&
	       memcmp(plain.p, body, plain.len) == 0;
}

/* Can a header have it as it is? */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

/* A header, and what of the body it repeats: a path in words, for who has to mend it. */
struct mirror {
	const char *name, *header;
	const char *path, *body;
};

/* -1: answered. A body without the value is that value's own error, later. */
static int check_header(struct mcp_call *c, const struct mirror *m)
{
	if (!m->header)
		call_fault(c, 400, RPC_HEADER_MISMATCH,
			   "the header %s is missing; it repeats %s", m->name, m->path);
	else if (m->body && !says(m->header, m->body))
		call_fault(c, 400, RPC_HEADER_MISMATCH,
			   "the header %s (%.100s) must say the same as %s (%.100s)%s",
			   m->name, m->header, m->path, m->body,
			   is_plain(m->body) ? "" : "; write it as =?base64?...?=");
	else
		return 0;
	return -1;
}

static int missing(struct mcp_call *c, const char *what)
{
	call_fault(c, 400, RPC_BAD_PARAMS, "params._meta[\"" MODERN_META "%s\"] is %s",
		   what, "missing or of the wrong type");
	return -1;
}

static int check_version(struct mcp_call *c, const char *stated)
{
	const struct mcp_version *v = mcp_version_find(stated);

	if (v && v->era == MCP_MODERN) {
		c->version = v;
		return 0;
	}
	call_fault_data(c, 400, RPC_BAD_VERSION,
			json_pack("{s:o, s:s}", "supported", modern_versions(),
				  "requested", stated),
			"the protocol version is not supported; older ones begin with "
			"initialize");
	return -1;
}

/* Which parameter the header Mcp-Name repeats is in the method's row. */
static int check_name(struct mcp_call *c, const struct mcp_http *in)
{
	const struct method *m = method_find(MCP_MODERN, c->msg.method);
	char path[64];

	if (!m || !m->name_param)
		return 0;
	snprintf(path, sizeof(path), "params.%s", m->name_param);
	return check_header(
		c, &(struct mirror){"Mcp-Name", in->name, path,
				    json_get_string(c->msg.params, m->name_param)});
}

/* -1: answered. */
static int take_log_level(struct mcp_call *c, const json_t *level)
{
	c->log_level = logmsg_level(json_string_value(level));
	if (!level || c->log_level >= 0)
		return 0;
	call_fault(c, 400, RPC_BAD_PARAMS,
		   "params._meta[\"" MODERN_META "logLevel\"] is no level");
	return -1;
}

/*
 * An argument that its schema marks (x-mcp-header) is in a header too. Neither is
 * there without the other.
 */
static int check_identifier(struct mcp_call *c, const struct mcp_http *in)
{
	const char *body = json_get_string(json_object_get(c->msg.params, "arguments"),
					   "identifier");

	if (!c->server->mirror_identifier || strcmp(c->msg.method, "tools/call") != 0 ||
	    (!body && !in->identifier))
		return 0;
	if (body)
		return check_header(
			c, &(struct mirror){"Mcp-Param-Identifier", in->identifier,
					    "params.arguments.identifier", body});
	call_fault(c, 400, RPC_HEADER_MISMATCH,
		   "the header Mcp-Param-Identifier (%.100s) repeats "
		   "params.arguments.identifier, which is missing or no text",
		   in->identifier);
	return -1;
}

int modern_open(struct mcp_call *c, const struct mcp_http *in)
{
	const json_t *meta = meta_of(c->doc);
	const char *stated = json_string_value(stated_version(c->doc));
	struct err e = ERR_INIT;

	c->version = mcp_version_newest(MCP_MODERN);
	if (rpc_classify(c->doc, &c->msg, &e) < 0) {
		call_fault(c, 400, RPC_INVALID_REQUEST, "%s", e.msg);
		return -1;
	}
	if (c->msg.kind == RPC_IS_RESPONSE) {
		call_fault(c, 400, RPC_INVALID_REQUEST,
			   "nothing was asked of the client");
		return -1;
	}
	if (!stated) /* a version of the header alone is still told when it is none */
		return in->protocol_version && check_version(c, in->protocol_version) < 0
			       ? -1
			       : missing(c, "protocolVersion");
	if ((!in->is_stdio &&
	     check_header(c,
			  &(struct mirror){"MCP-Protocol-Version", in->protocol_version,
					   VERSION_PATH, stated}) < 0) ||
	    check_version(c, stated) < 0)
		return -1;
	c->capabilities = json_object_get(meta, MODERN_META "clientCapabilities");
	if (!json_is_object(c->capabilities))
		return missing(c, "clientCapabilities");
	if (take_log_level(c, json_object_get(meta, MODERN_META "logLevel")) < 0)
		return -1;
	if (in->is_stdio)
		return 0;
	if (check_header(c, &(struct mirror){"Mcp-Method", in->method, "method",
					     c->msg.method}) < 0)
		return -1;
	return check_name(c, in) < 0 ? -1 : check_identifier(c, in);
}

bool modern_client_has(const struct mcp_call *c, const char *extension)
{
	const json_t *all = json_object_get(c->capabilities, "extensions");

	return json_is_object(json_object_get(all, extension));
}

enum mcp_next modern_demand(struct mcp_call *c, const char *extension)
{
	return call_fault_data(
		c, 400, RPC_MISSING_CAPABILITY,
		json_pack("{s:{s:{s:{}}}}", "requiredCapabilities", "extensions",
			  extension),
		"the request's clientCapabilities do not declare what this needs");
}

/* ---- the result */

json_t *modern_result(const struct method *m, const json_t *result)
{
	json_t *whole = json_copy((json_t *)result);
	json_t *meta = json_object_get(whole, "_meta");

	meta = meta ? json_copy(meta) : json_object();
	if (!json_object_get(meta, MODERN_META "serverInfo"))
		json_object_set_new(meta, MODERN_META "serverInfo", hello_server_info());
	json_object_set_new(whole, "_meta", meta);
	if (!json_object_get(whole, "resultType"))
		json_object_set_new(whole, "resultType", json_string("complete"));
	if (m && m->cache_scope) {
		json_object_set_new(whole, "ttlMs", json_integer(m->cache_ms));
		json_object_set_new(whole, "cacheScope", json_string(m->cache_scope));
	}
	return whole;
}

json_t *modern_versions(void)
{
	const struct mcp_version *v;
	json_t *list = json_array();

	for (int i = 0; (v = mcp_version_at(i)); i++)
		if (v->era == MCP_MODERN)
			json_array_append_new(list, json_string(v->name));
	return list;
}
