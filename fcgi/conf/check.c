/* SPDX-License-Identifier: MIT */
#include "conf/check.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/patterns.h"
#include "base/str.h"

enum { RUN_DIR_MAX = 64 };

static const char alnum[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/* True if s has only letters, digits and the extra characters. */
static bool only(struct str s, const char *extra)
{
	size_t i;

	for (i = 0; i < s.n; i++)
		if (!s.p[i] || (!strchr(alnum, s.p[i]) && !strchr(extra, s.p[i])))
			return false;
	return true;
}

static bool has_control(const char *v)
{
	for (; *v; v++)
		if ((unsigned char)*v < 0x20 || *v == 0x7f)
			return true;
	return false;
}

/* Another route, or below one. */
static bool has_another_use(const char *path)
{
	static const char *const taken[] = {"/artifacts",     "/metrics", "/healthz",
					    "/readyz",        "/debug",   "/_mcp_said",
					    "/_mcp_artifacts"};
	size_t i, n;

	for (i = 0; i < sizeof taken / sizeof *taken; i++) {
		n = strlen(taken[i]);
		if (str_starts(path, taken[i]) && (!path[n] || path[n] == '/'))
			return true;
	}
	return false;
}

int check_mcp_path(const char *v, struct err *e)
{
	size_t n = strlen(v);

	if (v[0] != '/' || n < 2 || n > 128 || v[n - 1] == '/' ||
	    !only(str_of(v), "/-_.~") || strstr(v, "//") || strstr(v, "/."))
		return err_set(e, ERR_INVALID,
			       "must be a path like /mcp: letters, digits and - _ . ~ / "
			       "with no / at its end");
	if (has_another_use(v))
		return err_set(e, ERR_INVALID, "is a path that has another use");
	return 0;
}

/* scheme://host[:port] and then, where allowed, a path. */
static bool is_http_url(struct str s, bool path_allowed)
{
	struct str https = {"https://", 8};
	size_t skip = 0;

	if (s.n > 8 && memcmp(s.p, https.p, 8) == 0)
		skip = 8;
	else if (s.n > 7 && memcmp(s.p, "http://", 7) == 0)
		skip = 7;
	if (!skip || s.n > 1024)
		return false;
	s.p += skip;
	s.n -= skip;
	return s.p[0] != '/' && only(s, path_allowed ? ".-_:[]/~%" : ".-_:[]");
}

int check_public_url(const char *v, struct err *e)
{
	if (*v && (!is_http_url(str_of(v), true) || str_ends(v, "/")))
		return err_set(
			e, ERR_INVALID,
			"must be a url like https://sandbox.example.org, with no / "
			"at its end");
	return 0;
}

int check_address(const char *v, struct err *e)
{
	unsigned char any[16];

	if (inet_pton(AF_INET, v, any) != 1 && inet_pton(AF_INET6, v, any) != 1)
		return err_set(
			e, ERR_INVALID,
			"must be an IPv4 or IPv6 address, such as 127.0.0.1 or ::1");
	return 0;
}

int check_user(const char *v, struct err *e)
{
	if (!*v || strlen(v) > 32 || !only(str_of(v), "-_") || v[0] == '-')
		return err_set(e, ERR_INVALID, "must be the name of a system user");
	if (strcmp(v, "root") == 0)
		return err_set(e, ERR_INVALID,
			       "must not be root: the edges read what strangers send");
	return 0;
}

int check_hosts(const char *v, struct err *e)
{
	struct str rest = str_of(v), item;

	while (str_cut(&rest, ',', &item))
		if (!only(str_trim(item), ".-_:[]*"))
			return err_set(e, ERR_INVALID,
				       "must be a comma list of host names, each with a "
				       "port or without");
	return 0;
}

int check_origins(const char *v, struct err *e)
{
	struct str rest = str_of(v), item;

	while (*v && str_cut(&rest, ',', &item)) {
		item = str_trim(item);
		if (!str_eq(item, "*") && !is_http_url(item, false))
			return err_set(e, ERR_INVALID,
				       "must be a comma list of origins like "
				       "https://app.example.org, or *");
	}
	return 0;
}

int check_image(const char *v, struct err *e)
{
	if (!*v || strlen(v) > 255 || !only(str_of(v), "._-/:@") ||
	    strchr("._-/:@", v[0]) || strstr(v, "//") || strstr(v, ".."))
		return err_set(
			e, ERR_INVALID,
			"must be the name of an image: 1 to 255 letters, digits and "
			". _ - / : @ beginning with a letter or digit");
	return 0;
}

int check_docker_host(const char *v, struct err *e)
{
	if (*v && (strlen(v) > 512 || has_control(v) || !strstr(v, "://")))
		return err_set(e, ERR_INVALID,
			       "must be unix:///path/of/a/socket, tcp://host:port, "
			       "http://host:port or https://host:port");
	return 0;
}

int check_plain_path(const char *v, struct err *e)
{
	if (strlen(v) > 512 || has_control(v))
		return err_set(e, ERR_INVALID,
			       "must be a path of at most 512 bytes without control "
			       "characters");
	return 0;
}

int check_run_dir(const char *v, struct err *e)
{
	/* Socket names of up to 40 bytes follow, and sun_path holds 107. */
	if (*v && (v[0] != '/' || strlen(v) > RUN_DIR_MAX || has_control(v)))
		return err_set(e, ERR_INVALID,
			       "must be an absolute path of at most %d bytes, because "
			       "the names of sockets must be short",
			       RUN_DIR_MAX);
	return 0;
}

const char *const conf_tool_names[] = {
	"run_sandbox",    "get_run",    "cancel_run", "list_sandboxes", "restart_sandbox",
	"delete_sandbox", "write_file", "read_file",  "list_files",     NULL};

int check_tools(const char *v, struct err *e)
{
	struct str rest = str_of(v), word;
	size_t i;

	while (*v && str_cut(&rest, ',', &word)) {
		word = str_trim(word);
		for (i = 0; conf_tool_names[i] && !str_eq(word, conf_tool_names[i]); i++)
			;
		if (!conf_tool_names[i])
			return err_set(
				e, ERR_INVALID,
				"must name tools: run_sandbox, get_run, cancel_run, "
				"list_sandboxes, restart_sandbox, delete_sandbox, "
				"write_file, read_file, list_files");
	}
	return 0;
}

int check_runtime(const char *v, struct err *e)
{
	const char *slash = strrchr(v, '/');
	const char *base = slash ? slash + 1 : v;

	if (*v && (!only(str_of(base), "._-") || !*base || (slash && v[0] != '/')))
		return err_set(e, ERR_INVALID,
			       "must be runc, crun, runsc or the absolute path of one");
	return 0;
}

int check_mirror(const char *v, struct err *e)
{
	struct str s = str_of(v);

	if (*v && !is_http_url(s, true) && !str_starts(v, "file:///"))
		return err_set(e, ERR_INVALID,
			       "must be the http, https or file url of a Debian mirror");
	return 0;
}

int check_suite(const char *v, struct err *e)
{
	if (strlen(v) > 32 || !only(str_of(v), "-."))
		return err_set(e, ERR_INVALID,
			       "must be the name of a release, such as bookworm");
	return 0;
}

int check_patterns(const char *v, struct err *e)
{
	struct patterns *p;

	if (patterns_compile(v, &p, e) < 0)
		return -1;
	patterns_free(p);
	return 0;
}

int check_network(const char *v, struct err *e)
{
	if (strcmp(v, "host") == 0)
		return err_set(e, ERR_INVALID,
			       "is refused: a sandbox on the host's network reaches the "
			       "host's own services; use bridge or none");
	if (!*v || strlen(v) > 64 || !only(str_of(v), "._-") || strchr("._-", v[0]))
		return err_set(e, ERR_INVALID,
			       "must be bridge, none, or the name of a network: letters, "
			       "digits and . _ -");
	return 0;
}

static int check_local(const struct conf *c, struct err *e)
{
	if (strcmp(c->network_mode, "bridge") != 0 &&
	    strcmp(c->network_mode, "none") != 0)
		return err_set(
			e, ERR_INVALID,
			"SANDBOX_NETWORK_MODE=%s: the local backend has bridge and "
			"none",
			c->network_mode);
	if (strpbrk(c->image, "/:@"))
		return err_set(
			e, ERR_INVALID,
			"SANDBOX_IMAGE=%s: an image of the local backend is the name "
			"of a folder, without / : @",
			c->image);
	return 0;
}

static int check_kubernetes(const struct conf *c, struct err *e)
{
	if (strcmp(c->network_mode, "bridge") != 0 &&
	    strcmp(c->network_mode, "none") != 0)
		return err_set(
			e, ERR_INVALID,
			"SANDBOX_NETWORK_MODE=%s: the kubernetes backend has bridge "
			"and none",
			c->network_mode);
	return 0;
}

int check_whole(const struct conf *c, struct err *e)
{
	if (c->default_ttl_s > c->max_ttl_s)
		return err_set(e, ERR_INVALID,
			       "DEFAULT_TTL_SECONDS=%" PRId64
			       ": must not be above MAX_TTL_SECONDS=%" PRId64,
			       c->default_ttl_s, c->max_ttl_s);
	if (strcmp(c->data_dir, "/") == 0)
		return err_set(e, ERR_INVALID, "DATA_DIR=/: must be a folder of its own");
	if (strcmp(c->backend, "local") == 0)
		return check_local(c, e);
	if (strcmp(c->backend, "kubernetes") == 0)
		return check_kubernetes(c, e);
	return 0;
}
