/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "mcp/eventid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A Last-Event-ID of any text names a request, or is refused; what it names is whole. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = xstrndup((const char *)data, size);
	struct eventid x = {0};
	struct err e = ERR_INIT;

	if (eventid_parse(text, &x, &e) == 0)
		assert(x.id && strlen(x.run_id) == ID_RUN_LEN);
	json_decref(x.doc);
	free(text);
	return 0;
}
