/* SPDX-License-Identifier: MIT */
#ifndef EDGE_RELAY_H
#define EDGE_RELAY_H

#include <jansson.h>

#include "edge/core.h"

/*
 * What other edges tell all edges through the runner (MSG_RELAYED), by kind:
 *
 *	frame   {"text"}                  for the session's stream (sstream.h)
 *	opened  {"stream"}                the session has a new stream (sstream.h)
 *	closed  {}                        the session ended (sstream.h)
 *	changed {}                        what is stored of it has (sstream.h)
 *	answer  {"message"}               to a question of ours (ticket.h)
 *	cancel  {"request_id","reason"}   its client takes a request back (ticket.h)
 *
 * The text of another edge is a stranger's: an edge may have been taken over. It
 * reaches nobody but the client of the session it names. Loop only.
 */
void relay_received(struct edge *edge, const json_t *body);

#endif
