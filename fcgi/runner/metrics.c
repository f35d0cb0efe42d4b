/* SPDX-License-Identifier: MIT */
#include "runner/metrics.h"

#include <inttypes.h>

const double metrics_bounds[METRICS_BUCKETS] = {
	0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
	0.05,    0.1,    0.25,    0.5,    1,     2.5,    5,     10};

void metrics_observe_us(struct histogram *h, int64_t us)
{
	double s = us > 0 ? (double)us / 1e6 : 0; /* the wall clock was set back */

	h->count++;
	h->sum += s;
	for (size_t i = 0; i < METRICS_BUCKETS; i++)
		if (s <= metrics_bounds[i])
			h->le[i]++;
}

static void head(struct buf *b, const char *name, const char *type, const char *help)
{
	buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void single(struct buf *b, const char *name, const char *type, const char *help,
		   uint64_t value)
{
	head(b, name, type, help);
	buf_printf(b, "%s %" PRIu64 "\n", name, value);
}

static void histogram(struct buf *b, const char *name, const char *help,
		      const struct histogram *h)
{
	head(b, name, "histogram", help);
	for (size_t i = 0; i < METRICS_BUCKETS; i++)
		buf_printf(b, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name,
			   metrics_bounds[i], h->le[i]);
	buf_printf(b, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, h->count);
	buf_printf(b, "%s_sum %.6f\n%s_count %" PRIu64 "\n", name, h->sum, name,
		   h->count);
}

static void by_status(const struct metrics *m, struct buf *b)
{
	head(b, "mcp_runs_total", "counter", "Runs that ended, by how.");
	for (int i = STORE_RUN_COMPLETED; i < STORE_RUN_STATE_COUNT; i++)
		buf_printf(b, "mcp_runs_total{status=\"%s\"} %" PRIu64 "\n",
			   store_run_state_name((enum store_run_state)i), m->runs[i]);
	head(b, "mcp_commands_total", "counter", "Commands that ended, by how.");
	for (int i = STORE_COMMAND_COMPLETED; i < STORE_COMMAND_STATUS_COUNT; i++)
		buf_printf(b, "mcp_commands_total{status=\"%s\"} %" PRIu64 "\n",
			   store_command_status_name((enum store_command_status)i),
			   m->commands[i]);
}

static void warm_pool(const struct metrics *m, const struct metrics_gauges *g,
		      struct buf *b)
{
	single(b, "mcp_warm_pool_size", "gauge", "WARM_POOL_SIZE.", g->warm_size);
	single(b, "mcp_warm_pool_ready", "gauge", "Sandboxes that stand ready.",
	       g->warm_ready);
	single(b, "mcp_warm_pool_hits_total", "counter",
	       "New identifiers that were given one.", m->warm_hits);
	single(b, "mcp_warm_pool_misses_total", "counter",
	       "New identifiers that found none ready.", m->warm_misses);
	single(b, "mcp_warm_pool_failures_total", "counter",
	       "Sandboxes of the pool that were not made, or given up.",
	       m->warm_failures);
}

void metrics_text(const struct metrics *m, const struct metrics_gauges *g, struct buf *b)
{
	single(b, "mcp_active_sandboxes", "gauge", "Sandboxes that are there.",
	       g->active_sandboxes);
	single(b, "mcp_active_runs", "gauge", "Runs that are running.", g->active_runs);
	single(b, "mcp_queued_runs", "gauge", "Runs that wait.", g->queued_runs);
	by_status(m, b);
	warm_pool(m, g, b);
	single(b, "mcp_reaper_deletes_total", "counter", "Sandboxes deleted as expired.",
	       m->reaper_deletes);
	histogram(b, "mcp_command_duration_seconds", "From start to end of a command.",
		  &m->command_duration);
	histogram(b, "mcp_run_queue_seconds", "From acceptance to start of a run.",
		  &m->queue_time);
	histogram(b, "mcp_sandbox_start_seconds", "Creating a sandbox.",
		  &m->sandbox_start);
	histogram(b, "mcp_store_commit_seconds", "One commit of the runner.",
		  &m->store_commit);
	single(b, "mcp_store_failures_total", "counter", "Commits that failed.",
	       m->store_failures);
	single(b, "mcp_store_wal_bytes", "gauge", "Size of the write-ahead log.",
	       g->wal_bytes);
	single(b, "mcp_artifact_bytes_total", "counter", "Artifact bytes copied out.",
	       m->artifact_bytes);
	single(b, "mcp_artifact_files_total", "counter", "Artifact files copied out.",
	       m->artifact_files);
}
