/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/mcpdrive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The headers of a GET: Accept, version, session and Last-Event-ID, a line each. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mcp_http in = fake_http(NULL, "");
	const char **lines[] = {&in.accept, &in.protocol_version, &in.session_id,
				&in.last_event_id};
	char text[4096], *rest = text, *line;

	size = size < sizeof(text) ? size : sizeof(text) - 1;
	memcpy(text, data, size);
	text[size] = '\0';
	for (size_t i = 0; i < 4 && (line = strsep(&rest, "\n")); i++)
		if (*line)
			*lines[i] = line;
	mcp_drive(&in, mcp_get, NULL);
	return 0;
}
