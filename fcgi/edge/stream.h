/* SPDX-License-Identifier: MIT */
#ifndef EDGE_STREAM_H
#define EDGE_STREAM_H

#include <stdint.h>

#include "edge/core.h"
#include "edge/http.h"

/*
 * The SSE streams of runs. A stream first replays its run's events after
 * `after_seq` from the store, in bounded batches as its socket drains, and then
 * lives on what the watches hand out. A reader too slow for that is back at
 * replaying: it costs one queue, whatever it misses. It ends after the run's
 * last event.
 */
/*
 * Accepting thread, with a place in the lot: h becomes a stream. The caller has
 * checked that the run is there.
 */
void stream_park(struct edge *edge, struct http *h, const char *run_id,
		 int64_t after_seq);

#endif
