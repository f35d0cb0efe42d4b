/* SPDX-License-Identifier: MIT */
#include "mcp/get_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"
#include "mcp/content.h"
#include "mcp/cut.h"
#include "mcp/run_tool.h"
#include "mcp/run_words.h"
#include "mcp/tools.h"
#include "wire/args.h"
#include "wire/idenc.h"

enum {
	WAIT_MAX_MS = 24 * 3600 * 1000,
	PART_DEFAULT = 16 * 1024,
	PART_MAX = 1024 * 1024,
	WORDS_MAX = 256 * 1024,
};

/* ---- arguments */

static int take_run_id(struct mcp_call *c, struct err *e)
{
	const char *id;

	if (arg_string((struct arg){c->args, "", "run_id"}, &id, e) < 0)
		return -1;
	if (!id)
		return err_set(e, ERR_INVALID,
			       "run_id is missing; run_sandbox answers with it");
	if (!idenc_is_run_id(id))
		return err_set(e, ERR_INVALID,
			       "run_id must be run_ and 32 hex digits, as run_sandbox "
			       "answered");
	snprintf(c->run_id, sizeof(c->run_id), "%s", id);
	return 0;
}

/* Which part of which stream. */
struct part {
	bool wanted;
	int64_t command, offset, max;
	enum store_stream stream;
};

static int take_part(const json_t *args, struct part *p, struct err *e)
{
	const char *stream;

	*p = (struct part){.max = PART_DEFAULT};
	if (arg_int((struct arg){args, "", "command"}, 0, INT32_MAX, &p->command, e) <
		    0 ||
	    arg_int((struct arg){args, "", "offset"}, 0, INT64_MAX / 2, &p->offset, e) <
		    0 ||
	    arg_int((struct arg){args, "", "max_bytes"}, 1, PART_MAX, &p->max, e) < 0 ||
	    arg_string((struct arg){args, "", "stream"}, &stream, e) < 0)
		return -1;
	p->stream = stream && strcmp(stream, "stderr") == 0 ? STORE_STDERR : STORE_STDOUT;
	if (stream && p->stream == STORE_STDOUT && strcmp(stream, "stdout") != 0)
		return err_set(e, ERR_INVALID, "stream must be \"stdout\" or \"stderr\"");
	p->wanted = stream || json_object_get(args, "command") ||
		    json_object_get(args, "offset") || json_object_get(args, "max_bytes");
	return 0;
}

int get_run_check(struct mcp_call *c, struct err *e)
{
	static const char *const known[] = {"run_id",    "command", "stream", "offset",
					    "max_bytes", "wait_ms", NULL};
	struct part p;

	c->await_timeout_ms = 0;
	if (arg_only(c->args, "", known, e) < 0 || take_run_id(c, e) < 0 ||
	    take_part(c->args, &p, e) < 0)
		return -1;
	return arg_int((struct arg){c->args, "", "wait_ms"}, 0, WAIT_MAX_MS,
		       &c->await_timeout_ms, e);
}

/* ---- answers */

static enum mcp_next no_such_run(struct mcp_call *c, int rc, struct err *e)
{
	if (rc == 0)
		err_set(e, ERR_NOT_FOUND,
			"there is no run %s: it never was, or retention removed it",
			c->run_id);
	return tool_failed(c, e, NULL);
}

static const char *state_of(const json_t *run)
{
	const char *state = json_get_string(run, "state");

	return state ? state : "";
}

static enum mcp_next answer_whole(struct mcp_call *c, const struct mcp_reads *r,
				  json_t *run)
{
	AUTO_JSON *structured = run_tool_handle(c, run);
	AUTO_BUF words = BUF_INIT(WORDS_MAX);
	AUTO_JSON *result = NULL;
	bool ended = run_tool_ended(run);

	json_object_set_new(structured, "state", json_string(state_of(run)));
	json_object_set_new(structured, "final", ended ? json_incref(run) : json_null());
	if (ended)
		run_words_final(&words, run);
	else
		run_words_so_far(&words, run);
	result = tool_result(false, words.p, structured);
	if (ended)
		content_add_artifacts(c, r, run, json_object_get(result, "content"));
	return call_result(c, result);
}

static bool command_ended(const json_t *command)
{
	return json_is_string(json_object_get(command, "ended_at"));
}

/* Whole characters of text; what a character lacks comes with the next part. */
static size_t whole_characters(const char *p, size_t n)
{
	size_t tail = utf8_incomplete_tail(p, n);

	return tail < n ? n - tail : n;
}

static void add_part_words(struct buf *b, const struct part *p, const json_t *run,
			   int64_t next, bool at_end)
{
	buf_printf(b, "run %s; %s of command %" PRId64 ", bytes %" PRId64 " to %" PRId64,
		   state_of(run), p->stream == STORE_STDERR ? "stderr" : "stdout",
		   p->command, p->offset, next);
	if (at_end)
		buf_puts(b, ", to its end:\n");
	else
		buf_printf(b, "; go on with offset %" PRId64 ":\n", next);
}

static enum mcp_next answer_part(struct mcp_call *c, const struct mcp_reads *r,
				 const json_t *run, const struct part *p)
{
	const json_t *command =
		json_array_get(json_object_get(run, "commands"), (size_t)p->command);
	struct store_output_query q = {.run_id = c->run_id,
				       .command_index = p->command,
				       .stream = p->stream,
				       .offset = p->offset,
				       .max = (size_t)p->max};
	AUTO_BUF text = BUF_INIT((size_t)p->max);
	AUTO_BUF words = BUF_INIT(4 * (size_t)p->max + WORDS_MAX);
	AUTO_JSON *structured = NULL;
	struct err e = ERR_INIT;
	int64_t next;
	bool at_end;
	size_t n;

	if (!command) {
		err_set(&e, ERR_INVALID,
			"command must be less than %zu, the run's number",
			json_array_size(json_object_get(run, "commands")));
		return tool_failed(c, &e, NULL);
	}
	if (r->output(r->arg, &q, &text, &e) < 0)
		return tool_failed(c, &e, NULL);
	at_end = text.len < q.max && command_ended(command);
	n = at_end ? text.len : whole_characters(text.p, text.len);
	next = p->offset + (int64_t)n;
	add_part_words(&words, p, run, next, at_end);
	run_words_add_text(&words, text.p, n);
	structured = run_tool_handle(c, run);
	json_object_set_new(structured, "state", json_string(state_of(run)));
	json_object_set_new(
		structured, "output",
		json_must(json_pack("{s:I, s:s, s:I, s:I, s:b, s:o}", "command",
				    (json_int_t)p->command, "stream",
				    p->stream == STORE_STDERR ? "stderr" : "stdout",
				    "offset", (json_int_t)p->offset, "next_offset",
				    (json_int_t)next, "at_end", (int)at_end, "text",
				    rpc_text(text.p, n))));
	return tool_answer(c, false, words.p, structured);
}

static enum mcp_next answer_now(struct mcp_call *c, const struct mcp_reads *r)
{
	struct err e = ERR_INIT;
	AUTO_JSON *run = NULL;
	struct part p;
	int rc = r->run(r->arg, c->tenant, c->run_id, c->base_url, &run, &e);

	if (rc < 1)
		return no_such_run(c, rc, &e);
	if (take_part(c->args, &p, &e) < 0)
		return tool_failed(c, &e, NULL);
	return p.wanted ? answer_part(c, r, run, &p) : answer_whole(c, r, run);
}

static enum mcp_next cannot_wait(struct mcp_call *c, const struct mcp_reads *r,
				 const json_t *ok, const struct err *why)
{
	(void)ok;
	(void)why; /* then it is told as it is now */
	return answer_now(c, r);
}

enum mcp_next get_run_begin(struct mcp_call *c, const struct mcp_reads *r)
{
	struct err e = ERR_INIT;
	AUTO_JSON *run = NULL;
	int rc;

	if (c->await_timeout_ms == 0)
		return answer_now(c, r);
	rc = r->run(r->arg, c->tenant, c->run_id, c->base_url, &run, &e);
	if (rc < 1)
		return no_such_run(c, rc, &e);
	if (run_tool_ended(run))
		return answer_now(c, r);
	c->progress.began_mono = clock_mono_ms();
	c->progress.steps = json_array_size(json_object_get(run, "commands"));
	return call_await(c, run_tool_wait_ms(c), answer_now, cannot_wait);
}

/* ---- cancel_run */

int cancel_run_check(struct mcp_call *c, struct err *e)
{
	static const char *const known[] = {"run_id", NULL};

	return arg_only(c->args, "", known, e) < 0 ? -1 : take_run_id(c, e);
}

void cancel_run_fill(const struct mcp_call *c, json_t *message)
{
	json_object_set_new(message, "run_id", json_string(c->run_id));
	json_object_set_new(message, "reason", json_string("canceled with cancel_run"));
}

enum mcp_next cancel_run_accepted(struct mcp_call *c, const struct mcp_reads *r,
				  const json_t *ok)
{
	bool canceled = json_is_true(json_object_get(ok, "canceled"));
	struct err e = ERR_INIT;
	AUTO_JSON *run = NULL;
	AUTO_JSON *structured = NULL;
	char words[256];
	int rc = r->run(r->arg, c->tenant, c->run_id, c->base_url, &run, &e);

	if (rc < 1)
		return no_such_run(c, rc, &e);
	structured =
		json_must(json_pack("{s:s, s:b, s:s}", "run_id", c->run_id, "canceled",
				    (int)canceled, "state", state_of(run)));
	if (canceled)
		snprintf(words, sizeof(words),
			 "canceled: its command is ended now (TERM, then KILL); get_run "
			 "tells how it ended");
	else
		snprintf(words, sizeof(words),
			 "nothing to cancel: the run has ended as %s", state_of(run));
	return tool_answer(c, false, words, structured);
}
