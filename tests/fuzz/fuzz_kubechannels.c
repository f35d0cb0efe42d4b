/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <string.h>

#include "backend/kubernetes/api/channels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An exec's messages give the same whole and in pieces, and there is a reason. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_BUF whole = BUF_INIT(1 << 20), pieces = BUF_INIT(1 << 20);
	struct kube_channels a = {0}, b = {0};
	size_t i, n, cut = size ? data[0] % 13 + 1 : 1;
	int ra = kube_channels_decode(&a, (const char *)data, size, &whole), rb = 0;
	struct err e = ERR_INIT;

	for (i = 0; i < size && rb == 0; i += n) {
		n = size - i < cut ? size - i : cut;
		rb = kube_channels_decode(&b, (const char *)data + i, n, &pieces);
	}
	assert(ra == rb && a.has_status == b.has_status);
	assert(whole.len == pieces.len && memcmp(whole.p, pieces.p, whole.len) == 0);
	kube_channels_answer(&a, &whole);
	assert(kube_channels_why(&a, &e) == -1 && *e.msg);
	kube_channels_release(&a);
	kube_channels_release(&b);
	return 0;
}
