/* SPDX-License-Identifier: MIT */
#include "mcp/runobj.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "mcp/cut.h"
#include "mcp/jsonrpc.h"
#include "mcp/run_words.h"
#include "mcp/urls.h"
#include "wire/runspec.h"

enum {
	FULL_STREAM_MAX = 1024 * 1024,
	FULL_TOTAL_MAX = 4 * 1024 * 1024,
	MODEL_STREAM_MAX = 64 * 1024, /* hosts refuse answers over some 25 000 tokens */
	MODEL_TOTAL_MAX = 64 * 1024,
	MODEL_ECHO_MAX = 1024,
	MODEL_ARTIFACTS_MAX = 50,
	MARK_MAX = 128,
};

static const char *const stream_names[STORE_STREAM_COUNT] = {"stdout", "stderr"};

/* The seed knows four words; `state` beside it has the store's own. */
static const char *const seed_status[STORE_COMMAND_STATUS_COUNT] = {
	[STORE_COMMAND_QUEUED] = "queued",       [STORE_COMMAND_RUNNING] = "queued",
	[STORE_COMMAND_COMPLETED] = "completed", [STORE_COMMAND_FAILED] = "failed",
	[STORE_COMMAND_TIMED_OUT] = "timed_out", [STORE_COMMAND_CANCELED] = "failed",
	[STORE_COMMAND_LOST] = "failed",
};

/* One object being built. */
struct builder {
	const struct store_run *run;
	const struct runobj_opts *o;
	struct url url;
	runobj_output_fn *output;
	void *arg;
	size_t bytes_left;   /* of o->total_max */
	size_t streams;      /* that have output */
	size_t streams_left; /* that have output and are still to be shown */
};

struct runobj_opts runobj_opts_full(const char *base_url, const char *mcp_path)
{
	return (struct runobj_opts){
		.base_url = base_url,
		.mcp_path = mcp_path,
		.stream_max = FULL_STREAM_MAX,
		.total_max = FULL_TOTAL_MAX,
	};
}

struct runobj_opts runobj_opts_model(const char *base_url, const char *mcp_path)
{
	return (struct runobj_opts){
		.base_url = base_url,
		.mcp_path = mcp_path,
		.stream_max = MODEL_STREAM_MAX,
		.total_max = MODEL_TOTAL_MAX,
		.echo_max = MODEL_ECHO_MAX,
		.artifacts_max = MODEL_ARTIFACTS_MAX,
		.terse = true,
	};
}

/* ---- values */

static json_t *text_or_null(const char *s)
{
	return s ? rpc_text(s, strlen(s)) : json_null();
}

static json_t *time_or_null(int64_t ms)
{
	char text[CLOCK_RFC3339_SIZE];

	return ms > 0 ? json_string(clock_format_rfc3339(ms, text)) : json_null();
}

static json_t *int_or_null(int64_t v, bool known)
{
	return known ? json_integer(v) : json_null();
}

static void put(json_t *o, const char *key, json_t *v)
{
	json_object_set_new(o, key, v);
}

static json_t *signal_or_null(int64_t signal)
{
	char name[32];
	const char *abbrev = signal > 0 ? sigabbrev_np((int)signal) : NULL;

	if (signal <= 0)
		return json_null();
	if (abbrev)
		snprintf(name, sizeof(name), "SIG%s", abbrev);
	else
		snprintf(name, sizeof(name), "signal %d", (int)signal);
	return json_string(name);
}

/* ---- what was asked for */

static json_t *shell_echo(const char *shell, size_t max)
{
	size_t n = shell ? strlen(shell) : 0;
	AUTO_BUF b = BUF_INIT(max + MARK_MAX);
	char count[STR_COUNT_SIZE];

	if (!shell || max == 0 || n <= max)
		return text_or_null(shell);
	buf_add(&b, shell, max - utf8_incomplete_tail(shell, max));
	buf_printf(&b, "[... %s left out ...]",
		   str_count(count, (long long)(n - max), "byte", "bytes"));
	return rpc_text(b.p, b.len);
}

static json_t *json_echo(const char *text, size_t max)
{
	struct err ignored = ERR_INIT; /* a row that an admin spoiled shows as null */
	json_t *v = NULL;

	if (!text || (max && strlen(text) > max) ||
	    json_parse(text, strlen(text), &v, &ignored) < 0)
		return json_null();
	return v;
}

/* ---- output */

static int read_part(struct builder *b, const struct store_output_query *q,
		     struct buf *out, struct err *e)
{
	struct store_output_query part = *q;
	size_t n = 1;

	while (part.max > 0) {
		if (b->output(b->arg, &part, out, &n, e) < 0)
			return -1;
		if (n == 0)
			return 0;
		part.offset += (int64_t)n;
		part.max -= n < part.max ? n : part.max;
	}
	return 0;
}

/* Beginning and end with a mark between, cut between characters. */
static int read_cut(struct builder *b, struct store_output_query *q, size_t stored,
		    struct cut cut, struct buf *out, struct err *e)
{
	AUTO_BUF tail = BUF_INIT(cut.tail + 1);
	char count[STR_COUNT_SIZE];
	size_t skip;

	q->max = cut.head;
	if (read_part(b, q, out, e) < 0)
		return -1;
	out->len -= utf8_incomplete_tail(out->p, out->len);
	q->offset = (int64_t)(stored - cut.tail);
	q->max = cut.tail;
	if (read_part(b, q, &tail, e) < 0)
		return -1;
	skip = cut_partial_start(tail.p, tail.len);
	buf_printf(out, "\n[... %s left out ...]\n",
		   str_count(count, (long long)(stored - out->len - (tail.len - skip)),
			     "byte", "bytes"));
	buf_add(out, tail.p + skip, tail.len - skip);
	return 0;
}

/* This stream's share of what the whole object may still hold. */
static size_t share(struct builder *b)
{
	size_t max = b->streams_left ? b->bytes_left / b->streams_left : 0;

	return max < b->o->stream_max ? max : b->o->stream_max;
}

static int read_stream(struct builder *b, const struct store_command *c,
		       enum store_stream s, struct buf *out, bool *ret_cut, struct err *e)
{
	struct store_output_query q = {
		.run_id = b->run->run_id, .command_index = c->index, .stream = s};
	size_t stored = (size_t)c->stored[s];
	struct cut cut = cut_middle(stored, share(b));
	int rc;

	if (stored == 0)
		return 0;
	b->streams_left--;
	b->bytes_left -= cut.head + cut.tail;
	*ret_cut = cut.tail > 0;
	if (cut.tail > 0)
		return read_cut(b, &q, stored, cut, out, e);
	q.max = stored;
	rc = read_part(b, &q, out, e);
	return rc;
}

static int put_stream(struct builder *b, json_t *o, const struct store_command *c,
		      enum store_stream s, struct err *e)
{
	AUTO_BUF text = BUF_INIT(b->o->stream_max + MARK_MAX);
	const char *name = stream_names[s];
	char key[32];
	bool cut = false;

	if (read_stream(b, c, s, &text, &cut, e) < 0)
		return -1;
	put(o, name, rpc_text(text.p, text.len));
	snprintf(key, sizeof(key), "%s_bytes", name);
	put(o, key, json_integer(c->bytes[s]));
	snprintf(key, sizeof(key), "%s_truncated", name);
	put(o, key, json_boolean(cut || c->truncated[s]));
	if (b->o->terse && !cut && !c->truncated[s] && utf8_is_valid(text.p, text.len) &&
	    run_words_have_all(text.p, text.len, b->streams))
		return 0;
	snprintf(key, sizeof(key), "%s_kept_bytes", name);
	put(o, key, json_integer(c->stored[s]));
	snprintf(key, sizeof(key), "%s_url", name);
	put(o, key, url_output(&b->url, b->run->run_id, (int)c->index, name));
	return 0;
}

/* ---- commands, artifacts, the run */

static json_t *background_id(const struct builder *b, const struct store_command *c)
{
	char id[ID_RUN_LEN + 1];

	runspec_background_id(b->run->run_id, (size_t)c->index, id);
	return json_string(id);
}

static json_t *command_head(const struct builder *b, const struct store_command *c)
{
	size_t echo = b->o->echo_max;
	json_t *o = json_object();

	put(o, "index", json_integer(c->index));
	put(o, "shell", shell_echo(c->shell, echo));
	put(o, "argv", json_echo(c->argv_json, echo));
	put(o, "cwd", text_or_null(c->cwd));
	put(o, "env", json_echo(c->env_json, echo));
	put(o, "timeout_ms", json_integer(c->timeout_ms));
	put(o, "allow_failure", json_boolean(c->allow_failure));
	if (c->background)
		put(o, "background_run_id", background_id(b, c));
	put(o, "status", json_string(seed_status[c->status]));
	put(o, "state", json_string(store_command_status_name(c->status)));
	put(o, "exit_code",
	    int_or_null(c->exit_code,
			store_command_ended(c->status) && c->exit_code >= 0));
	put(o, "signal", signal_or_null(c->signal));
	put(o, "reason", text_or_null(c->reason));
	put(o, "oom", c->oom < 0 ? json_null() : json_boolean(c->oom));
	put(o, "background_left", json_integer(c->background_left));
	put(o, "cpu_ms", int_or_null(c->cpu_ms, c->cpu_ms >= 0));
	put(o, "max_rss_kb", int_or_null(c->max_rss_kb, c->max_rss_kb >= 0));
	put(o, "started_at", time_or_null(c->started_at));
	put(o, "ended_at", time_or_null(c->ended_at));
	return o;
}

static int put_commands(struct builder *b, json_t *o, struct err *e)
{
	AUTO_JSON *list = json_array();
	size_t i;

	for (i = 0; i < b->run->ncommands; i++) {
		const struct store_command *c = &b->run->commands[i];
		json_t *command = command_head(b, c);

		json_array_append_new(list, command);
		if (put_stream(b, command, c, STORE_STDOUT, e) < 0 ||
		    put_stream(b, command, c, STORE_STDERR, e) < 0)
			return -1;
	}
	put(o, "commands", MOVE(list));
	return 0;
}

static json_t *artifact(const struct builder *b, const struct store_artifact *a)
{
	const struct store_run *run = b->run;

	if (a->skipped_reason)
		return json_pack("{s:o, s:I, s:o}", "path", text_or_null(a->path), "size",
				 (json_int_t)a->size, "reason",
				 text_or_null(a->skipped_reason));
	return json_pack("{s:o, s:I, s:o}", "path", text_or_null(a->path), "size",
			 (json_int_t)a->size, "url",
			 url_artifact(&b->url, run->identifier, run->run_id, a->path));
}

static void put_artifacts(const struct builder *b, json_t *o)
{
	size_t max = b->o->artifacts_max ? b->o->artifacts_max : SIZE_MAX;
	size_t i, total[2] = {0, 0};
	json_t *list[2] = {json_array(), json_array()}; /* copied, skipped */

	for (i = 0; i < b->run->nartifacts; i++) {
		const struct store_artifact *a = &b->run->artifacts[i];
		size_t kind = a->skipped_reason ? 1 : 0;

		if (total[kind]++ < max)
			json_array_append_new(list[kind], artifact(b, a));
	}
	put(o, "artifacts", list[0]);
	put(o, "artifacts_total", json_integer((json_int_t)total[0]));
	put(o, "artifacts_skipped", list[1]);
	put(o, "artifacts_skipped_total", json_integer((json_int_t)total[1]));
	put(o, "artifacts_error", text_or_null(b->run->artifacts_error));
}

static size_t count_streams(const struct store_run *run)
{
	size_t i, stream, n = 0;

	for (i = 0; i < run->ncommands; i++)
		for (stream = 0; stream < STORE_STREAM_COUNT; stream++)
			if (run->commands[i].stored[stream] > 0)
				n++;
	return n;
}

int runobj_build(const struct store_run *run, runobj_output_fn *output, void *arg,
		 const struct runobj_opts *o, json_t **ret, struct err *e)
{
	struct builder b = {
		.run = run,
		.o = o,
		.url = {.base = o->base_url, .mcp_path = o->mcp_path},
		.output = output,
		.arg = arg,
		.bytes_left = o->total_max,
		.streams = count_streams(run),
		.streams_left = count_streams(run),
	};
	AUTO_JSON *obj = json_object();

	put(obj, "run_id", text_or_null(run->run_id));
	put(obj, "identifier", text_or_null(run->identifier));
	put(obj, "state", json_string(store_run_state_name(run->state)));
	put(obj, "created_at", time_or_null(run->created_at));
	put(obj, "started_at", time_or_null(run->started_at));
	put(obj, "ended_at", time_or_null(run->ended_at));
	put(obj, "sandbox_container_id", text_or_null(run->sandbox_container_id));
	put(obj, "sandbox_name", text_or_null(run->sandbox_name));
	put(obj, "error", text_or_null(run->error));
	if (run->background_of)
		put(obj, "background_of", text_or_null(run->background_of));
	if (put_commands(&b, obj, e) < 0)
		return -1;
	put_artifacts(&b, obj);
	if (!o->terse) {
		put(obj, "events_url", url_events(&b.url, run->run_id));
		put(obj, "status_url", url_status(&b.url, run->run_id));
	}
	*ret = MOVE(obj);
	return 0;
}

static int output_of_store(void *arg, const struct store_output_query *q, struct buf *out,
			   size_t *ret_n, struct err *e)
{
	return store_read_output(arg, q, out, ret_n, e);
}

int runobj_read(struct store_reader *r, const char *tenant, const char *run_id,
		const struct runobj_opts *o, json_t **ret, struct err *e)
{
	AUTO_STORE_RUN run = {0};

	if (store_read_run(r, tenant, run_id, &run, e) < 0)
		return -1;
	return runobj_build(&run, output_of_store, r, o, ret, e);
}
