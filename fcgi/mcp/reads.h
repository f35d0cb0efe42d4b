/* SPDX-License-Identifier: MIT */
#ifndef MCP_READS_H
#define MCP_READS_H

#include "conf/conf.h"
#include "mcp/mcp.h"
#include "store/reader.h"

/*
 * struct mcp_reads over a connection to the store. One per thread, as the
 * reader is; both parameters are borrowed for as long as it is used.
 */
struct mcp_store_reads {
	struct mcp_reads reads; /* pass &x.reads */
	struct store_reader *reader;
	const char *mcp_path;
	char *artifacts_dir; /* owned */
};

void mcp_store_reads_init(struct mcp_store_reads *x, struct store_reader *reader,
			  const struct conf *c);
void mcp_store_reads_release(struct mcp_store_reads *x);

#endif
