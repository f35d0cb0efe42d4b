/* SPDX-License-Identifier: MIT */
#include "edge/routes.h"

#include <string.h>

#include "edge/origin.h"

enum { PATH_MAX_BYTES = 8192, ALLOW_MAX = 128, PREFLIGHT_MAX = 4096 };

struct route {
	bool is_below_mcp; /* the pattern follows MCP_PATH */
	const char *pattern;
	int methods;
	bool any_host; /* probes by address: tells nothing worth a rebinding */
	enum stats_route name;
	void (*handler)(struct worker *w, struct http *h);
};

static const struct route routes[] = {
	{true, "", HTTP_GET | HTTP_POST | HTTP_DELETE, false, STATS_MCP, route_mcp},
	{true, "/", HTTP_GET | HTTP_POST | HTTP_DELETE, false, STATS_MCP, route_mcp},
	{true, "/events", HTTP_GET, false, STATS_EVENTS, route_events},
	{true, "/runs/*", HTTP_GET | HTTP_HEAD, false, STATS_RUN, route_run},
	{true, "/runs/*/commands/*/*", HTTP_GET | HTTP_HEAD, false, STATS_OUTPUT,
	 route_output},
	{false, "/artifacts/*/*/**", HTTP_GET | HTTP_HEAD, false, STATS_ARTIFACT,
	 route_artifact},
	{false, "/metrics", HTTP_GET | HTTP_HEAD, false, STATS_METRICS, route_metrics},
	{false, "/readyz", HTTP_GET | HTTP_HEAD, true, STATS_HEALTH, route_ready},
	{false, "/healthz", HTTP_GET | HTTP_HEAD, true, STATS_HEALTH, route_health},
	{false, "/debug", HTTP_GET | HTTP_HEAD, false, STATS_DEBUG, route_debug},
};

static const struct {
	enum http_method method;
	const char *name;
} method_names[] = {
	{HTTP_GET, "GET"},       {HTTP_HEAD, "HEAD"},       {HTTP_POST, "POST"},
	{HTTP_DELETE, "DELETE"}, {HTTP_OPTIONS, "OPTIONS"},
};

bool route_match(struct str path, const char *pattern,
		 struct str capture[static HTTP_CAPTURES])
{
	struct str want = str_of(pattern), have, piece, part;
	int n = 0;

	have = path;
	while (str_cut(&want, '/', &piece)) {
		if (str_eq(piece, "**")) {
			capture[n] = have;
			return have.p && have.n > 0;
		}
		if (!str_cut(&have, '/', &part))
			return false;
		if (str_eq(piece, "*") && part.n > 0)
			capture[n++] = part;
		else if (part.n != piece.n || memcmp(part.p, piece.p, piece.n) != 0)
			return false;
	}
	return have.p == NULL;
}

/* What follows MCP_PATH in path; false: it is not below it. */
static bool below(struct str path, const char *mcp_path, struct str *ret)
{
	size_t n = strlen(mcp_path);

	if (path.n < n || memcmp(path.p, mcp_path, n) != 0)
		return false;
	*ret = (struct str){path.p + n, path.n - n};
	return true;
}

static const struct route *find(const struct conf *c, struct http *h)
{
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		struct str path = h->path;

		if (routes[i].is_below_mcp && !below(h->path, c->mcp_path, &path))
			continue;
		if (route_match(path, routes[i].pattern, h->capture))
			return &routes[i];
	}
	return NULL;
}

static void add_allow(struct buf *b, int methods)
{
	const char *between = "Allow: ";

	for (size_t i = 0; i < sizeof(method_names) / sizeof(method_names[0]); i++)
		if ((methods | HTTP_OPTIONS) & (int)method_names[i].method) {
			buf_printf(b, "%s%s", between, method_names[i].name);
			between = ", ";
		}
	buf_puts(b, "\r\n");
}

static void refuse_method(struct http *h, int methods)
{
	AUTO_BUF allow = BUF_INIT(ALLOW_MAX);
	struct err e = ERR_INIT;

	add_allow(&allow, methods);
	err_set(&e, ERR_INVALID, "the method is not possible here; see Allow");
	http_refuse(h, 405, &e, allow.p);
}

static void answer_preflight(const struct conf *c, const struct route *r, struct http *h)
{
	AUTO_BUF lines = BUF_INIT(PREFLIGHT_MAX);
	struct reply reply = {.status = 204};

	if (r)
		add_allow(&lines, r->methods);
	cors_add_preflight(c, h->origin,
			   http_param(h, "HTTP_ACCESS_CONTROL_REQUEST_HEADERS"), &lines);
	reply.headers = lines.p;
	http_answer(h, &reply);
}

/* True: refused, and answered. */
static bool refuse_stranger(const struct conf *c, struct http *h, bool any_host)
{
	struct err e = ERR_INIT;

	if (!any_host && !host_is_allowed(c, http_param(h, "HTTP_HOST")))
		err_set(&e, ERR_DENIED,
			"this Host is not served; its name must be in ALLOWED_HOSTS");
	else if (!origin_is_allowed(c, h->origin))
		err_set(&e, ERR_DENIED,
			"this Origin is not served; it must be in CORS_ALLOW_ORIGINS");
	else
		return false;
	http_fail(h, &e);
	return true;
}

void routes_serve(struct worker *w, struct http *h)
{
	const struct conf *c = w->edge->conf;
	const struct route *r = find(c, h);
	struct err e = ERR_INIT;

	h->route = r ? r->name : STATS_OTHER;
	if (refuse_stranger(c, h, r && r->any_host))
		return;
	cors_add_headers(c, h->origin, h->cors);
	if (h->method == HTTP_OPTIONS) {
		answer_preflight(c, r, h);
	} else if (!r) {
		err_set(&e, ERR_NOT_FOUND, "nothing is here; MCP is at %s", c->mcp_path);
		http_fail(h, &e);
	} else if (!(r->methods & (int)h->method)) {
		refuse_method(h, r->methods);
	} else {
		r->handler(w, h);
	}
}
