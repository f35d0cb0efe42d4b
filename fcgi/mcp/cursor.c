/* SPDX-License-Identifier: MIT */
#include "mcp/cursor.h"

#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/utf8.h"

enum { KEY_MAX = 8192 };

json_t *cursor_make(const char *key)
{
	AUTO_BUF b = BUF_INIT(2 * KEY_MAX);

	base64url_add(&b, key, strlen(key));
	return json_stringn(b.p, b.len);
}

int cursor_take(const json_t *v, char **ret, struct err *e)
{
	AUTO_BUF b = BUF_INIT(KEY_MAX);
	struct err ignored = ERR_INIT;
	const char *text = json_string_value(v);

	*ret = NULL;
	if (!v || json_is_null(v) || (text && !*text))
		return 0;
	if (!text || base64_decode(&b, text, strlen(text), &ignored) < 0 || !buf_ok(&b) ||
	    b.len == 0 || memchr(b.p, '\0', b.len) || !utf8_is_valid(b.p, b.len))
		return err_set(e, ERR_INVALID, "cursor is none of ours");
	*ret = xstrndup(b.p, b.len);
	return 0;
}
