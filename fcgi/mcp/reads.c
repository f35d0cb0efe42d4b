/* SPDX-License-Identifier: MIT */
#include "mcp/reads.h"

#include <stdio.h>

#include "mcp/runobj.h"

static int found(const struct err *e)
{
	return e->kind == ERR_NOT_FOUND ? 0 : -1;
}

static int read_session(void *arg, const char *tenant, const char *session_id,
			char ret_version[16], struct err *e)
{
	struct mcp_store_reads *x = arg;
	AUTO_STORE_SESSION row = {0};

	if (store_read_session(x->reader, tenant, session_id, &row, e) < 0)
		return found(e);
	snprintf(ret_version, 16, "%s", row.protocol_version ? row.protocol_version : "");
	return 1;
}

static int read_run(void *arg, const char *tenant, const char *run_id,
		    const char *base_url, json_t **ret, struct err *e)
{
	struct mcp_store_reads *x = arg;
	struct runobj_opts o = runobj_opts_model(base_url, x->mcp_path);

	if (runobj_read(x->reader, tenant, run_id, &o, ret, e) < 0)
		return found(e);
	return 1;
}

void mcp_store_reads_init(struct mcp_store_reads *x, struct store_reader *reader,
			  const char *mcp_path)
{
	*x = (struct mcp_store_reads){
		.reads = {.arg = x, .session = read_session, .run = read_run},
		.reader = reader,
		.mcp_path = mcp_path,
	};
}
