/* SPDX-License-Identifier: MIT */
#ifndef EDGE_PROBE_H
#define EDGE_PROBE_H

#include "edge/core.h"
#include "edge/http.h"

/*
 * /readyz and /metrics: what the edge knows, and what the runner says to
 * MSG_STATUS within PROBE_PATIENCE_MS. A runner that is silent is itself the
 * news: /readyz answers 503 and names it, /metrics has mcp_up{part="runner"} 0.
 * /metrics is the runner's text (all that is counted once for the server) and
 * the sums of the edges (edge/stats.h), so every edge gives the same answer.
 */
enum { PROBE_PATIENCE_MS = 3000 };

enum probe_kind { PROBE_READY, PROBE_METRICS };

/* Accepting thread: answers h, from here or from the loop. */
void probe_answer(struct edge *edge, struct http *h, enum probe_kind kind);

#endif
