/* SPDX-License-Identifier: MIT */
#include "mcp/runpage.h"

#include "base/auto.h"
#include "base/json.h"
#include "mcp/cursor.h"

/* One more was read than is shown: it tells that there are more. */
static void cut_page(json_t *runs, size_t max, json_t *result)
{
	const json_t *last = json_array_get(runs, max - 1);

	if (json_array_size(runs) <= max)
		return;
	json_object_set_new(result, "nextCursor",
			    cursor_make(json_get_string(last, "run_id")));
	json_array_remove(runs, max);
}

int runpage_read(struct mcp_call *c, const struct mcp_reads *r, size_t max,
		 json_t *result, json_t **ret)
{
	AUTO_FREE char *after = NULL;
	AUTO_JSON *runs = NULL;
	struct err e = ERR_INIT;

	if (cursor_take(json_object_get(c->msg.params, "cursor"), &after, &e) < 0) {
		call_error(c, RPC_BAD_PARAMS, "params.cursor is none of ours");
		return -1;
	}
	if (r->runs(r->arg, c->tenant, after, max + 1, &runs, &e) < 0) {
		if (e.kind == ERR_NOT_FOUND)
			call_error(c, RPC_BAD_PARAMS,
				   "params.cursor leads nowhere any more; begin anew");
		else
			call_failure(c, &e);
		return -1;
	}
	cut_page(runs, max, result);
	*ret = MOVE(runs);
	return 0;
}
