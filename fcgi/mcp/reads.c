/* SPDX-License-Identifier: MIT */
#include "mcp/reads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "mcp/diskfile.h"
#include "mcp/jsonrpc.h"
#include "mcp/runobj.h"

enum { FILES_MAX = 100, WORDS_MAX = 100 };

/* What is not there is an answer, not a failure: e is the caller's again. */
static int found(struct err *e)
{
	if (e->kind != ERR_NOT_FOUND)
		return -1;
	*e = (struct err)ERR_INIT;
	return 0;
}

static void copy(char *dst, size_t size, const char *s)
{
	snprintf(dst, size, "%s", s ? s : "");
}

static int read_session(void *arg, const char *tenant, const char *session_id,
			struct mcp_session *ret, struct err *e)
{
	struct mcp_store_reads *x = arg;
	AUTO_STORE_SESSION row = {0};

	if (store_read_session(x->reader, tenant, session_id, &row, e) < 0)
		return found(e);
	copy(ret->version, sizeof(ret->version), row.protocol_version);
	copy(ret->client_can, sizeof(ret->client_can), row.client_can);
	copy(ret->log_level, sizeof(ret->log_level), row.log_level);
	return 1;
}

static int read_subscriptions(void *arg, const char *session_id, json_t **ret,
			      struct err *e)
{
	struct mcp_store_reads *x = arg;
	AUTO_STORE_WORDS w = {0};

	if (store_read_subscriptions(x->reader, session_id, EDGEMSG_SUBSCRIPTIONS_MAX, &w,
				     e) < 0)
		return -1;
	*ret = json_array();
	for (size_t i = 0; i < w.n; i++)
		json_array_append_new(*ret, rpc_text(w.v[i], strlen(w.v[i])));
	return 0;
}

static int read_key(void *arg, char ret[static MCP_KEY_SIZE], struct err *e)
{
	struct mcp_store_reads *x = arg;

	_Static_assert((int)MCP_KEY_SIZE == (int)STORE_META_SIZE, "they are copied");
	return store_read_meta(x->reader, "request_key", ret, e);
}

static int read_run(void *arg, const char *tenant, const char *run_id,
		    const char *base_url, json_t **ret, struct err *e)
{
	struct mcp_store_reads *x = arg;
	struct runobj_opts o = runobj_opts_model(base_url, x->mcp_path);

	if (runobj_read(x->reader, tenant, run_id, &o, ret, e) < 0)
		return found(e);
	return 1;
}

static int read_output(void *arg, const struct store_output_query *q, struct buf *out,
		       struct err *e)
{
	struct mcp_store_reads *x = arg;
	struct store_output_query part = *q;
	size_t n = 1;

	while (part.max > 0 && n > 0) {
		if (store_read_output(x->reader, &part, out, &n, e) < 0)
			return -1;
		part.offset += (int64_t)n;
		part.max -= n < part.max ? n : part.max;
	}
	return 0;
}

static int read_artifact(void *arg, const struct mcp_artifact *a, struct buf *out,
			 int64_t *ret_size, struct err *e)
{
	struct mcp_store_reads *x = arg;
	const struct diskfile f = {.root = x->artifacts_dir,
				   .tenant = a->tenant,
				   .identifier = a->identifier,
				   .run_id = a->run_id,
				   .path = a->path};

	if (diskfile_read(&f, a->offset, a->max, out, ret_size, e) < 0)
		return found(e);
	return 1;
}

static json_t *text_of(const char *s)
{
	return rpc_text(s ? s : "", s ? strlen(s) : 0);
}

static json_t *time_of(int64_t ms)
{
	char text[CLOCK_RFC3339_SIZE];

	return ms > 0 ? json_string(clock_format_rfc3339(ms, text)) : json_null();
}

static json_t *sandbox_of(const struct store_sandbox *s)
{
	json_t *o = json_must(json_pack(
		"{s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "identifier",
		text_of(s->identifier), "state", store_sandbox_state_name(s->state),
		"name", text_of(s->name), "image", text_of(s->image), "created_at",
		time_of(s->created_at), "last_used_at", time_of(s->last_used_at),
		"expires_at", time_of(s->expires_at)));

	if (s->error)
		json_put(o, "error", text_of(s->error));
	return o;
}

static int read_sandboxes(void *arg, const char *tenant, const char *after, size_t limit,
			  json_t **ret, struct err *e)
{
	struct mcp_store_reads *x = arg;
	AUTO_STORE_SANDBOXES l = {0};

	if (store_read_sandboxes_after(x->reader, tenant, after, limit, &l, e) < 0)
		return -1;
	*ret = json_array();
	for (size_t i = 0; i < l.n; i++)
		json_array_append_new(*ret, sandbox_of(&l.v[i]));
	return 0;
}

static int read_made_at(void *arg, const char *tenant, const char *identifier,
			int64_t *ret, struct err *e)
{
	struct mcp_store_reads *x = arg;

	return store_read_sandbox_created(x->reader, tenant, identifier, ret, e);
}

static int run_of(struct mcp_store_reads *x, const struct store_run *row, json_t **ret,
		  struct err *e)
{
	AUTO_STORE_RUN run = {0};
	json_t *files;

	if (store_read_run(x->reader, row->tenant, row->run_id, &run, e) < 0)
		return found(e);
	files = json_array();
	for (size_t i = 0; i < run.nartifacts && json_array_size(files) < FILES_MAX; i++)
		if (!run.artifacts[i].skipped_reason)
			json_array_append_new(
				files, json_pack("{s:o, s:I}", "path",
						 text_of(run.artifacts[i].path), "size",
						 (json_int_t)run.artifacts[i].size));
	*ret = json_must(
		json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "run_id",
			  text_of(run.run_id), "identifier", text_of(run.identifier),
			  "state", store_run_state_name(run.state), "created_at",
			  time_of(run.created_at), "started_at", time_of(run.started_at),
			  "ended_at", time_of(run.ended_at), "artifacts", files));
	if (run.error)
		json_put(*ret, "error", text_of(run.error));
	return 1;
}

static int read_runs(void *arg, const char *tenant, const char *after, size_t limit,
		     json_t **ret, struct err *e)
{
	struct mcp_store_reads *x = arg;
	AUTO_STORE_RUNS l = {0};
	AUTO_JSON *list = json_array();

	if (store_read_runs_after(x->reader, tenant, after, limit, &l, e) < 0)
		return -1;
	for (size_t i = 0; i < l.n; i++) {
		json_t *run = NULL;
		int rc = run_of(x, &l.v[i], &run, e);

		if (rc < 0)
			return -1;
		if (rc > 0)
			json_array_append_new(list, run);
	}
	*ret = MOVE(list);
	return 0;
}

static int read_latest(void *arg, const char *tenant, const char *identifier,
		       char ret_run_id[static ID_RUN_LEN + 1], struct err *e)
{
	struct mcp_store_reads *x = arg;
	char id[STORE_RUN_ID_SIZE];

	if (store_read_latest_artifacts(x->reader, tenant, identifier, id, e) < 0)
		return found(e);
	snprintf(ret_run_id, ID_RUN_LEN + 1, "%.*s", ID_RUN_LEN, id);
	return 1;
}

static int read_words(void *arg, const char *tenant, enum store_word what,
		      const char *prefix, json_t **ret, struct err *e)
{
	struct mcp_store_reads *x = arg;
	const struct store_words_query q = {
		.tenant = tenant, .prefix = prefix, .what = what, .limit = WORDS_MAX};
	AUTO_STORE_WORDS w = {0};
	json_t *values;

	if (store_read_words(x->reader, &q, &w, e) < 0)
		return -1;
	values = json_array();
	for (size_t i = 0; i < w.n; i++)
		json_array_append_new(values, text_of(w.v[i]));
	*ret = json_must(
		json_pack("{s:o, s:b}", "values", values, "hasMore", (int)w.more));
	return 0;
}

void mcp_store_reads_init(struct mcp_store_reads *x, struct store_reader *reader,
			  const struct conf *c)
{
	*x = (struct mcp_store_reads){
		.reads = {.arg = x,
			  .session = read_session,
			  .subscriptions = read_subscriptions,
			  .key = read_key,
			  .run = read_run,
			  .output = read_output,
			  .artifact = read_artifact,
			  .sandboxes = read_sandboxes,
			  .made_at = read_made_at,
			  .runs = read_runs,
			  .latest = read_latest,
			  .words = read_words},
		.reader = reader,
		.mcp_path = c->mcp_path,
		.artifacts_dir = c->artifacts_dir && *c->artifacts_dir
					 ? xstrdup(c->artifacts_dir)
					 : xasprintf("%s/artifacts", c->data_dir),
	};
}

void mcp_store_reads_release(struct mcp_store_reads *x)
{
	free(x->artifacts_dir);
	x->artifacts_dir = NULL;
}
