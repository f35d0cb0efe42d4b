/* SPDX-License-Identifier: MIT */
#include "mcp/urls.h"

#include <string.h>

#include "base/buf.h"
#include "mcp/jsonrpc.h"
#include "wire/idenc.h"

enum { URL_MAX = 64 * 1024 };

static json_t *taken(const struct buf *b)
{
	return rpc_text(b->p, b->len);
}

json_t *url_events(const struct url *u, const char *run_id)
{
	AUTO_BUF b = BUF_INIT(URL_MAX);

	buf_printf(&b, "%s%s/events?run_id=%s", u->base, u->mcp_path, run_id);
	return taken(&b);
}

json_t *url_status(const struct url *u, const char *run_id)
{
	AUTO_BUF b = BUF_INIT(URL_MAX);

	buf_printf(&b, "%s%s/runs/%s", u->base, u->mcp_path, run_id);
	return taken(&b);
}

json_t *url_output(const struct url *u, const char *run_id, int index, const char *stream)
{
	AUTO_BUF b = BUF_INIT(URL_MAX);

	buf_printf(&b, "%s%s/runs/%s/commands/%d/%s", u->base, u->mcp_path, run_id, index,
		   stream);
	return taken(&b);
}

/* RFC 3986 unreserved characters and the slash pass; every other byte is %XX. */
void url_add_path(struct buf *b, const char *path)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~/";

	for (; *path; path++) {
		if (strchr(plain, *path))
			buf_add(b, path, 1);
		else
			buf_printf(b, "%%%02X", (unsigned)(unsigned char)*path);
	}
}

json_t *url_artifact(const struct url *u, const char *identifier, const char *run_id,
		     const char *path)
{
	AUTO_BUF b = BUF_INIT(URL_MAX);
	char folder[IDENC_SIZE];

	idenc(folder, identifier);
	buf_printf(&b, "%s/artifacts/%s/%s/", u->base, folder, run_id);
	url_add_path(&b, path);
	return taken(&b);
}
