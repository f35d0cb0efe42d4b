/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/mem.h"
#include "mcp/uris.h"
#include "wire/idenc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FREE char *text = xstrndup((const char *)data, size);
	struct uri u;

	if (!uri_parse(text, &u))
		return 0;
	if (u.kind == URI_LATEST ? !u.identifier[0] : !idenc_is_run_id(u.run_id))
		abort();
	if ((u.kind == URI_LATEST || u.kind == URI_ARTIFACT) && !u.path[0])
		abort();
	return 0;
}
