/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <string.h>

#include "backend/kubernetes/api/status.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever a server says: there are words, and they are one line of UTF-8. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int code = size ? 400 + data[0] % 200 : 400;
	struct str body = {size ? (const char *)data + 1 : "", size ? size - 1 : 0};
	struct kube_status s;
	struct err e = ERR_INIT;

	kube_status_parse(code, body, data ? 1 : 0, &s);
	assert(s.code == code && s.reason >= 0 && s.reason < KUBE_REASON_COUNT);
	assert(*s.words && utf8_is_valid(s.words, strlen(s.words)));
	assert(!strpbrk(s.words, "\r\n\t\x1b"));
	assert(kube_status_err(&s, &e) == -1);
	return 0;
}
