/* SPDX-License-Identifier: MIT */
#include "backend/docker/engine.h"

#include <stdio.h>
#include <string.h>

#include "backend/docker/endpoint.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

/* API versions: 1.40 is Docker 19.03; what we ask for has not changed since. */
enum { API_MAJOR = 1, API_LEAST = 40, API_MOST = 44, PROBE_MS = 10000 };

void engine_close(struct engine *en)
{
	http_free(en->http);
	free(en->where);
	free(en->host);
	free(en->socket);
	*en = (struct engine)ENGINE_INIT;
}

/* "1.41": its second number, or -1. */
static int minor_of(const char *version)
{
	struct err ignored = ERR_INIT;
	int64_t n;

	if (!version || !str_starts(version, "1.") ||
	    num_parse(version + 2, 0, 9999, &n, &ignored) < 0)
		return -1;
	return (int)n;
}

int engine_agree(const char *most, const char *least, char ret[static 16], struct err *e)
{
	int hi = minor_of(most), lo = least ? minor_of(least) : 0, use;

	if (hi < 0 || lo < 0)
		return err_set(e, ERR_BACKEND, "it names no API version");
	if (hi < API_LEAST)
		return err_set(
			e, ERR_BACKEND,
			"it is too old: it speaks API %.16s, and 1.%d (Docker 19.03) "
			"or newer is needed",
			most, API_LEAST);
	use = hi < API_MOST ? hi : API_MOST;
	if (use < lo) /* newer than we know: its oldest is the nearest */
		use = lo;
	snprintf(ret, 16, "%d.%d", API_MAJOR, use);
	return 0;
}

int engine_refusal(int status, const char *body, size_t n, struct err *e)
{
	enum err_kind kind = status == 404   ? ERR_NOT_FOUND
			     : status == 409 ? ERR_CONFLICT
					     : ERR_BACKEND;
	AUTO_JSON *root = NULL;
	struct err ignored = ERR_INIT;
	const char *words = NULL;
	char text[256];

	if (json_parse(body, n, &root, &ignored) == 0)
		words = json_get_string(root, "message");
	if (words && *words)
		return err_set(e, kind, "%.400s", words);
	snprintf(text, sizeof text, "%.*s", n < sizeof text ? (int)n : (int)sizeof text,
		 body);
	return err_set(e, kind, "the engine answered %d%s", status,
		       endpoint_tls_advice(text));
}

/* What a failed connection means, in words. */
static int explain(const struct engine *en, const struct err *why, struct err *e)
{
	if (why->kind == ERR_SYSTEM && why->sys)
		return endpoint_refused(en->where, en->socket, why->sys, e);
	if (why->kind == ERR_TIMEOUT)
		return err_set(e, ERR_TIMEOUT,
			       "the engine at %s does not answer in time; is it hung?",
			       en->where);
	return err_set(e, why->kind, "the engine at %s: %s%s", en->where, why->msg,
		       endpoint_tls_advice(why->msg));
}

static int read_json(const struct http_answer *a, json_t **ret, struct err *e)
{
	*ret = NULL;
	if (a->body.len == 0)
		return 0;
	if (json_parse(a->body.p, a->body.len, ret, e) < 0)
		return err_wrap(e, "the engine's answer");
	return 0;
}

int engine_call(const struct engine *en, const struct engine_call *c, json_t **ret,
		struct err *e)
{
	AUTO_HTTP_ANSWER a = HTTP_ANSWER_INIT;
	AUTO_FREE char *path = xasprintf("%s%s", en->api, c->path);
	AUTO_FREE char *text = c->json ? json_dumps(c->json, JSON_COMPACT) : NULL;
	AUTO_FREE char *type =
		xasprintf("Content-Type: %s",
			  c->content_type ? c->content_type : "application/json");
	const char *headers[] = {type, c->header, NULL};
	struct http_call call = {.method = c->method,
				 .path = path,
				 .headers = headers,
				 .body = text ? text : c->bytes,
				 .len = text ? strlen(text) : c->len,
				 .timeout_ms = c->timeout_ms,
				 .answer_max = 16 << 20,
				 .on_data = c->on_data,
				 .arg = c->arg};
	struct err why = ERR_INIT;

	if (http_call(en->http, &call, &a, &why) < 0)
		return explain(en, &why, e);
	if (a.status >= 400 || a.status < 200)
		return engine_refusal(a.status, a.body.p, a.body.len, e);
	return ret ? read_json(&a, ret, e) : 0;
}

int engine_hijack(const struct engine *en, const char *path, const json_t *json,
		  struct hijack **ret, struct err *e)
{
	AUTO_HTTP_ANSWER refusal = HTTP_ANSWER_INIT;
	AUTO_FREE char *full = xasprintf("%s%s", en->api, path);
	AUTO_FREE char *text = json_dumps(json, JSON_COMPACT);
	struct http_upgrade u = {.path = full,
				 .host = en->host,
				 .protocol = "tcp",
				 .content_type = "application/json",
				 .body = text,
				 .len = strlen(text)};
	struct err why = ERR_INIT;

	if (http_upgrade(en->http, &u, ret, &refusal, &why) == 0)
		return 0;
	if (refusal.status >= 400)
		return engine_refusal(refusal.status, refusal.body.p, refusal.body.len,
				      e);
	return explain(en, &why, e);
}

static int no_engine(const struct engine *en, struct err *e)
{
	return err_set(e, ERR_BACKEND,
		       "what answers at %s is no Docker-compatible engine", en->where);
}

static bool has_podman(const json_t *version)
{
	const json_t *list = json_object_get(version, "Components"), *item;
	size_t i;

	json_array_foreach(list, i, item) {
		const char *name = json_get_string(item, "Name");

		if (name && str_starts(name, "Podman"))
			return true;
	}
	return false;
}

int engine_understand(struct engine *en, const json_t *version, struct err *e)
{
	const char *arch = json_get_string(version, "Arch");
	const char *os = json_get_string(version, "Os");
	char api[16];

	if (!json_get_string(version, "ApiVersion"))
		return no_engine(en, e);
	if (engine_agree(json_get_string(version, "ApiVersion"),
			 json_get_string(version, "MinAPIVersion"), api, e) < 0)
		return err_wrap(e, "the engine at %s", en->where);
	if (os && strcmp(os, "linux") != 0)
		return err_set(e, ERR_BACKEND,
			       "the engine at %s runs %.32s containers; "
			       "Linux ones are needed",
			       en->where, os);
	snprintf(en->arch, sizeof en->arch, "%s", arch ? arch : "");
	snprintf(en->api, sizeof en->api, "/v%.12s", api);
	en->is_podman = has_podman(version);
	return 0;
}

static int greet(struct engine *en, struct err *e)
{
	struct engine_call call = {
		.method = "GET", .path = "/version", .timeout_ms = PROBE_MS};
	AUTO_JSON *v = NULL;
	struct err why = ERR_INIT;

	if (engine_call(en, &call, &v, &why) == 0)
		return engine_understand(en, v, e);
	if (why.kind == ERR_INVALID || why.kind == ERR_NOT_FOUND)
		return no_engine(en, e);
	*e = why;
	return -1;
}

int engine_open(const struct conf *c, struct engine *ret, struct err *e)
{
	AUTO_ENDPOINT ep = {0};
	struct engine en = ENGINE_INIT;

	if (endpoint_find(c, &ep, e) < 0)
		return -1;
	en.http = http_new(&(struct http_target){.base = ep.base,
						 .unix_socket = ep.unix_socket,
						 .ca_file = ep.ca,
						 .cert_file = ep.cert,
						 .key_file = ep.key,
						 .no_verify = ep.no_verify});
	en.where = MOVE(ep.where);
	en.host = MOVE(ep.host);
	en.socket = MOVE(ep.unix_socket);
	if (greet(&en, e) < 0) {
		engine_close(&en);
		return -1;
	}
	*ret = en;
	return 0;
}
