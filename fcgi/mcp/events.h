/* SPDX-License-Identifier: MIT */
#ifndef MCP_EVENTS_H
#define MCP_EVENTS_H

#include "base/buf.h"
#include "store/types.h"

/*
 * A stored run event as the SSE frame that clients see: id (the sequence number
 * within the run), event (the seed's name), data (one JSON object on one line).
 * Pure; any thread.
 */
void event_add_frame(struct buf *b, const struct store_event *ev);

/* Only the JSON object. */
void event_add_data(struct buf *b, const struct store_event *ev);

#endif
