/* SPDX-License-Identifier: MIT */
#ifndef EDGE_STATS_H
#define EDGE_STATS_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * The numbers of the edges, for /metrics. Any edge may be asked, so the numbers
 * of all of them live in one shared mapping: a memfd that the master made, so
 * counters survive an edge's restart and never run backwards. Each edge writes
 * its own slot; the text is the sum. The memfd is sealed in its size by who opens it
 * first; without one (tests) the mapping is private. Counting is lock-free; any thread.
 *
 * A hostile edge can falsify these numbers, nothing else: readers only add.
 */
enum stats_route {
	STATS_MCP,
	STATS_EVENTS,
	STATS_RUN,
	STATS_OUTPUT,
	STATS_ARTIFACT,
	STATS_METRICS,
	STATS_HEALTH,
	STATS_DEBUG,
	STATS_OTHER, /* no such route, or refused before one was chosen */
	STATS_ROUTE_COUNT
};

struct stats;

/* slot: the edge's index; fd <= 0: a private mapping. */
int stats_open(int fd, int slot, struct stats **ret, struct err *e);
void stats_close(struct stats *s);

void stats_count(struct stats *s, enum stats_route route, int http_status);

enum stats_gauge { STATS_PARKED, STATS_STREAMS, STATS_AWAITING, STATS_GAUGE_COUNT };
void stats_gauge_add(struct stats *s, enum stats_gauge g, int64_t n);

/* The sums over all edges as Prometheus text. */
void stats_print(const struct stats *s, struct buf *b);

#endif
