/* SPDX-License-Identifier: MIT */
#ifndef EDGE_CORE_H
#define EDGE_CORE_H

#include <uv.h>

#include "conf/conf.h"
#include "mcp/mcp.h"
#include "mcp/reads.h"
#include "store/reader.h"

/*
 * What one edge process is made of. Built by edge.c before the first thread
 * starts and taken apart after the last one ended. `conf`, `mcp`, `stats`, `lot`
 * (its any-thread calls) and calls_ask() are for all threads; the rest belongs to
 * the loop.
 */
struct edge {
	const struct conf *conf;
	const char *db_path;
	struct mcp_server *mcp;
	struct stats *stats;
	struct lot *lot;
	struct calls *calls;

	uv_loop_t loop;
	struct store_reader *reader;
	struct mcp_store_reads reads;
	struct watches *watches;
	struct keepalive *keepalive;
	struct errands *errands;
	struct sstreams *sstreams;
	struct tickets *tickets;
	bool is_stopping;
};

#endif
