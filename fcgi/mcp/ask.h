/* SPDX-License-Identifier: MIT */
#ifndef MCP_ASK_H
#define MCP_ASK_H

#include "mcp/call.h"

/*
 * Asking the client in the middle of a request: its user (elicitation/create), its
 * model (sampling/createMessage), or for its roots (roots/list). One seam for both
 * eras; a handler asks and goes on in `then`:
 *
 *	legacy	requests on the stream that is the answer; the client POSTs its
 *		responses, to whichever edge (MSG_RELAY "answer"), within MCP_ASK_MS
 *	modern	a result `input_required`; the client sends the whole request again
 *		with inputResponses, and `then` is called at once
 *
 * Nothing is ever asked that the client did not declare. In the modern era a handler
 * with several rounds keeps what it must know in `state`, which travels through the
 * client: signed, for this request only (method and arguments), valid for
 * ASK_STATE_MS; one that is not is refused, and answers that come without it are none:
 * what needs consent gives a state. SPEC 2026-07-28, basic/patterns/mrtr.
 */
enum ask_kind { ASK_ELICITATION = 1, ASK_SAMPLING = 2, ASK_ROOTS = 4 };
enum { ASK_QUESTIONS_MAX = 8, ASK_STATE_MS = 10 * 60 * 1000 };

/* A comma list of "elicitation", "sampling", "roots" as a bit set, and what a
 * client's capabilities declare as such a list, into dst. */
unsigned ask_kinds_of(const char *list);
enum { ASK_LIST_SIZE = 32 };
void ask_list_of(const json_t *capabilities, char dst[static ASK_LIST_SIZE]);

/* What this client can be asked, on the way its answer takes. */
unsigned ask_client_can(const struct mcp_call *c);

struct ask {
	json_t *questions;   /* taken over: {key: {"method","params"}} */
	const json_t *state; /* an object; NULL: none */
	call_told_fn *then;
};
enum mcp_next ask_client(struct mcp_call *c, const struct mcp_reads *r,
			 const struct ask *a);

/*
 * Modern era, for handlers with several rounds: the state of the round that is
 * answered now. 1: *ret is the caller's; 0: it is the first round; -1: refused, and
 * answered.
 */
int ask_state(struct mcp_call *c, const struct mcp_reads *r, json_t **ret);

/* Answers that the client must declare that kind. */
enum mcp_next ask_demand(struct mcp_call *c, enum ask_kind kind);

#endif
