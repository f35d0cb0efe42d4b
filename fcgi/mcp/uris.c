/* SPDX-License-Identifier: MIT */
#include "mcp/uris.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "base/str.h"
#include "mcp/jsonrpc.h"
#include "mcp/urls.h"
#include "wire/idenc.h"

static const char scheme[] = "sandbox://runs/";
static const char latest[] = "sandbox://latest/";
enum { URI_MAX = 64 * 1024 };

static int hex_of(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c | 0x20) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Percent-decoding; a component is judged by who opens it. */
static bool decode(const char *p, const char *end, char *dst, size_t size)
{
	size_t n = 0;

	for (; p < end; p++) {
		int hi = -1, lo = -1;

		if (*p == '%') {
			hi = end - p > 2 ? hex_of(p[1]) : -1;
			lo = hi < 0 ? -1 : hex_of(p[2]);
			if (lo < 0 || (hi == 0 && lo == 0))
				return false;
			p += 2;
		}
		if (n + 1 >= size)
			return false;
		dst[n++] = (char)(hi < 0 ? *p : hi * 16 + lo);
	}
	dst[n] = '\0';
	return n > 0;
}

static bool parse_output(const char *rest, struct uri *u)
{
	const char *slash = strchr(rest, '/');
	struct err ignored = ERR_INIT;
	char number[16];

	if (!slash || slash - rest >= (long)sizeof(number))
		return false;
	memcpy(number, rest, (size_t)(slash - rest));
	number[slash - rest] = '\0';
	u->kind = URI_OUTPUT;
	u->stream = strcmp(slash, "/stderr") == 0 ? STORE_STDERR : STORE_STDOUT;
	return num_parse(number, 0, INT32_MAX, &u->command, &ignored) == 0 &&
	       (u->stream == STORE_STDERR || strcmp(slash, "/stdout") == 0);
}

static bool parse_latest(const char *text, struct uri *ret)
{
	const char *p = text + strlen(latest), *slash = strchr(p, '/');
	const char *end = text + strlen(text);

	ret->kind = URI_LATEST;
	return slash && str_starts(slash, "/artifacts/") &&
	       decode(p, slash, ret->identifier, sizeof(ret->identifier)) &&
	       decode(slash + strlen("/artifacts/"), end, ret->path, sizeof(ret->path));
}

bool uri_parse(const char *text, struct uri *ret)
{
	const char *p = text + strlen(scheme);

	*ret = (struct uri){.kind = URI_RUN};
	if (str_starts(text, latest))
		return parse_latest(text, ret);
	if (strncmp(text, scheme, strlen(scheme)) != 0 ||
	    strnlen(p, ID_RUN_LEN) < ID_RUN_LEN)
		return false;
	memcpy(ret->run_id, p, ID_RUN_LEN);
	p += ID_RUN_LEN;
	if (!idenc_is_run_id(ret->run_id))
		return false;
	if (!*p)
		return true;
	if (str_starts(p, "/commands/"))
		return parse_output(p + strlen("/commands/"), ret);
	ret->kind = URI_ARTIFACT;
	return str_starts(p, "/artifacts/") &&
	       decode(p + strlen("/artifacts/"), p + strlen(p), ret->path,
		      sizeof(ret->path));
}

json_t *uri_run(const char *run_id)
{
	AUTO_BUF b = BUF_INIT(URI_MAX);

	buf_printf(&b, "%s%s", scheme, run_id);
	return rpc_text(b.p, b.len);
}

json_t *uri_artifact(const char *run_id, const char *path)
{
	AUTO_BUF b = BUF_INIT(URI_MAX);

	buf_printf(&b, "%s%s/artifacts/", scheme, run_id);
	url_add_path(&b, path);
	return rpc_text(b.p, b.len);
}

const char *mime_of(const char *path)
{
	static const struct {
		const char *ending, *mime;
	} table[] = {
		{".txt", "text/plain"},        {".log", "text/plain"},
		{".md", "text/markdown"},      {".csv", "text/csv"},
		{".html", "text/html"},        {".css", "text/css"},
		{".js", "text/javascript"},    {".py", "text/x-python"},
		{".json", "application/json"}, {".xml", "application/xml"},
		{".pdf", "application/pdf"},   {".zip", "application/zip"},
		{".gz", "application/gzip"},   {".tar", "application/x-tar"},
		{".svg", "image/svg+xml"},     {".png", "image/png"},
		{".jpg", "image/jpeg"},        {".jpeg", "image/jpeg"},
		{".gif", "image/gif"},         {".webp", "image/webp"},
		{".mp4", "video/mp4"},         {".mp3", "audio/mpeg"},
		{".wav", "audio/wav"},
	};
	const char *slash = strrchr(path, '/');
	const char *dot = strrchr(slash ? slash : path, '.');

	for (size_t i = 0; dot && i < sizeof(table) / sizeof(table[0]); i++)
		if (strcasecmp(dot, table[i].ending) == 0)
			return table[i].mime;
	return "application/octet-stream";
}

/* What model APIs take as pictures, and a wrong type makes them refuse all. */
const char *mime_of_image(const char *p, size_t n)
{
	if (n >= 8 && memcmp(p, "\x89PNG\r\n\x1a\n", 8) == 0)
		return "image/png";
	if (n >= 3 && memcmp(p, "\xff\xd8\xff", 3) == 0)
		return "image/jpeg";
	if (n >= 6 && (memcmp(p, "GIF87a", 6) == 0 || memcmp(p, "GIF89a", 6) == 0))
		return "image/gif";
	if (n >= 12 && memcmp(p, "RIFF", 4) == 0 && memcmp(p + 8, "WEBP", 4) == 0)
		return "image/webp";
	return NULL;
}
