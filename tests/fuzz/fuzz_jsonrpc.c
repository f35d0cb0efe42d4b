/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "base/auto.h"
#include "base/json.h"
#include "tests/fuzz/mcpdrive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *string_at(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

/* A body of any bytes ends in one answer. What modern headers must say is what it says,
 * so that every method is reached; legacy ones pass them over. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mcp_http in = fake_http(size % 2 ? SESSION_NEW : SESSION_MID, "");
	struct err ignored = ERR_INIT;
	AUTO_JSON *doc = NULL;
	const json_t *params;

	in.body = (const char *)data;
	in.body_len = size;
	in.accept = "text/event-stream";
	if (json_parse(in.body, size, &doc, &ignored) == 0) {
		params = json_object_get(doc, "params");
		in.method = string_at(doc, "method");
		in.name = string_at(params, "name");
		if (!in.name)
			in.name = string_at(params, "uri");
		if (!in.name)
			in.name = string_at(params, "taskId");
	}
	if (memmem(data, size, "2026-07-28", 10))
		in.protocol_version = "2026-07-28";
	mcp_drive(&in, mcp_post, doc);
	return 0;
}
