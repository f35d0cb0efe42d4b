/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_METRICS_H
#define RUNNER_METRICS_H

#include <stdint.h>

#include "base/buf.h"
#include "store/types.h"

/*
 * What the runner counts, as Prometheus text. Loop only. The seed's names, plus
 * the queue, the start of sandboxes, the store and the artifacts. Gauges that
 * are read off the state are handed in when the text is made.
 */
enum { METRICS_BUCKETS = 17 };
extern const double metrics_bounds[METRICS_BUCKETS]; /* s; Prometheus' own, and finer */

struct histogram {
	uint64_t count;
	double sum;
	uint64_t le[METRICS_BUCKETS];
};

struct metrics {
	uint64_t runs[STORE_RUN_STATE_COUNT];
	uint64_t commands[STORE_COMMAND_STATUS_COUNT];
	uint64_t warm_hits, warm_misses, warm_failures;
	uint64_t reaper_deletes, artifact_bytes, artifact_files, store_failures;
	struct histogram command_duration, queue_time, sandbox_start, store_commit;
};

struct metrics_gauges {
	uint64_t active_sandboxes, active_runs, queued_runs;
	uint64_t warm_size, warm_ready;
	uint64_t wal_bytes;
};

void metrics_observe_us(struct histogram *h, int64_t us);
void metrics_text(const struct metrics *m, const struct metrics_gauges *g, struct buf *b);

#endif
