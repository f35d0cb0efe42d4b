/* SPDX-License-Identifier: MIT */
#include "edge/routes.h"

#include <string.h>

#include "edge/query.h"
#include "wire/idenc.h"
#include "wire/runspec.h"

/*
 * Artifacts whose identifier is no folder's name as it is: nginx cannot compute
 * the encoding, so the edge checks and says where the file lies, and nginx sends
 * it from there (X-Accel-Redirect to an internal location). Plain identifiers do
 * not come here in the shipped configuration, and work the same if they do.
 */
enum {
	IDENTIFIER_BYTES = IDENTIFIER_MAX * 4 + 1,
	COMPONENT_MAX = 1024,
	LINES_MAX = 8192
};

/* Each component decodes to one that is a name: not "", ".", ".." or with a '/'. */
static bool is_clean_path(struct str path)
{
	char name[COMPONENT_MAX];
	struct str part;

	while (str_cut(&path, '/', &part)) {
		if (url_decode(part, false, name, sizeof(name)) < 0 || name[0] == '\0' ||
		    strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		    strchr(name, '/'))
			return false;
	}
	return true;
}

/* The bytes that may stand in a header as they came. */
static bool is_header_safe(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~')
			return false;
	return true;
}

static int locate(const struct http *h, struct buf *lines, struct err *e)
{
	char identifier[IDENTIFIER_BYTES], folder[IDENC_SIZE], run[64];
	struct str path = h->capture[2];

	if (url_decode(h->capture[0], false, identifier, sizeof(identifier)) < 0 ||
	    identifier_check(identifier, e) < 0 ||
	    url_decode(h->capture[1], false, run, sizeof(run)) < 0 ||
	    (strcmp(run, "latest") != 0 && !idenc_is_run_id(run)) ||
	    !is_clean_path(path) || !is_header_safe(path))
		return err_set(e, ERR_NOT_FOUND, "no such artifact");
	idenc(folder, identifier);
	buf_printf(lines, "X-Accel-Redirect: /_mcp_artifacts/%s/%s/%s/%.*s\r\n",
		   STORE_TENANT_DEFAULT, folder, run, (int)path.n, path.p);
	if (!buf_ok(lines))
		return err_set(e, ERR_NOT_FOUND, "no such artifact");
	return 0;
}

void route_artifact(struct worker *w, struct http *h)
{
	AUTO_BUF lines = BUF_INIT(LINES_MAX);
	struct reply r = {.status = 200};
	struct err e = ERR_INIT;

	(void)w;
	if (locate(h, &lines, &e) < 0) {
		e.kind = ERR_NOT_FOUND;
		http_fail(h, &e);
		return;
	}
	r.headers = lines.p;
	http_answer(h, &r);
}
