/* SPDX-License-Identifier: MIT */
#ifndef MCP_SESSION_H
#define MCP_SESSION_H

#include <jansson.h>

#include "base/err.h"
#include "mcp/mcp.h"
#include "mcp/version.h"

/*
 * The sessions this process has lately seen to be alive, so that a request
 * costs no SQL. The truth is in the store: an entry is believed for a second,
 * then asked for again, so a session that another process closed is refused at
 * most a second later. Bounded; what falls out is only looked up again. Also
 * remembers which were used, for the runner's idle clock. Any thread.
 */
struct sessions;

/* What a request must know of its session. */
struct session_info {
	const struct mcp_version *version;
	unsigned can;  /* ASK_ELICITATION and others (mcp/ask.h) */
	int log_level; /* -1: no log messages (mcp/logmsg.h) */
};

struct sessions *sessions_new(void);
void sessions_free(struct sessions *s);

/* 1: alive, *ret tells; 0: no such session of this tenant; -1: store failed. */
int sessions_check(struct sessions *s, const struct mcp_reads *r, const char *tenant,
		   const char *id, struct session_info *ret, struct err *e);
void sessions_add(struct sessions *s, const char *tenant, const char *id,
		  const struct session_info *info);
void sessions_forget(struct sessions *s, const char *id);
/* What is known may have changed: it is asked for at the next use. */
void sessions_doubt(struct sessions *s, const char *id);

/* An array of the ids used since the last call, or NULL. The caller owns it. */
json_t *sessions_drain(struct sessions *s);

#endif
