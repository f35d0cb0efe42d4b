/* SPDX-License-Identifier: MIT */
#include "mcp/subscribe.h"

#include <string.h>

#include "base/auto.h"
#include "base/json.h"
#include "mcp/failure.h"
#include "mcp/modern.h"
#include "mcp/resources.h"
#include "mcp/tasks.h"
#include "mcp/uris.h"
#include "wire/idenc.h"

/* ---- legacy */

static enum mcp_next others_told(struct mcp_call *c, const struct mcp_reads *r,
				 const json_t *ok, const struct err *why)
{
	(void)r;
	(void)ok;
	(void)why; /* it is stored; the next stream of the session knows it */
	return call_result_text(c, "{}", 2);
}

static enum mcp_next stored(struct mcp_call *c, const struct mcp_reads *r,
			    const json_t *ok, const struct err *why)
{
	(void)r;
	if (!ok && why->kind == ERR_LIMIT)
		return call_error(c, RPC_BAD_PARAMS, "%s; unsubscribe from some",
				  why->msg);
	if (!ok)
		return call_failure(c, why);
	return call_session_changed(c, others_told);
}

static enum mcp_next send(struct mcp_call *c, const char *uri, bool on)
{
	return call_send(c, MSG_SUBSCRIBE,
			 json_pack("{s:s, s:s, s:s, s:b}", "tenant", c->tenant,
				   "session_id", c->session_id, "uri", uri, "on", on),
			 stored);
}

/* Can there be such a resource? What a run has not left yet may still come. */
static int exists(struct mcp_call *c, const struct mcp_reads *r, const char *uri,
		  struct err *e)
{
	AUTO_JSON *run = NULL;
	struct uri u;

	if (!uri_parse(uri, &u))
		return 0;
	if (u.kind == URI_LATEST)
		return 1;
	return r->run(r->arg, c->tenant, u.run_id, c->base_url, &run, e);
}

enum mcp_next resources_subscribe(struct mcp_call *c, const struct mcp_reads *r)
{
	const char *uri = json_get_string(c->msg.params, "uri");
	struct err e = ERR_INIT;
	int rc;

	if (!uri)
		return call_error(c, RPC_BAD_PARAMS, "params.uri must be a string");
	rc = exists(c, r, uri, &e);
	if (rc < 0)
		return call_failure(c, &e);
	return rc > 0 ? send(c, uri, true) : resources_no_such(c, uri);
}

enum mcp_next resources_unsubscribe(struct mcp_call *c, const struct mcp_reads *r)
{
	const char *uri = json_get_string(c->msg.params, "uri");
	struct uri u;

	(void)r;
	if (!uri)
		return call_error(c, RPC_BAD_PARAMS, "params.uri must be a string");
	return uri_parse(uri, &u) ? send(c, uri, false) : resources_no_such(c, uri);
}

/* ---- modern */

/* Those of `from` (NULL: none) that are there, at most so many as a session may have. */
static int take(struct mcp_call *c, const struct mcp_reads *r, const json_t *from,
		bool tasks, json_t *to)
{
	const json_t *v;
	size_t i;

	json_array_foreach(from, i, v) {
		const char *text = json_string_value(v);
		AUTO_JSON *run = NULL;
		struct err e = ERR_INIT;
		int rc = 0;

		if (json_array_size(to) == EDGEMSG_SUBSCRIPTIONS_MAX)
			break;
		if (text && !tasks)
			rc = exists(c, r, text, &e);
		else if (text && idenc_is_run_id(text))
			rc = r->run(r->arg, c->tenant, text, c->base_url, &run, &e);
		if (rc < 0)
			return call_failure(c, &e), -1;
		if (rc > 0)
			json_array_append(to, (json_t *)v);
	}
	return 0;
}

static const json_t *filter_of(const struct mcp_call *c)
{
	return json_object_get(c->msg.params, "notifications");
}

/* What is not there, and the lists, which do not change, are left out of the answer. */
enum mcp_next subscriptions_listen(struct mcp_call *c, const struct mcp_reads *r)
{
	const json_t *filter = filter_of(c);
	const json_t *tasks = json_object_get(filter, "taskIds");
	json_t *uris = json_array(), *ids = json_array();
	AUTO_JSON *listens =
		json_must(json_pack("{s:o, s:o}", "uris", uris, "tasks", ids));

	if (!json_is_object(filter))
		return call_error(c, RPC_BAD_PARAMS,
				  "params.notifications must be an object");
	if (!c->accepts_stream)
		return call_error(c, RPC_BAD_PARAMS,
				  "the answer is a stream: Accept: text/event-stream");
	if (tasks && !modern_client_has(c, MODERN_EXT_TASKS))
		return modern_demand(c, MODERN_EXT_TASKS);
	if (take(c, r, json_object_get(filter, "resourceSubscriptions"), false, uris) <
		    0 ||
	    take(c, r, tasks, true, ids) < 0)
		return MCP_REPLY;
	c->listens = MOVE(listens);
	c->waits_streaming = true;
	return MCP_STREAM;
}

const json_t *mcp_call_listens(const struct mcp_call *c)
{
	return c->listens;
}

static json_t *tag_of(const struct mcp_call *c)
{
	return json_must(
		json_pack("{s:O}", MODERN_META "subscriptionId", (json_t *)c->msg.id));
}

static void add_notification(const struct mcp_call *c, const char *method, json_t *params,
			     struct buf *b)
{
	if (c && c->listens)
		json_put(params, "_meta", tag_of(c));
	rpc_add_notification(b, method, params);
	json_decref(params);
}

void mcp_call_acknowledgment(const struct mcp_call *c, struct buf *b)
{
	json_t *agreed = json_object(),
	       *params = json_pack("{s:o}", "notifications", agreed);
	json_t *uris = json_object_get(c->listens, "uris");
	json_t *tasks = json_object_get(c->listens, "tasks");

	if (json_object_get(filter_of(c), "resourceSubscriptions"))
		json_object_set(agreed, "resourceSubscriptions", uris);
	if (json_object_get(filter_of(c), "taskIds"))
		json_object_set(agreed, "taskIds", tasks);
	add_notification(c, "notifications/subscriptions/acknowledged", params, b);
}

/* ---- both */

void mcp_call_updated(const struct mcp_call *c, const char *uri, struct buf *b)
{
	add_notification(c, "notifications/resources/updated",
			 json_pack("{s:o}", "uri", rpc_text(uri, strlen(uri))), b);
}

void mcp_call_task_changed(struct mcp_call *c, const struct mcp_reads *r,
			   const char *run_id, struct buf *b)
{
	json_t *task = tasks_detailed(c, r, run_id);

	if (task)
		add_notification(c, "notifications/tasks", task, b);
}

void mcp_call_closing(const struct mcp_call *c, struct buf *b)
{
	AUTO_JSON *result = json_must(
		json_pack("{s:s, s:o}", "resultType", "complete", "_meta", tag_of(c)));

	rpc_add_result(b, c->msg.id, result);
}
