/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "tests/unit/mcp/stub.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A body of any bytes ends in one answer, of whatever the runner says. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mcp_server *server;
	struct fake_store store = {.run = json_pack("{s:s}", "state", "failed")};
	struct edgemsg ok = {.type = MSG_OK, .body = json_object()};
	struct mcp_reads r = fake_reads(&store);
	struct mcp_http in = fake_http(size % 2 ? SESSION_NEW : SESSION_MID, "");
	struct conf conf = fake_conf();
	struct err e = ERR_INIT;
	AUTO_BUF frames = BUF_INIT(1 << 20);
	struct mcp_call *c;
	enum mcp_next next;

	assert(server || mcp_server_new(&conf, &server, &e) == 0);
	in.body = (const char *)data;
	in.body_len = size;
	in.accept = "text/event-stream";
	/* What a modern body must match; legacy ones pass it over. */
	in.protocol_version = memmem(data, size, "2026-07-28", 10) ? "2026-07-28" : NULL;
	in.method = memmem(data, size, "tasks/get", 9) ? "tasks/get" : "tools/call";
	in.name = memmem(data, size, "run_0", 5) ? "run_0123456789abcdef0123456789abcdef"
						 : "run_sandbox";
	for (next = mcp_post(server, &r, &in, &c); next != MCP_REPLY;) {
		json_decref(mcp_call_cancel_run(c, "fuzz"));
		mcp_call_head(c, &frames);
		next = next == MCP_SEND ? mcp_call_answer(c, &r, &ok)
					: mcp_call_run_done(c, &r);
	}
	mcp_call_frame(c, &frames);
	assert(mcp_call_reply(c).status >= 200 && mcp_call_reply(c).status < 504);
	mcp_call_free(c);
	json_decref(ok.body);
	json_decref(store.run);
	return 0;
}
