/* SPDX-License-Identifier: MIT */
#ifndef TESTS_MCP_STUB_H
#define TESTS_MCP_STUB_H

#include <stdio.h>
#include <string.h>

#include "conf/conf.h"
#include "mcp/mcp.h"

/* A store with the sessions and the run that a test or a fuzzer wants. */
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
		.await_answer_max_ms = 50000,
		.await_task_after_ms = 5000,
		.max_run_age_s = 604800,
		.denylist_enabled = true,
		.denylist_patterns = deny,
		.tool_desc_overrides_enabled = true,
	};
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

#endif
