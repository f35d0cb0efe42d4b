/* SPDX-License-Identifier: MIT */
#include "mcp/run_tool.h"

#include <string.h>

#include "base/json.h"
#include "mcp/failure.h"
#include "mcp/run_words.h"
#include "mcp/tools.h"
#include "mcp/urls.h"
#include "wire/denylist.h"
#include "wire/runspec.h"

enum { WORDS_MAX = 256 * 1024 };

int run_tool_check(struct mcp_call *c, struct err *e)
{
	AUTO_RUNSPEC spec = {0};

	if (runspec_parse(c->args, &c->server->limits, &spec, e) < 0)
		return -1;
	if (c->server->denylist && denylist_check(c->server->denylist, &spec, e) < 0)
		return -1;
	id_new_run(c->run_id);
	c->await = spec.await_completion;
	c->await_timeout_ms = spec.await_timeout_ms;
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

/* What every answer about an accepted run carries. */
static json_t *handle_of(const struct mcp_call *c, const json_t *ok)
{
	struct url u = {.base = c->base_url, .mcp_path = c->server->mcp_path};

	return json_pack("{s:s, s:o, s:o, s:o, s:o}", "run_id", c->run_id, "events_url",
			 url_events(&u, c->run_id), "status_url",
			 url_status(&u, c->run_id), "identifier",
			 text_of(c->args, "identifier"), "sandbox_name",
			 text_of(ok, "sandbox_name"));
}

/* There is no place to wait in, or the run cannot be watched: it goes on all the same. */
static enum mcp_next cannot_await(struct mcp_call *c, const struct mcp_reads *r,
				  const json_t *ok, const struct err *why)
{
	AUTO_BUF words = BUF_INIT(WORDS_MAX);

	(void)r;
	(void)ok;
	run_words_not_awaited(&words, failure_of(why->kind)->may_show
					      ? why->msg
					      : "the server failed inside");
	json_object_set_new(c->accepted, "final", json_null());
	return tool_answer(c, false, words.p, c->accepted);
}

static enum mcp_next answer_final(struct mcp_call *c, json_t *run)
{
	const char *state = json_string_value(json_object_get(run, "state"));
	bool good = state && strcmp(state, "completed") == 0;
	AUTO_BUF words = BUF_INIT(WORDS_MAX);

	run_words_final(&words, run);
	json_object_set(c->accepted, "final", run);
	return tool_answer(c, !good, words.p, c->accepted);
}

static enum mcp_next answer_unfinished(struct mcp_call *c, const json_t *run)
{
	AUTO_BUF words = BUF_INIT(WORDS_MAX);

	run_words_unfinished(&words, run, c->await_timeout_ms);
	json_object_set_new(c->accepted, "final", json_null());
	return tool_answer(c, false, words.p, c->accepted);
}

static bool ended(const json_t *run)
{
	const char *state = json_string_value(json_object_get(run, "state"));

	return state && strcmp(state, "queued") != 0 && strcmp(state, "running") != 0;
}

/* The row decides, not the clock: a run that ended at the last moment is told whole. */
static enum mcp_next run_done(struct mcp_call *c, const struct mcp_reads *r)
{
	struct err e = ERR_INIT;
	AUTO_JSON *run = NULL;
	int rc = r->run(r->arg, c->tenant, c->run_id, c->base_url, &run, &e);

	if (rc == 1 && ended(run))
		return answer_final(c, run);
	if (rc == 1)
		return answer_unfinished(c, run);
	if (rc == 0)
		err_set(&e, ERR_NOT_FOUND,
			"run %s was accepted but is gone: retention "
			"removed it",
			c->run_id);
	json_object_set_new(c->accepted, "final", json_null());
	return tool_failed(c, &e, c->accepted);
}

enum mcp_next run_tool_accepted(struct mcp_call *c, const json_t *ok)
{
	AUTO_BUF words = BUF_INIT(WORDS_MAX);

	c->accepted = handle_of(c, ok);
	if (c->await) {
		c->on_answer = cannot_await; /* only mcp_call_fail() may come here */
		c->on_done = run_done;
		return MCP_AWAIT_RUN;
	}
	run_words_accepted(&words);
	return tool_answer(c, false, words.p, c->accepted);
}
