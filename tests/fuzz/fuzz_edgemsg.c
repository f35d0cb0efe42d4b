/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "wire/edgemsg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_EDGEMSG m = {0};
	struct err e = ERR_INIT;

	if (edgemsg_decode(data, size, &m, &e) < 0)
		assert(e.kind == ERR_INVALID && !m.body);
	else
		assert(json_is_object(m.body) && m.type > 0 && m.type < MSG_TYPE_COUNT);
	return 0;
}
