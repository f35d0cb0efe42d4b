/* SPDX-License-Identifier: MIT */
#include "mcp/content.h"

#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/utf8.h"
#include "mcp/uris.h"

bool content_is_text(const char *p, size_t n)
{
	return utf8_is_valid(p, n) && !memchr(p, '\0', n);
}

static json_t *base64_of(const char *p, size_t n)
{
	AUTO_BUF b = BUF_INIT(n * 2 + 8);

	base64_add(&b, p, n);
	return json_stringn(b.p, b.len);
}

json_t *content_text(const char *p, size_t n)
{
	return json_must(json_pack("{s:s, s:o}", "type", "text", "text", rpc_text(p, n)));
}

json_t *content_image(const char *mime, const char *p, size_t n)
{
	return json_must(json_pack("{s:s, s:o, s:s}", "type", "image", "data",
				   base64_of(p, n), "mimeType", mime));
}

json_t *content_of_bytes(json_t *uri, const char *mime, const char *p, size_t n)
{
	bool text = content_is_text(p, n);

	/* No program says what a name without an ending is: the bytes do. */
	if (text && strcmp(mime, "application/octet-stream") == 0)
		mime = "text/plain";
	return json_must(json_pack("{s:o, s:s, s:o}", "uri", uri, "mimeType", mime,
				   text ? "text" : "blob",
				   text ? json_stringn(p, n) : base64_of(p, n)));
}

/* True: it is in the content as a picture. */
static bool add_image(const struct mcp_call *c, const struct mcp_reads *r,
		      const struct mcp_artifact *a, json_t *content)
{
	AUTO_BUF b = BUF_INIT(a->max);
	struct err ignored = ERR_INIT; /* then it is a link like any other */
	const char *mime;
	int64_t size;

	(void)c;
	if (r->artifact(r->arg, a, &b, &size, &ignored) != 1)
		return false;
	mime = mime_of_image(b.p, b.len);
	if (mime)
		json_array_append_new(content, content_image(mime, b.p, b.len));
	return mime != NULL;
}

static void add_link(const struct mcp_call *c, const char *path, json_int_t size,
		     json_t *content)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	json_array_append_new(
		content,
		json_must(json_pack("{s:s, s:o, s:o, s:s, s:I}", "type", "resource_link",
				    "uri", uri_artifact(c->run_id, path), "name",
				    rpc_text(name, strlen(name)), "mimeType",
				    mime_of(path), "size", size)));
}

void content_add_artifacts(const struct mcp_call *c, const struct mcp_reads *r,
			   const json_t *run, json_t *content)
{
	const struct result_limits *lim = &c->server->results;
	/* Older clients refuse a kind of content that they do not know. */
	bool links = strcmp(c->version->name, "2025-06-18") >= 0;
	int64_t nimages = 0, nlinks = 0;
	const json_t *a;
	size_t i;

	json_array_foreach(json_object_get(run, "artifacts"), i, a) {
		const char *path = json_get_string(a, "path");
		json_int_t size = json_integer_value(json_object_get(a, "size"));
		const struct mcp_artifact which = {
			.tenant = c->tenant,
			.identifier = json_get_string(run, "identifier"),
			.run_id = c->run_id,
			.path = path,
			.max = (size_t)size,
		};

		if (!path || !which.identifier)
			continue;
		if (nimages < lim->images && size > 0 && size <= lim->image_bytes &&
		    strncmp(mime_of(path), "image/", 6) == 0 &&
		    add_image(c, r, &which, content))
			nimages++;
		if (links && nlinks++ < lim->links)
			add_link(c, path, size, content);
	}
}
