/* SPDX-License-Identifier: MIT */
#include "edge/origin.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

enum { HOST_MAX = 255, PARAM_NAME_MAX = 64, PARAM_NAMES_MAX = 32 };

static const char host_set[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			       "0123456789.-_:[]";

/* The name of "name:port" into dst; false: not a host at all. */
static bool host_name(const char *host, char dst[static HOST_MAX + 1])
{
	size_t n = strlen(host), name;

	if (n == 0 || n > HOST_MAX || strspn(host, host_set) != n)
		return false;
	if (host[0] == '[')
		name = strcspn(host, "]") + 1;
	else
		name = strcspn(host, ":");
	if (name > n || (host[name] != '\0' && host[name] != ':'))
		return false;
	memcpy(dst, host, name);
	dst[name] = '\0';
	return name > 0;
}

static bool is_loopback(const char *name)
{
	return strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0 ||
	       (strncmp(name, "127.", 4) == 0 &&
		strspn(name, "0123456789.") == strlen(name));
}

/* A word of a comma list equal to `want` but for case. */
static bool list_has(const char *list, const char *want)
{
	struct str rest = str_of(list), word;

	while (str_cut(&rest, ',', &word)) {
		word = str_trim(word);
		if (word.n == strlen(want) && word.n > 0 &&
		    strncasecmp(word.p, want, word.n) == 0)
			return true;
	}
	return false;
}

/* What follows "scheme://" up to the path; NULL: no such thing. */
static const char *authority(const char *url, char dst[static HOST_MAX + 1])
{
	const char *p = strstr(url, "://");
	size_t n;

	if (!p)
		return NULL;
	p += 3;
	n = strcspn(p, "/?#");
	if (n == 0 || n > HOST_MAX)
		return NULL;
	memcpy(dst, p, n);
	dst[n] = '\0';
	return dst;
}

static bool is_public_host(const struct conf *c, const char *name)
{
	char url_host[HOST_MAX + 1], url_name[HOST_MAX + 1];

	return c->public_url && authority(c->public_url, url_host) &&
	       host_name(url_host, url_name) && strcasecmp(url_name, name) == 0;
}

bool host_is_allowed(const struct conf *c, const char *host)
{
	const char *list = c->allowed_hosts ? c->allowed_hosts : "";
	char name[HOST_MAX + 1];

	if (!host || list_has(list, "*"))
		return true;
	return host_name(host, name) && (is_loopback(name) || list_has(list, name) ||
					 list_has(list, host) || is_public_host(c, name));
}

static bool origin_is_listed(const struct conf *c, const char *origin)
{
	const char *list = c->cors_allow_origins ? c->cors_allow_origins : "";

	return list_has(list, "*") || list_has(list, origin);
}

bool origin_is_allowed(const struct conf *c, const char *origin)
{
	char host[HOST_MAX + 1];

	if (!origin || origin_is_listed(c, origin))
		return true;
	return authority(origin, host) && host_is_allowed(c, host);
}

/* An origin that may stand in a header: visible ASCII only. */
static bool is_header_safe(const char *s)
{
	for (; *s; s++)
		if (*s <= ' ' || *s > '~')
			return false;
	return true;
}

void cors_add_headers(const struct conf *c, const char *origin, struct buf *b)
{
	const char *list = c->cors_allow_origins ? c->cors_allow_origins : "";
	bool all = list_has(list, "*");

	if (*list && !all)
		buf_puts(b, "Vary: Origin\r\n");
	if (!origin || !is_header_safe(origin) || !origin_is_listed(c, origin))
		return;
	buf_printf(b,
		   "Access-Control-Allow-Origin: %s\r\n"
		   "Access-Control-Expose-Headers: Mcp-Session-Id, WWW-Authenticate, "
		   "Retry-After\r\n",
		   all ? "*" : origin);
}

static bool is_param_name(struct str name)
{
	static const char prefix[] = "mcp-param-";
	static const char token[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789!#$%&'*+-.^_`|~"; /* RFC 9110 5.6.2 */
	size_t n = sizeof(prefix) - 1;

	if (name.n <= n || name.n > PARAM_NAME_MAX || strncasecmp(name.p, prefix, n) != 0)
		return false;
	for (size_t i = 0; i < name.n; i++)
		if (!memchr(token, name.p[i], sizeof(token) - 1))
			return false;
	return true;
}

static void add_params(const char *wanted, struct buf *b)
{
	struct str rest = str_of(wanted ? wanted : ""), name;
	int left = PARAM_NAMES_MAX;

	while (left > 0 && str_cut(&rest, ',', &name)) {
		name = str_trim(name);
		if (!is_param_name(name))
			continue;
		buf_puts(b, ", ");
		buf_add(b, name.p, name.n);
		left--;
	}
}

void cors_add_preflight(const struct conf *c, const char *origin, const char *wanted,
			struct buf *b)
{
	if (!origin || !origin_is_listed(c, origin))
		return;
	buf_puts(b, "Access-Control-Allow-Methods: GET, POST, DELETE, OPTIONS\r\n"
		    "Access-Control-Allow-Headers: Content-Type, Accept, Authorization, "
		    "Mcp-Session-Id, Mcp-Protocol-Version, Last-Event-ID, Mcp-Method, "
		    "Mcp-Name");
	add_params(wanted, b);
	buf_puts(b, "\r\nAccess-Control-Max-Age: 86400\r\n");
}
