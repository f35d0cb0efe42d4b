/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <string.h>

#include "wire/agentproto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Both directions; what decodes must encode to the same bytes again. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t out[AP_FRAME_MAX];
	struct ap_msg m;
	size_t used;

	for (int side = AP_FROM_RUNNER; side <= AP_FROM_AGENT; side++) {
		const uint8_t *p = data;
		size_t left = size;

		while (ap_decode(p, left, (enum ap_side)side, &m, &used) == AP_OK) {
			assert(ap_encode(&m, out, sizeof(out)) == used);
			assert(memcmp(out, p, used) == 0);
			p += used;
			left -= used;
		}
	}
	return 0;
}
