/* SPDX-License-Identifier: MIT */
#include "mcp/run_tool.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "mcp/content.h"
#include "mcp/failure.h"
#include "mcp/modern.h"
#include "mcp/run_words.h"
#include "mcp/tasks.h"
#include "mcp/tools.h"
#include "mcp/urls.h"
#include "wire/denylist.h"
#include "wire/runspec.h"

enum { WORDS_MAX = 256 * 1024, KEY_MAX = 256 };

int run_tool_check(struct mcp_call *c, struct err *e)
{
	AUTO_RUNSPEC spec = {0};

	if (runspec_parse(c->args, &c->server->limits, &spec, e) < 0)
		return -1;
	if (c->server->denylist && denylist_check(c->server->denylist, &spec, e) < 0)
		return -1;
	id_new_run(c->run_id);
	c->run_is_ours = true;
	c->await = spec.await_completion;
	c->await_timeout_ms = spec.await_timeout_ms;
	return 0;
}

int run_tool_name(struct mcp_call *c, const struct mcp_reads *r, struct err *e)
{
	const json_t *given =
		json_object_get(json_object_get(c->msg.params, "_meta"), RUN_TOOL_KEY);
	const char *text = json_string_value(given);
	char secret[MCP_KEY_SIZE], hash[SHA256_HEX_LEN + 1];
	AUTO_BUF b = BUF_INIT(SIZE_MAX);
	AUTO_FREE char *args = NULL;

	if (!given)
		return 0;
	if (!text || !*text || json_string_length(given) > KEY_MAX)
		return err_set(e, ERR_INVALID,
			       "_meta[\"" RUN_TOOL_KEY "\"] must be a string of 1 to %d "
			       "bytes",
			       KEY_MAX);
	if (r->key(r->arg, secret, e) < 0)
		return -1;
	args = json_dumps(c->args, JSON_COMPACT | JSON_SORT_KEYS);
	buf_printf(&b, "run\n%s\n%s\n", c->tenant, text);
	buf_puts(&b, args ? args : "");
	sha256_hmac_hex(secret, strlen(secret), b.p, b.len, hash);
	snprintf(c->run_id, sizeof(c->run_id), "run_%.*s", ID_HEX_LEN, hash);
	return 0;
}

void run_tool_fill(const struct mcp_call *c, json_t *message)
{
	json_object_set_new(message, "run_id", json_string(c->run_id));
}

static json_t *text_of(const json_t *object, const char *key)
{
	json_t *v = json_object_get(object, key);

	return json_is_string(v) ? json_incref(v) : json_string("");
}

json_t *run_tool_handle(const struct mcp_call *c, const json_t *from)
{
	struct url u = {.base = c->base_url, .mcp_path = c->server->mcp_path};

	return json_pack("{s:s, s:o, s:o, s:o, s:o}", "run_id", c->run_id, "events_url",
			 url_events(&u, c->run_id), "status_url",
			 url_status(&u, c->run_id), "identifier",
			 text_of(from, "identifier"), "sandbox_name",
			 text_of(from, "sandbox_name"));
}

static enum mcp_next answer_open(struct mcp_call *c, const json_t *from,
				 const char *words)
{
	AUTO_JSON *handle = run_tool_handle(c, from);

	json_object_set_new(handle, "final", json_null());
	return tool_answer(c, false, words, handle);
}

/* ---- the run is not waited for to its end */

/* There is no place to wait in, or the run cannot be watched: it goes on all the same. */
static enum mcp_next cannot_await(struct mcp_call *c, const struct mcp_reads *r,
				  const json_t *ok, const struct err *why)
{
	AUTO_BUF words = BUF_INIT(WORDS_MAX);
	AUTO_JSON *run = NULL;
	struct err e = ERR_INIT;

	(void)ok;
	run_words_not_awaited(&words, failure_of(why->kind)->may_show
					      ? why->msg
					      : "the server failed inside");
	if (r->run(r->arg, c->tenant, c->run_id, c->base_url, &run, &e) < 1)
		run = NULL; /* the handle alone must do */
	return answer_open(c, run, words.p);
}

/* Less than was asked for when the edge is replaced meanwhile. */
static int64_t waited_ms(const struct mcp_call *c)
{
	int64_t left = c->await_until_mono - clock_mono_ms();

	return left > 0 ? c->await_timeout_ms - left : c->await_timeout_ms;
}

static enum mcp_next answer_unfinished(struct mcp_call *c, const json_t *run)
{
	AUTO_BUF words = BUF_INIT(WORDS_MAX);

	run_words_unfinished(&words, run, waited_ms(c));
	return answer_open(c, run, words.p);
}

/* ---- its end */

bool run_tool_ended(const json_t *run)
{
	const char *state = json_get_string(run, "state");

	return state && strcmp(state, "queued") != 0 && strcmp(state, "running") != 0;
}

json_t *run_tool_result(const struct mcp_call *c, const struct mcp_reads *r, json_t *run)
{
	const char *state = json_get_string(run, "state");
	bool good = state && strcmp(state, "completed") == 0;
	AUTO_BUF words = BUF_INIT(WORDS_MAX);
	AUTO_JSON *structured = run_tool_handle(c, run);
	json_t *result;

	run_words_final(&words, run);
	json_object_set(structured, "final", run);
	result = tool_result(!good, words.p, structured);
	content_add_artifacts(c, r, run, json_object_get(result, "content"));
	return result;
}

static enum mcp_next answer_gone(struct mcp_call *c, int rc, struct err *e)
{
	AUTO_JSON *handle = run_tool_handle(c, c->args);

	if (rc == 0)
		err_set(e, ERR_NOT_FOUND,
			"run %s was accepted but is gone: retention removed it",
			c->run_id);
	json_object_set_new(handle, "final", json_null());
	return tool_failed(c, e, handle);
}

/* The row decides, not the clock: a run that ended at the last moment is told whole. */
static enum mcp_next awaited(struct mcp_call *c, const struct mcp_reads *r)
{
	struct err e = ERR_INIT;
	AUTO_JSON *run = NULL;
	AUTO_JSON *result = NULL;
	int rc = r->run(r->arg, c->tenant, c->run_id, c->base_url, &run, &e);

	if (rc < 1)
		return answer_gone(c, rc, &e);
	if (!run_tool_ended(run))
		return c->as_task ? tasks_created(c, run) : answer_unfinished(c, run);
	result = run_tool_result(c, r, run);
	return call_result(c, result);
}

/* ---- how long it is waited for */

static int64_t at_most(int64_t ms, int64_t limit)
{
	return ms < limit ? ms : limit;
}

int64_t run_tool_wait_ms(const struct mcp_call *c)
{
	int64_t max = c->server->await_max_ms;

	/* Without a sign of life many clients give up; they shall have the handle. */
	if (c->progress.token && (c->accepts_stream || c->by_session))
		return c->await_timeout_ms;
	if (c->batch) /* the members before it have waited, too */
		max -= clock_mono_ms() - c->began_mono;
	return at_most(c->await_timeout_ms, max > 0 ? max : 0);
}

static enum mcp_next wait(struct mcp_call *c)
{
	int64_t ms = run_tool_wait_ms(c);

	if (c->version->era == MCP_MODERN && ms > c->server->task_after_ms &&
	    modern_client_has(c, MODERN_EXT_TASKS)) {
		c->as_task = true; /* its host waits on by tasks/get */
		ms = c->server->task_after_ms;
	}
	return call_await(c, ms, awaited, cannot_await);
}

/* A task must be there for tasks/get when the client hears of it: the row is. */
static enum mcp_next answer_task(struct mcp_call *c, const struct mcp_reads *r)
{
	struct err e = ERR_INIT;
	AUTO_JSON *run = NULL;
	int rc = r->run(r->arg, c->tenant, c->run_id, c->base_url, &run, &e);

	if (rc < 1)
		return answer_gone(c, rc, &e);
	return tasks_created(c, run);
}

enum mcp_next run_tool_accepted(struct mcp_call *c, const struct mcp_reads *r,
				const json_t *ok)
{
	AUTO_BUF words = BUF_INIT(WORDS_MAX);
	AUTO_JSON *handle = NULL;

	c->progress.began_mono = clock_mono_ms();
	c->progress.steps = json_array_size(json_object_get(c->args, "commands"));
	if (c->as_task)
		return answer_task(c, r);
	if (c->await)
		return wait(c);
	run_words_accepted(&words);
	handle = run_tool_handle(c, ok);
	return tool_answer(c, false, words.p, handle);
}

enum mcp_next run_tool_resume(struct mcp_call *c, const struct mcp_reads *r,
			      int64_t left_ms)
{
	struct err e = ERR_INIT;
	AUTO_JSON *run = NULL;
	int rc = r->run(r->arg, c->tenant, c->run_id, c->base_url, &run, &e);

	c->is_stream = true;
	c->run_is_ours = true;
	if (rc < 1)
		return answer_gone(c, rc, &e);
	c->progress.steps = json_array_size(json_object_get(run, "commands"));
	return call_await(c, left_ms, awaited, cannot_await);
}
