/* SPDX-License-Identifier: MIT */
#ifndef MCP_RUNOBJ_H
#define MCP_RUNOBJ_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "store/reader.h"

/*
 * A run as one JSON object, with the seed's names (docs/tools.md lists them),
 * for GET /mcp/runs/{id} and for `final` of run_sandbox. A command's `status` is
 * one of the seed's four words; its `state` is what really happened. Output is
 * text: bytes that are no UTF-8 show as U+FFFD, and what does not fit the bounds
 * is left out in the middle, said, and named by *_url. Thread: the reader's.
 */
struct runobj_opts {
	const char *base_url; /* "https://host:port" or "" */
	const char *mcp_path;
	size_t stream_max;    /* bytes of output of one stream */
	size_t total_max;     /* of all streams of the run together */
	size_t echo_max;      /* of each command's shell, argv and env; 0: all */
	size_t artifacts_max; /* files listed; 0: all */
	bool terse;           /* urls only where something is left out */
};

/* What the edge serves at GET /mcp/runs/{id}, and what a model gets. */
struct runobj_opts runobj_opts_full(const char *base_url, const char *mcp_path);
struct runobj_opts runobj_opts_model(const char *base_url, const char *mcp_path);

/* Where the output comes from: store_read_output() with its reader as arg. */
typedef int runobj_output_fn(void *arg, const struct store_output_query *q,
			     struct buf *out, size_t *ret_n, struct err *e);

int runobj_build(const struct store_run *run, runobj_output_fn *output, void *arg,
		 const struct runobj_opts *o, json_t **ret, struct err *e);

/* Reads the run and builds it. ERR_NOT_FOUND: no such run of this tenant. */
int runobj_read(struct store_reader *r, const char *tenant, const char *run_id,
		const struct runobj_opts *o, json_t **ret, struct err *e);

#endif
