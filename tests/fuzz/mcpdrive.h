/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_MCPDRIVE_H
#define TESTS_FUZZ_MCPDRIVE_H

#include <assert.h>

#include "tests/unit/mcp/stub.h"

/* Drives one MCP request to its answer, as an edge does, with all that can come. */
typedef enum mcp_next mcp_begin_fn(struct mcp_server *s, const struct mcp_reads *r,
				   const struct mcp_http *in, struct mcp_call **ret);

static inline struct mcp_server *mcp_drive_server(void)
{
	static struct mcp_server *server;
	struct conf conf = fake_conf();
	struct err e = ERR_INIT;

	conf.confirm_delete = true;
	assert(server || mcp_server_new(&conf, &server, &e) == 0);
	return server;
}

static inline void mcp_drive_note(struct mcp_call *c, const struct mcp_http *in)
{
	struct store_event ev = {.run_id = "run_1",
				 .type = STORE_EVENT_COMMAND_STDOUT,
				 .data = in->body,
				 .n = in->body_len};

	mcp_call_note(c, &ev);
}

static inline void mcp_drive_stream(struct mcp_call *c, const struct mcp_reads *r,
				    struct buf *out)
{
	if (!mcp_call_listens(c))
		return;
	mcp_call_updated(c, "sandbox://x", out);
	mcp_call_task_changed(c, r, "run_0123456789abcdef0123456789abcdef", out);
	mcp_call_closing(c, out);
}

/* The question is answered with whatever message there is, then not at all. */
static inline enum mcp_next mcp_drive_told(struct mcp_call *c, const struct mcp_reads *r,
					   const json_t *message, struct buf *out)
{
	struct err why = {.kind = ERR_TIMEOUT};
	enum mcp_next next;

	mcp_call_questions(c, out);
	if (message && mcp_call_told(c, r, SESSION_NEW, message, &next))
		return next;
	return mcp_call_fail(c, r, &why);
}

static inline void mcp_drive(const struct mcp_http *in, mcp_begin_fn *begin,
			     const json_t *message)
{
	struct fake_store store = {.run = json_pack("{s:s}", "state", "failed"),
				   .nrows = 60,
				   .client_can = "elicitation",
				   .log_level = in->body_len % 3 ? "debug" : NULL};
	struct edgemsg ok = {.type = MSG_OK, .body = json_object()};
	struct mcp_reads r = fake_reads(&store);
	AUTO_BUF out = BUF_INIT(1 << 22);
	struct mcp_call *c;
	enum mcp_next next = begin(mcp_drive_server(), &r, in, &c);

	while (next != MCP_REPLY && next != MCP_STREAM) {
		json_decref(mcp_call_cancel_run(c, "fuzz"));
		mcp_call_head(c, &out);
		mcp_drive_note(c, in);
		mcp_call_progress(c, &out);
		if (next == MCP_ASK)
			next = mcp_drive_told(c, &r, message, &out);
		else
			next = next == MCP_SEND ? mcp_call_answer(c, &r, &ok)
						: mcp_call_run_done(c, &r);
	}
	mcp_call_head(c, &out);
	if (next == MCP_STREAM)
		mcp_drive_stream(c, &r, &out);
	else
		assert(mcp_call_reply(c).status >= 200 && mcp_call_reply(c).status < 505);
	mcp_call_frame(c, &out);
	mcp_call_free(c);
	json_decref(ok.body);
	json_decref(store.run);
}

#endif
