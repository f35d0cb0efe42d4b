/* SPDX-License-Identifier: MIT */
#include "mcp/failure.h"

#include <stdio.h>

static const struct failure table[ERR_KIND_COUNT] = {
	[ERR_NONE] = {RPC_INTERNAL, 500, 0, false, "Report it to the operator."},
	[ERR_INVALID] = {RPC_BAD_PARAMS, 400, 0, true, ""},
	[ERR_DENIED] = {RPC_BAD_PARAMS, 403, 0, true, ""},
	[ERR_NOT_FOUND] = {RPC_BAD_PARAMS, 404, 0, true, ""},
	[ERR_CONFLICT] = {RPC_BAD_PARAMS, 409, 1, true, "Try again in a moment."},
	[ERR_LIMIT] = {RPC_INTERNAL, 429, 5, true,
		       "Wait for earlier work to end, then try again."},
	[ERR_BUSY] = {RPC_INTERNAL, 503, 1, true, "Try again in a few seconds."},
	[ERR_TIMEOUT] =
		{RPC_INTERNAL, 504, 5, true,
		 "It may have been done all the same: look first, then try again."},
	[ERR_BACKEND] = {RPC_INTERNAL, 502, 0, true,
			 "The sandbox could not be provided; trying the same again may "
			 "not help before the operator has looked at it."},
	[ERR_STORE] = {RPC_INTERNAL, 503, 5, false,
		       "Try again in a few seconds; if it stays, tell the operator."},
	[ERR_SYSTEM] = {RPC_INTERNAL, 500, 0, false,
			"If it stays, tell the operator; the server's log says more."},
};

const struct failure *failure_of(enum err_kind kind)
{
	return &table[kind < ERR_KIND_COUNT ? kind : ERR_SYSTEM];
}

const char *failure_text(const struct err *why, char *dst, size_t size)
{
	const struct failure *f = failure_of(why->kind);
	const char *text = f->may_show ? why->msg : "the server failed inside";

	snprintf(dst, size, "%s%s%s", text, f->advice[0] ? ". " : "", f->advice);
	return dst;
}
