/* SPDX-License-Identifier: MIT */
#ifndef EDGE_WORKERS_H
#define EDGE_WORKERS_H

#include "edge/core.h"

/*
 * The accepting threads: each waits for a connection, reads the request, answers
 * what can be answered at once and parks the rest. Each has a connection to the
 * store of its own.
 *
 * The listener is non-blocking and every thread has an epoll of its own with it
 * (EPOLLEXCLUSIVE: a connection wakes one) and with the stop eventfd: a blocked
 * accept could not be ended, and processes that share a listener would be woken
 * all at once.
 */
struct workers;

struct worker {
	struct edge *edge;
	struct store_reader *reader;
	struct mcp_store_reads reads;
};

int workers_start(struct edge *edge, int listen_fd, int nthreads, struct workers **ret,
		  struct err *e);

/* Every request in hand is answered or parked when this returns. */
void workers_stop(struct workers *all);

#endif
