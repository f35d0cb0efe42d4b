/* SPDX-License-Identifier: MIT */
#ifndef MCP_TOOLS_H
#define MCP_TOOLS_H

#include "mcp/call.h"

/*
 * The tools: one row each with its words, its checks and what becomes of the
 * runner's answer. A tool's failure is a result with isError and words; only an
 * unknown tool or a malformed tools/call is a JSON-RPC error.
 */
enum tool_id {
	TOOL_RUN, /* these three as in struct conf */
	TOOL_DELETE,
	TOOL_RESTART,
	TOOL_GET,
	TOOL_CANCEL,
	TOOL_SANDBOXES,
	TOOL_WRITE,
	TOOL_READ,
	TOOL_FILES,
	TOOL_COUNT
};
enum { TOOL_DESCRIBED = TOOL_RESTART + 1 }; /* TOOL_DESC_ variables exist for these */

struct tool {
	const char *name;
	/* Asks the runner with this message; 0: begin() answers from the store. */
	enum edgemsg_type message;
	/* Checks c->args and notes in c what later steps need. */
	int (*check)(struct mcp_call *c, struct err *e);
	/* Adds what its message has beside tenant and args; NULL: nothing. */
	void (*fill)(const struct mcp_call *c, json_t *message);
	/* The runner said yes; may go on to MCP_AWAIT_RUN. */
	enum mcp_next (*accepted)(struct mcp_call *c, const struct mcp_reads *r,
				  const json_t *ok);
	enum mcp_next (*begin)(struct mcp_call *c, const struct mcp_reads *r);
	bool may_be_task; /* params.task of 2025-11-25 */
	bool destroys;    /* files are gone for good: CONFIRM_DELETE */
};

extern const struct tool tools[TOOL_COUNT];

/* Is the tool of that name offered (TOOLS)? */
bool tool_is_offered(const char *list, const char *name);

/* tools/call */
enum mcp_next tool_call(struct mcp_call *c, const struct mcp_reads *r);

/* A failure in words for the model; structured (NULL: none) must fit the schema. */
enum mcp_next tool_failed(struct mcp_call *c, const struct err *why,
			  const json_t *structured);

/* The result of a tool: words for the model, then `structured` (borrowed; NULL: none). */
json_t *tool_result(bool is_error, const char *words, const json_t *structured);

/* Answers with words for the model, then `structured` (borrowed; NULL: none). */
enum mcp_next tool_answer(struct mcp_call *c, bool is_error, const char *words,
			  const json_t *structured);

/* The same where the words say all: structured is not told again as text. */
enum mcp_next tool_answer_briefly(struct mcp_call *c, const char *words,
				  const json_t *structured);

#endif
