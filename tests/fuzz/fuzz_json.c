/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What parses prints, and the print parses to the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_BUF text = BUF_INIT(16 * 1024 * 1024);
	AUTO_JSON *v = NULL, *again = NULL;
	struct err e = ERR_INIT;

	if (json_parse((const char *)data, size, &v, &e) < 0)
		return 0;
	json_dump_buf(v, &text);
	assert(json_parse(text.p, text.len, &again, &e) == 0);
	return 0;
}
