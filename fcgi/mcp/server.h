/* SPDX-License-Identifier: MIT */
#ifndef MCP_SERVER_H
#define MCP_SERVER_H

#include "base/patterns.h"
#include "base/str.h"
#include "mcp/mcp.h"
#include "mcp/session.h"
#include "wire/runspec.h"

/*
 * What all calls of a process share, private to this folder. Made once; only
 * `sessions` changes afterwards and has its own lock.
 */
enum list_form { LIST_PLAIN, LIST_TASKS, LIST_MODERN, LIST_FORM_COUNT };

/* How many files a result shows. */
struct result_limits {
	int64_t images, image_bytes, links;
};

struct mcp_server {
	char *public_url; /* without a slash at its end; "" = by the request */
	char *mcp_path;
	char *instructions;
	struct str tools_list[LIST_FORM_COUNT]; /* the results of tools/list, as JSON */
	int64_t await_max_ms;  /* a plain answer comes by then at the latest */
	int64_t task_after_ms; /* a client that knows tasks is given one after that */
	int64_t run_kept_ms;   /* how long a run is kept; 0: not bounded by time */
	struct runspec_limits limits;
	struct result_limits results;
	char *tools;               /* TOOLS: the offered ones, a comma list; "" = all */
	struct patterns *denylist; /* NULL: off */
	bool confirm_delete;       /* the user is asked first (mcp/consent.h) */
	bool mirror_identifier;    /* in Mcp-Param-Identifier (mcp/modern.h) */
	struct sessions *sessions;
};

/* Which form of tools/list a version has. */
enum list_form server_list_form(const struct mcp_version *v);

#endif
