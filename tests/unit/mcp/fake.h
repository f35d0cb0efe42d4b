/* SPDX-License-Identifier: MIT */
#ifndef TESTS_MCP_FAKE_H
#define TESTS_MCP_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/auto.h"
#include "base/json.h"
#include "conf/conf.h"
#include "mcp/mcp.h"

/*
 * The other ends of the MCP layer for its tests: a store with the sessions and
 * the run that a test wants, and helpers to send a request and look at a reply.
 */
#define SESSION_NEW "11111111111111111111111111111111" /* 2025-11-25 */
#define SESSION_MID "22222222222222222222222222222222" /* 2025-03-26 */
#define SESSION_BAD "33333333333333333333333333333333" /* the store fails */

struct fake_store {
	int session_reads;
	bool closed;     /* no session is alive any more */
	json_t *run;     /* borrowed; NULL: no such run */
	bool run_broken; /* reading a run fails */
};

static inline int fake_session(void *arg, const char *tenant, const char *id,
			       char version[16], struct err *e)
{
	struct fake_store *f = arg;

	f->session_reads++;
	if (strcmp(id, SESSION_BAD) == 0)
		return err_set(e, ERR_STORE, "disk I/O error in secret.db");
	if (f->closed || strcmp(tenant, "default") != 0)
		return 0;
	if (strcmp(id, SESSION_NEW) == 0)
		snprintf(version, 16, "2025-11-25");
	else if (strcmp(id, SESSION_MID) == 0)
		snprintf(version, 16, "2025-03-26");
	else
		return 0;
	return 1;
}

static inline int fake_run(void *arg, const char *tenant, const char *run_id,
			   const char *base_url, json_t **ret, struct err *e)
{
	struct fake_store *f = arg;

	(void)tenant;
	(void)run_id;
	(void)base_url;
	if (f->run_broken)
		return err_set(e, ERR_STORE, "disk I/O error in secret.db");
	if (!f->run)
		return 0;
	*ret = json_incref(f->run);
	return 1;
}

static inline struct mcp_reads fake_reads(struct fake_store *f)
{
	return (struct mcp_reads){.arg = f, .session = fake_session, .run = fake_run};
}

/* What conf_load() gives without any variable, as far as this layer looks. */
static inline struct conf fake_conf(void)
{
	static char empty[] = "", path[] = "/mcp", bridge[] = "bridge",
		    deny[] = "rm -rf /$";

	return (struct conf){
		.public_url = empty,
		.mcp_path = path,
		.network_mode = bridge,
		.default_ttl_s = 3600,
		.max_ttl_s = 604800,
		.default_cpu_cores = 1,
		.default_memory_mb = 1024,
		.default_pids = 256,
		.default_command_timeout_ms = 120000,
		.max_commands = 100,
		.default_await_timeout_ms = 30000,
		.denylist_enabled = true,
		.denylist_patterns = deny,
		.tool_desc_overrides_enabled = true,
	};
}

static inline struct mcp_server *fake_server(void)
{
	struct conf c = fake_conf();
	struct mcp_server *s = NULL;
	struct err e = ERR_INIT;

	if (mcp_server_new(&c, &s, &e) < 0)
		fail_msg("%s", e.msg);
	return s;
}

static inline struct mcp_http fake_http(const char *session, const char *body)
{
	return (struct mcp_http){
		.tenant = "default",
		.content_type = "application/json",
		.session_id = session,
		.base_url = "http://h:8080",
		.body = body,
		.body_len = strlen(body),
	};
}

static inline json_t *parsed(const char *p, size_t n)
{
	struct err e = ERR_INIT;
	json_t *v = NULL;

	if (json_parse(p, n, &v, &e) < 0)
		fail_msg("%s in %.*s", e.msg, (int)n, p);
	return v;
}

static inline json_t *reply_json(const struct mcp_call *c)
{
	struct mcp_reply r = mcp_call_reply(c);

	return parsed(r.body, r.body_len);
}

/* The runner's answer to what the call has just sent. Takes over body. */
static inline enum mcp_next answer(struct mcp_call *c, struct mcp_reads *r,
				   enum edgemsg_type type, json_t *body)
{
	struct edgemsg m = {.type = type, .id = 1, .body = body};
	enum mcp_next next;

	assert_non_null(body);
	next = mcp_call_answer(c, r, &m);
	json_decref(body);
	return next;
}

static inline const char *str_at(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	if (!s)
		fail_msg("no string %s", key);
	return s;
}

static inline const json_t *at(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (!v)
		fail_msg("no %s", key);
	return v;
}

#endif
