/* SPDX-License-Identifier: MIT */
#ifndef TESTS_MCP_STUB_H
#define TESTS_MCP_STUB_H

#include <stdio.h>
#include <string.h>

#include "conf/conf.h"
#include "mcp/mcp.h"

/* A store with the sessions and the run that a test or a fuzzer wants. */
#define SESSION_NEW "11111111111111111111111111111111" /* 2025-11-25 */
#define SESSION_MID "22222222222222222222222222222222" /* 2025-03-26 */
#define SESSION_BAD "33333333333333333333333333333333" /* the store fails */

struct fake_store {
	int session_reads;
	bool closed;     /* no session is alive any more */
	json_t *run;     /* borrowed; NULL: no such run */
	bool run_broken; /* reading a run fails */
	const char *output;
	const char *artifact;
	size_t artifact_n;
	int nrows;                          /* of sandboxes, and of runs */
	const char *client_can, *log_level; /* of the sessions */
	int64_t made_at;                    /* of any sandbox */
};

static inline int fake_session(void *arg, const char *tenant, const char *id,
			       struct mcp_session *row, struct err *e)
{
	struct fake_store *f = arg;

	f->session_reads++;
	if (strcmp(id, SESSION_BAD) == 0)
		return err_set(e, ERR_STORE, "disk I/O error in secret.db");
	if (f->closed || strcmp(tenant, "default") != 0)
		return 0;
	if (strcmp(id, SESSION_NEW) == 0)
		snprintf(row->version, sizeof(row->version), "2025-11-25");
	else if (strcmp(id, SESSION_MID) == 0)
		snprintf(row->version, sizeof(row->version), "2025-03-26");
	else
		return 0;
	snprintf(row->client_can, sizeof(row->client_can), "%s",
		 f->client_can ? f->client_can : "");
	snprintf(row->log_level, sizeof(row->log_level), "%s",
		 f->log_level ? f->log_level : "");
	return 1;
}

static inline int fake_key(void *arg, char ret[static MCP_KEY_SIZE], struct err *e)
{
	(void)arg;
	(void)e;
	snprintf(ret, MCP_KEY_SIZE, "a key of the tests");
	return 0;
}

static inline int fake_subscriptions(void *arg, const char *session_id, json_t **ret,
				     struct err *e)
{
	(void)arg;
	(void)session_id;
	(void)e;
	*ret = json_array();
	return 0;
}

static inline int fake_run(void *arg, const char *tenant, const char *run_id,
			   const char *base_url, json_t **ret, struct err *e)
{
	struct fake_store *f = arg;

	(void)tenant;
	(void)run_id;
	(void)base_url;
	if (f->run_broken)
		return err_set(e, ERR_STORE, "disk I/O error in secret.db");
	if (!f->run)
		return 0;
	*ret = json_incref(f->run);
	return 1;
}

static inline int fake_output(void *arg, const struct store_output_query *q,
			      struct buf *out, struct err *e)
{
	struct fake_store *f = arg;
	size_t n = f->output ? strlen(f->output) : 0;
	size_t from = (size_t)q->offset < n ? (size_t)q->offset : n;

	(void)e;
	buf_add(out, (f->output ? f->output : "") + from,
		n - from < q->max ? n - from : q->max);
	return 0;
}

static inline int fake_artifact(void *arg, const struct mcp_artifact *a, struct buf *out,
				int64_t *ret_size, struct err *e)
{
	struct fake_store *f = arg;

	(void)e;
	if (!f->artifact)
		return 0;
	*ret_size = (int64_t)f->artifact_n;
	if ((size_t)a->offset < f->artifact_n)
		buf_add(out, f->artifact + a->offset,
			f->artifact_n - (size_t)a->offset < a->max
				? f->artifact_n - (size_t)a->offset
				: a->max);
	return 1;
}

/* Sandboxes s000, s001, ... or runs, so many as there are said to be. */
static inline int fake_list(struct fake_store *f, const char *key, const char *after,
			    size_t limit, json_t **ret)
{
	json_t *list = json_array();
	char name[64];

	for (int i = 0; i < f->nrows && json_array_size(list) < limit; i++) {
		json_t *row;

		snprintf(name, sizeof(name), "%s%03d",
			 strcmp(key, "run_id") ? "s"
					       : "run_00000000000000000000000000000",
			 i);
		if (after && strcmp(name, after) <= 0)
			continue;
		row = json_pack("{s:s, s:s, s:s, s:[{s:s, s:i}]}", "identifier", name,
				"state", "ready", "expires_at", "2026", "artifacts",
				"path", "a b.png", "size", 3);
		json_object_set_new(row, key, json_string(name));
		json_array_append_new(list, row);
	}
	*ret = list;
	return 0;
}

static inline int fake_sandboxes(void *arg, const char *tenant, const char *after,
				 size_t limit, json_t **ret, struct err *e)
{
	(void)tenant;
	(void)e;
	return fake_list(arg, "identifier", after, limit, ret);
}

static inline int fake_made_at(void *arg, const char *tenant, const char *identifier,
			       int64_t *ret, struct err *e)
{
	const struct fake_store *f = arg;

	(void)tenant;
	(void)identifier;
	(void)e;
	*ret = f->made_at;
	return 0;
}

static inline int fake_runs(void *arg, const char *tenant, const char *after,
			    size_t limit, json_t **ret, struct err *e)
{
	(void)tenant;
	(void)e;
	return fake_list(arg, "run_id", after, limit, ret);
}

static inline int fake_latest(void *arg, const char *tenant, const char *identifier,
			      char ret[static ID_RUN_LEN + 1], struct err *e)
{
	(void)arg;
	(void)tenant;
	(void)e;
	snprintf(ret, ID_RUN_LEN + 1, "run_%032d", 7);
	return strcmp(identifier, "chat 1") == 0;
}

static inline int fake_words(void *arg, const char *tenant, enum store_word what,
			     const char *prefix, json_t **ret, struct err *e)
{
	(void)arg;
	(void)tenant;
	(void)e;
	*ret = json_pack("{s:[s, s], s:b}", "values",
			 what == STORE_WORD_RUN_ID ? "run_x" : "chat", prefix, "hasMore",
			 1);
	return 0;
}

static inline struct mcp_reads fake_reads(struct fake_store *f)
{
	return (struct mcp_reads){.arg = f,
				  .session = fake_session,
				  .subscriptions = fake_subscriptions,
				  .key = fake_key,
				  .run = fake_run,
				  .output = fake_output,
				  .artifact = fake_artifact,
				  .sandboxes = fake_sandboxes,
				  .made_at = fake_made_at,
				  .runs = fake_runs,
				  .latest = fake_latest,
				  .words = fake_words};
}

/* What conf_load() gives without any variable, as far as this layer looks. */
static inline struct conf fake_conf(void)
{
	static char empty[] = "", path[] = "/mcp", bridge[] = "bridge",
		    deny[] = "rm -rf /$";

	return (struct conf){
		.public_url = empty,
		.mcp_path = path,
		.network_mode = bridge,
		.default_ttl_s = 3600,
		.max_ttl_s = 604800,
		.default_cpu_cores = 1,
		.default_memory_mb = 1024,
		.default_pids = 256,
		.default_command_timeout_ms = 120000,
		.max_commands = 100,
		.default_await_timeout_ms = 30000,
		.await_answer_max_ms = 50000,
		.await_task_after_ms = 5000,
		.max_run_age_s = 604800,
		.result_images_max = 3,
		.result_image_max_bytes = 1000,
		.result_links_max = 2,
		.denylist_enabled = true,
		.denylist_patterns = deny,
		.tool_desc_overrides_enabled = true,
	};
}

static inline struct mcp_http fake_http(const char *session, const char *body)
{
	return (struct mcp_http){
		.tenant = "default",
		.content_type = "application/json",
		.session_id = session,
		.base_url = "http://h:8080",
		.body = body,
		.body_len = strlen(body),
	};
}

#endif
