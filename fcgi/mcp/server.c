/* SPDX-License-Identifier: MIT */
#include "mcp/server.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "mcp/describe.h"
#include "mcp/jsonrpc.h"
#include "mcp/methods.h"
#include "mcp/modern.h"

enum { ERROR_HEAD_MAX = 256 };

static char *without_slash(const char *url)
{
	size_t n = url ? strlen(url) : 0;

	while (n > 0 && url[n - 1] == '/')
		n--;
	return xstrndup(n ? url : "", n);
}

enum list_form server_list_form(const struct mcp_version *v)
{
	if (v->era == MCP_MODERN)
		return LIST_MODERN;
	return v->has_tasks ? LIST_TASKS : LIST_PLAIN;
}

/* The lists are the same for everyone, so they are made once. */
static int make_list(const struct conf *c, enum list_form form, struct str *ret,
		     struct err *e)
{
	AUTO_JSON *list = NULL;
	AUTO_JSON *whole = NULL;
	char *text;

	if (describe_tools(c, form == LIST_TASKS, &list, e) < 0)
		return -1;
	if (form == LIST_MODERN && c->mirror_identifier)
		describe_mirrors(list);
	whole = form == LIST_MODERN
			? modern_result(method_find(MCP_MODERN, "tools/list"), list)
			: json_incref(list);
	text = json_dumps(whole, JSON_COMPACT);
	*ret = (struct str){text, strlen(text)};
	return 0;
}

static void free_lists(struct str *lists)
{
	for (int i = 0; i < LIST_FORM_COUNT; i++)
		free((char *)lists[i].p);
}

static int make_lists(const struct conf *c, struct str *lists, struct err *e)
{
	for (int i = 0; i < LIST_FORM_COUNT; i++)
		if (make_list(c, (enum list_form)i, &lists[i], e) < 0)
			return -1;
	return 0;
}

int mcp_server_new(const struct conf *c, struct mcp_server **ret, struct err *e)
{
	struct str lists[LIST_FORM_COUNT] = {0};
	struct patterns *denylist = NULL;
	struct mcp_server *s;

	if (make_lists(c, lists, e) < 0) {
		free_lists(lists);
		return -1;
	}
	if (c->denylist_enabled &&
	    patterns_compile(c->denylist_patterns, &denylist, e) < 0) {
		free_lists(lists);
		return err_wrap(e, "DENYLIST_PATTERNS");
	}
	s = xcalloc(1, sizeof(*s));
	s->public_url = without_slash(c->public_url);
	s->mcp_path = xstrdup(c->mcp_path);
	s->instructions = describe_instructions(c);
	memcpy(s->tools_list, lists, sizeof(lists));
	s->await_max_ms = c->await_answer_max_ms;
	s->task_after_ms = c->await_task_after_ms;
	s->run_kept_ms = c->max_run_age_s * 1000;
	s->limits = runspec_limits_of(c);
	s->results = (struct result_limits){.images = c->result_images_max,
					    .image_bytes = c->result_image_max_bytes,
					    .links = c->result_links_max};
	s->tools = xstrdup(c->tools ? c->tools : "");
	s->denylist = denylist;
	s->confirm_delete = c->confirm_delete;
	s->mirror_identifier = c->mirror_identifier;
	s->sessions = sessions_new();
	*ret = s;
	return 0;
}

void mcp_server_free(struct mcp_server *s)
{
	if (!s)
		return;
	free(s->public_url);
	free(s->mcp_path);
	free(s->instructions);
	free(s->tools);
	free_lists(s->tools_list);
	patterns_free(s->denylist);
	sessions_free(s->sessions);
	free(s);
}

/* A host and port as a browser sends them; anything else is not put into urls. */
static bool host_ok(const char *host)
{
	static const char chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789.-_:[]";

	return host && *host && strspn(host, chars) == strlen(host);
}

void mcp_base_url(const struct mcp_server *s, const char *scheme, const char *host,
		  char *dst, size_t size)
{
	bool tls = scheme && strcmp(scheme, "https") == 0;
	int n;

	if (s->public_url[0])
		n = snprintf(dst, size, "%s", s->public_url);
	else if (host_ok(host))
		n = snprintf(dst, size, "%s://%s", tls ? "https" : "http", host);
	else
		n = snprintf(dst, size, "%s", "");
	if (n < 0 || (size_t)n >= size)
		dst[0] = '\0'; /* a path is better than a part of a url */
}

void mcp_server_doubt_session(struct mcp_server *s, const char *session_id)
{
	sessions_doubt(s->sessions, session_id);
}

json_t *mcp_server_drain_touched(struct mcp_server *s)
{
	json_t *ids = sessions_drain(s->sessions);

	return ids ? json_pack("{s:o}", "session_ids", ids) : NULL;
}

char *mcp_error_body(int code, const char *message)
{
	AUTO_BUF b = BUF_INIT(6 * strlen(message) + ERROR_HEAD_MAX);

	rpc_add_error(
		&b, NULL, RPC_OMIT_ID,
		&(struct rpc_error){.code = (enum rpc_code)code, .message = message});
	return xstrndup(b.p, b.len);
}
