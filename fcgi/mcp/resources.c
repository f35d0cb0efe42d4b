/* SPDX-License-Identifier: MIT */
#include "mcp/resources.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/json.h"
#include "mcp/content.h"
#include "mcp/runpage.h"
#include "mcp/uris.h"

enum {
	RUNS_PAGE = 20,
	OUTPUT_MAX = 1024 * 1024, /* the beginning of longer output */
	ARTIFACT_MAX = 8 * 1024 * 1024,
	JSON_MAX = 1024 * 1024,
};

static const char *text_at(const json_t *o, const char *key)
{
	const char *s = json_get_string(o, key);

	return s ? s : "";
}

/* ---- resources/list */

static void add_run(const json_t *run, json_t *list)
{
	const char *id = text_at(run, "run_id"), *identifier = text_at(run, "identifier");
	char title[512];

	snprintf(title, sizeof(title), "%.300s: %s", identifier, text_at(run, "state"));
	json_array_append_new(
		list, json_must(json_pack("{s:o, s:s, s:o, s:s, s:s}", "uri", uri_run(id),
					  "name", id, "title",
					  rpc_text(title, strlen(title)), "description",
					  "A run: state, commands, output, artifacts",
					  "mimeType", "application/json")));
}

static void add_artifacts(const json_t *run, json_t *list)
{
	const char *id = text_at(run, "run_id");
	const json_t *a;
	size_t i;

	json_array_foreach(json_object_get(run, "artifacts"), i, a) {
		const char *path = text_at(a, "path");

		json_array_append_new(
			list, json_must(json_pack("{s:o, s:o, s:s, s:O}", "uri",
						  uri_artifact(id, path), "name",
						  rpc_text(path, strlen(path)),
						  "mimeType", mime_of(path), "size",
						  json_object_get(a, "size"))));
	}
}

enum mcp_next resources_list(struct mcp_call *c, const struct mcp_reads *r)
{
	json_t *list = json_array();
	AUTO_JSON *result = json_pack("{s:o}", "resources", list);
	AUTO_JSON *runs = NULL;
	const json_t *run;
	size_t i;

	if (runpage_read(c, r, RUNS_PAGE, result, &runs) < 0)
		return MCP_REPLY;
	json_array_foreach(runs, i, run) {
		add_run(run, list);
		add_artifacts(run, list);
	}
	return call_result(c, result);
}

/* ---- resources/templates/list */

enum mcp_next resources_templates(struct mcp_call *c, const struct mcp_reads *r)
{
	static const struct {
		const char *uri, *name, *title;
	} all[] = {
		{"sandbox://runs/{run_id}", "run", "A run"},
		{"sandbox://runs/{run_id}/commands/{command}/{stream}", "output",
		 "What a command printed"},
		{"sandbox://runs/{run_id}/artifacts/{+path}", "artifact",
		 "A file that a run left"},
		{"sandbox://latest/{identifier}/artifacts/{+path}", "latest-artifact",
		 "A file of the newest run that left any"},
	};
	json_t *list = json_array();
	AUTO_JSON *result = json_pack("{s:o}", "resourceTemplates", list);

	(void)r;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "uriTemplate",
						      all[i].uri, "name", all[i].name,
						      "title", all[i].title));
	return call_result(c, result);
}

/* ---- resources/read */

enum { RPC_RESOURCE_NOT_FOUND = -32002 }; /* legacy era only */

enum mcp_next resources_no_such(struct mcp_call *c, const char *uri)
{
	bool modern = c->version->era == MCP_MODERN;

	return call_fault_data(
		c, 200, modern ? RPC_BAD_PARAMS : (enum rpc_code)RPC_RESOURCE_NOT_FOUND,
		json_pack("{s:o}", "uri", rpc_text(uri, strlen(uri))),
		"no such resource");
}

static enum mcp_next answer(struct mcp_call *c, const char *uri, const char *mime,
			    const struct buf *b)
{
	AUTO_JSON *result = json_must(json_pack(
		"{s:[o]}", "contents",
		content_of_bytes(rpc_text(uri, strlen(uri)), mime, b->p, b->len)));

	return call_result(c, result);
}

static enum mcp_next read_output(struct mcp_call *c, const struct mcp_reads *r,
				 const struct uri *u, const char *uri)
{
	const struct store_output_query q = {.run_id = u->run_id,
					     .command_index = u->command,
					     .stream = u->stream,
					     .max = OUTPUT_MAX};
	AUTO_BUF b = BUF_INIT(OUTPUT_MAX);
	struct err e = ERR_INIT;

	if (r->output(r->arg, &q, &b, &e) < 0)
		return call_failure(c, &e);
	return answer(c, uri, "application/octet-stream", &b);
}

static enum mcp_next read_artifact(struct mcp_call *c, const struct mcp_reads *r,
				   const char *identifier, const struct uri *u,
				   const char *uri)
{
	const struct mcp_artifact a = {.tenant = c->tenant,
				       .identifier = identifier,
				       .run_id = u->run_id,
				       .path = u->path,
				       .max = ARTIFACT_MAX};
	AUTO_BUF b = BUF_INIT(ARTIFACT_MAX);
	struct err e = ERR_INIT;
	int64_t size = 0;
	int rc = r->artifact(r->arg, &a, &b, &size, &e);

	if (rc < 0)
		return call_failure(c, &e);
	if (rc == 0)
		return resources_no_such(c, uri);
	if (size > ARTIFACT_MAX)
		return call_error(c, RPC_BAD_PARAMS,
				  "the file has %lld bytes, too many to be read here; "
				  "download it from its url in the run",
				  (long long)size);
	return answer(c, uri, mime_of(u->path), &b);
}

/* The run is looked at first: what it does not have, nobody may ask for. */
static enum mcp_next read_of_run(struct mcp_call *c, const struct mcp_reads *r,
				 const struct uri *u, const char *uri)
{
	AUTO_BUF b = BUF_INIT(JSON_MAX);
	AUTO_JSON *run = NULL;
	struct err e = ERR_INIT;
	int rc = r->run(r->arg, c->tenant, u->run_id, c->base_url, &run, &e);

	if (rc < 0)
		return call_failure(c, &e);
	if (rc == 0)
		return resources_no_such(c, uri);
	if (u->kind == URI_ARTIFACT)
		return read_artifact(c, r, text_at(run, "identifier"), u, uri);
	if (u->kind == URI_OUTPUT &&
	    (size_t)u->command >= json_array_size(json_object_get(run, "commands")))
		return resources_no_such(c, uri);
	if (u->kind == URI_OUTPUT)
		return read_output(c, r, u, uri);
	rpc_add_json(&b, run);
	return answer(c, uri, "application/json", &b);
}

enum mcp_next resources_read(struct mcp_call *c, const struct mcp_reads *r)
{
	const char *uri = json_get_string(c->msg.params, "uri");
	struct err e = ERR_INIT;
	struct uri u;
	int rc;

	if (!uri)
		return call_error(c, RPC_BAD_PARAMS, "params.uri must be a string");
	if (!uri_parse(uri, &u))
		return resources_no_such(c, uri);
	if (u.kind != URI_LATEST)
		return read_of_run(c, r, &u, uri);
	rc = r->latest(r->arg, c->tenant, u.identifier, u.run_id, &e);
	if (rc < 0)
		return call_failure(c, &e);
	return rc == 0 ? resources_no_such(c, uri)
		       : read_artifact(c, r, u.identifier, &u, uri);
}

/* ---- completion/complete */

static json_t *streams_that_begin(const char *prefix)
{
	static const char *const names[] = {"stdout", "stderr"};
	json_t *values = json_array();

	for (size_t i = 0; i < 2; i++)
		if (strncmp(names[i], prefix, strlen(prefix)) == 0)
			json_array_append_new(values, json_string(names[i]));
	return json_pack("{s:o, s:b}", "values", values, "hasMore", 0);
}

static int values_of(struct mcp_call *c, const struct mcp_reads *r, const char *name,
		     const char *prefix, json_t **ret, struct err *e)
{
	if (strcmp(name, "run_id") == 0)
		return r->words(r->arg, c->tenant, STORE_WORD_RUN_ID, prefix, ret, e);
	if (strcmp(name, "identifier") == 0)
		return r->words(r->arg, c->tenant, STORE_WORD_IDENTIFIER, prefix, ret, e);
	*ret = streams_that_begin(strcmp(name, "stream") == 0 ? prefix : "none");
	return 0;
}

enum mcp_next completion_complete(struct mcp_call *c, const struct mcp_reads *r)
{
	const json_t *ref = json_object_get(c->msg.params, "ref");
	const json_t *argument = json_object_get(c->msg.params, "argument");
	const char *type = text_at(ref, "type");
	const char *name = json_get_string(argument, "name");
	const char *value = json_get_string(argument, "value");
	AUTO_JSON *result = NULL;
	json_t *values = NULL;
	struct err e = ERR_INIT;

	if (strcmp(type, "ref/resource") != 0 && strcmp(type, "ref/prompt") != 0)
		return call_error(c, RPC_BAD_PARAMS,
				  "params.ref.type must be ref/resource or ref/prompt");
	if (!name || !value)
		return call_error(c, RPC_BAD_PARAMS,
				  "params.argument must have name and value");
	if (strcmp(type, "ref/prompt") == 0)
		name = ""; /* there are no prompts, so there is nothing to be typed */
	if (values_of(c, r, name, value, &values, &e) < 0)
		return call_failure(c, &e);
	result = json_must(json_pack("{s:o}", "completion", values));
	return call_result(c, result);
}
