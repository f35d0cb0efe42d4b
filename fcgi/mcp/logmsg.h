/* SPDX-License-Identifier: MIT */
#ifndef MCP_LOGMSG_H
#define MCP_LOGMSG_H

#include "mcp/call.h"

/*
 * Log messages to the client (notifications/message): what an awaited run does, event
 * by event, on the stream that is its answer. Only for clients that want them: in the
 * legacy era after logging/setLevel (kept with the session), in the modern one by
 * io.modelcontextprotocol/logLevel of the request. Bounded: what comes faster than
 * the stream is fed is left out, and told in a number.
 */
enum mcp_next logging_set_level(struct mcp_call *c, const struct mcp_reads *r);

/* A level by its name: 0 (debug) to 7 (emergency); -1: none of them. */
int logmsg_level(const char *name);

/* Takes the event into c->log if it is worth its level. True: it was. */
bool logmsg_note(struct mcp_call *c, const struct store_event *ev);

#endif
