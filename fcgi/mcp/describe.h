/* SPDX-License-Identifier: MIT */
#ifndef MCP_DESCRIBE_H
#define MCP_DESCRIBE_H

#include <jansson.h>

#include "base/err.h"
#include "conf/conf.h"

/*
 * What a model reads about us: the tools with their schemas, and the server's
 * instructions, with the limits that are in force. Made once; the whole of
 * tools/list stays under 2000 tokens, because every conversation pays for it.
 */

/*
 * The result of tools/list; tasks: tell which may be called as a task, as 2025-11-25
 * wants it. Fails when an operator's description is no UTF-8.
 */
int describe_tools(const struct conf *c, bool tasks, json_t **ret, struct err *e);

/* Marks every tool's `identifier` in such a result as one that a header repeats. */
void describe_mirrors(json_t *list);

/* For initialize. The caller frees. */
char *describe_instructions(const struct conf *c);

#endif
