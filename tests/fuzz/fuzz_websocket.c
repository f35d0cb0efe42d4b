/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <string.h>

#include "net/websocket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(struct ws_decoder *d, struct str in, struct buf *out)
{
	enum ws_event ev;
	struct str v;

	while ((ev = ws_next(d, &in, &v)) != WS_MORE && ev != WS_BAD && ev != WS_CLOSE) {
		if (ev != WS_DATA)
			buf_printf(out, "%d", (int)ev);
		buf_add(out, v.p, v.n);
	}
}

/* Frames give the same whole and in pieces. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_BUF whole = BUF_INIT(1 << 20), pieces = BUF_INIT(1 << 20);
	struct ws_decoder a = {0}, b = {0};
	size_t i, n, cut = size ? data[0] % 13 + 1 : 1;

	read_all(&a, (struct str){(const char *)data, size}, &whole);
	for (i = 0; i < size; i += n) {
		n = size - i < cut ? size - i : cut;
		read_all(&b, (struct str){(const char *)data + i, n}, &pieces);
	}
	assert(a.is_over == b.is_over && a.close_code == b.close_code);
	assert(whole.len == pieces.len && memcmp(whole.p, pieces.p, whole.len) == 0);
	return 0;
}
