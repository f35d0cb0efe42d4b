/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "mcp/call.h"
#include "mcp/eventid.h"
#include "mcp/logmsg.h"
#include "mcp/subscribe.h"

/*
 * Where a call's answer goes, and the frames of those that are streams. Streams of
 * MCP have two kinds of frames: `endpoint` and `message`.
 */
enum { RETRY_MS = 1000, REQUEST_ID_MAX = 256, ACKNOWLEDGMENT_MAX = 1024 * 1024 };

enum mcp_way mcp_call_way(const struct mcp_call *c)
{
	if (c->by_session)
		return MCP_WAY_SESSION;
	if (c->is_stream ||
	    (c->accepts_stream &&
	     (c->progress.token || c->waits_streaming || c->log_level >= 0)))
		return MCP_WAY_SSE;
	return MCP_WAY_HTTP;
}

bool mcp_call_is_stream(const struct mcp_call *c)
{
	return c->is_stream;
}

const char *mcp_call_session(const struct mcp_call *c)
{
	return c->session_id;
}

/* Ids are repeated in every frame, so a long one is not made for that. */
static bool short_enough(const json_t *v)
{
	return !json_is_string(v) || json_string_length(v) <= REQUEST_ID_MAX;
}

/* Can a client come back for the rest? Only a run's end can be told again. */
static bool can_resume(const struct mcp_call *c)
{
	return c->version->resumes && !c->by_session && c->run_is_ours && c->msg.id &&
	       short_enough(c->msg.id) &&
	       (!c->progress.token || short_enough(c->progress.token));
}

/* In an event id: another process, or one after a restart, goes on by it. */
static int64_t until_wall(const struct mcp_call *c)
{
	if (c->await_until_mono == 0)
		return 0;
	return clock_now_ms() + c->await_until_mono - clock_mono_ms();
}

static void add_id(struct mcp_call *c, int64_t place, struct buf *b)
{
	struct eventid x = {.place = place,
			    .until_ms = until_wall(c),
			    .id = c->msg.id,
			    .token = c->progress.token};

	memcpy(x.run_id, c->run_id, sizeof(x.run_id));
	buf_puts(b, "id: ");
	eventid_add(&x, b);
	buf_puts(b, "\n");
}

void mcp_frame(const char *p, size_t n, struct buf *b)
{
	buf_puts(b, "event: message\ndata: ");
	buf_add(b, p, n);
	buf_puts(b, "\n\n");
}

void mcp_call_head(struct mcp_call *c, struct buf *b)
{
	c->is_stream = true;
	if (c->listens) {
		AUTO_BUF first = BUF_INIT(ACKNOWLEDGMENT_MAX);

		mcp_call_acknowledgment(c, &first);
		mcp_frame(first.p, first.len, b);
	} else if (c->opens_sse) {
		buf_printf(b, "event: endpoint\ndata: %s?sessionId=%s\n\n",
			   c->server->mcp_path, c->session_id);
	} else if (can_resume(c)) {
		add_id(c, progress_elapsed(&c->progress, clock_mono_ms()), b);
		buf_printf(b, "retry: %d\ndata: \n\n", RETRY_MS);
	} else if (c->version->resumes) {
		buf_printf(b, "retry: %d\n\n", RETRY_MS);
	} else {
		buf_puts(b, ": open\n\n"); /* so that the head does not wait for more */
	}
}

bool mcp_call_wants_progress(const struct mcp_call *c)
{
	return (c->progress.token || c->log_level >= 0) &&
	       mcp_call_way(c) != MCP_WAY_HTTP;
}

bool mcp_call_note(struct mcp_call *c, const struct store_event *ev)
{
	bool moved = progress_note(&c->progress, ev);
	bool told = mcp_call_wants_progress(c) && logmsg_note(c, ev);

	return (moved && c->progress.token && mcp_call_wants_progress(c)) || told;
}

/* What is in the log, each line as a frame; it is empty then. */
static void flush_log(struct mcp_call *c, struct buf *b)
{
	struct str rest = {c->log.p, c->log.len}, line;

	while (c->log.len > 0 && str_cut(&rest, '\n', &line))
		mcp_frame(line.p, line.n, b);
	buf_release(&c->log);
}

static void flush_log_lines(struct mcp_call *c, struct buf *b)
{
	buf_add(b, c->log.p, c->log.len);
	buf_release(&c->log);
}

void mcp_call_progress(struct mcp_call *c, struct buf *b)
{
	AUTO_BUF text = BUF_INIT(64 * 1024);
	int64_t place = progress_elapsed(&c->progress, clock_mono_ms());

	flush_log(c, b);
	if (!c->progress.token)
		return;
	progress_add(&c->progress, place, &text);
	if (can_resume(c))
		add_id(c, place, b);
	mcp_frame(text.p, text.len, b);
}

void mcp_call_progress_line(struct mcp_call *c, struct buf *b)
{
	flush_log_lines(c, b);
	if (!c->progress.token)
		return;
	if (b->len > 0)
		buf_puts(b, "\n");
	progress_add(&c->progress, progress_elapsed(&c->progress, clock_mono_ms()), b);
}

void mcp_call_last_lines(struct mcp_call *c, struct buf *b)
{
	if (mcp_call_wants_progress(c))
		flush_log_lines(c, b);
}

bool mcp_call_has_id(const struct mcp_call *c, const json_t *id)
{
	return c->msg.kind == RPC_IS_REQUEST && c->msg.id && json_equal(c->msg.id, id);
}

void mcp_call_frame(struct mcp_call *c, struct buf *b)
{
	flush_log(c, b);
	if (c->reply.len > 0)
		mcp_frame(c->reply.p, c->reply.len, b);
}

bool mcp_call_ends_with_client(const struct mcp_call *c)
{
	return c->version->era == MCP_MODERN;
}

bool mcp_call_has_run(const struct mcp_call *c)
{
	return c->run_is_ours;
}

json_t *mcp_call_cancel_run(const struct mcp_call *c, const char *reason)
{
	if (!c->run_is_ours)
		return NULL;
	return json_pack("{s:s, s:s, s:s}", "tenant", c->tenant, "run_id", c->run_id,
			 "reason", reason);
}

bool mcp_call_is(const struct mcp_call *c, const char *session_id, const json_t *id)
{
	return c->session_id[0] && strcmp(c->session_id, session_id) == 0 &&
	       c->msg.kind == RPC_IS_REQUEST && c->msg.id && json_equal(c->msg.id, id);
}
