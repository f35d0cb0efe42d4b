/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/migrate.h"
#include "store/reader.h"
#include "store/writer.h"
#include "tests/bench/bench.h"

/*
 * The store alone: rates of commits and rows, and what a whole run costs in it.
 *   bench_store [FOLDER]      a new folder is made in it; default /tmp
 * One line of JSON per figure.
 */
static struct err err = ERR_INIT;

static void need(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "bench: %s\n", err.msg);
		exit(1);
	}
}

static void commit(struct store *s)
{
	struct store_commit_info info;

	need(store_commit(s, &info, &err));
}

static void new_run(struct store *s, const char *id)
{
	struct store_command c = {.argv_json = "[\"true\"]",
				  .cwd = "/workspace",
				  .env_json = "{}",
				  .timeout_ms = 120000};
	struct store_run r = {.run_id = id,
			      .tenant = STORE_TENANT_DEFAULT,
			      .identifier = "bench",
			      .created_at = clock_now_ms(),
			      .ttl_s = 3600,
			      .commands = &c,
			      .ncommands = 1};
	bool existed;

	need(store_run_insert(s, &r, &existed, &err));
}

/* `n` bytes more of the run's output. */
static void output(struct store *s, const char *id, size_t n, int64_t *offset)
{
	static char data[1 << 20];
	struct store_output o = {.run_id = id,
				 .at = clock_now_ms(),
				 .offset = *offset,
				 .data = data,
				 .n = n};

	if (data[0] == 0)
		memset(data, 'x', sizeof data);
	need(store_output_add(s, &o, offset, &err));
}

static void report(const char *what, int64_t n, int64_t began_us)
{
	int64_t us = bench_now_us(CLOCK_MONOTONIC) - began_us;

	printf("{\"what\":\"%s\",\"n\":%lld,\"per_s\":%.0f}\n", what, (long long)n,
	       1e6 * (double)n / (double)us);
	fflush(stdout);
}

static void batches(struct store *s, const char *what, int rows, int total, size_t bytes)
{
	int64_t began = bench_now_us(CLOCK_MONOTONIC), offset = 0;

	new_run(s, what);
	for (int i = 0; i < total; i++) {
		output(s, what, bytes, &offset);
		if ((i + 1) % rows == 0)
			commit(s);
	}
	commit(s);
	report(what, total, began);
}

/* All rows of an awaited one-command run, in the two commits it takes. */
static void whole_runs(struct store *s, int total)
{
	int64_t began = bench_now_us(CLOCK_MONOTONIC), now = clock_now_ms();

	for (int i = 0; i < total; i++) {
		struct store_command done = {.status = STORE_COMMAND_COMPLETED,
					     .started_at = now,
					     .ended_at = now + 1};
		char id[40];

		snprintf(id, sizeof id, "run_%032d", i);
		new_run(s, id);
		need(store_run_start(s, id, "sbx", "c", now, &err));
		need(store_event_add(
			s,
			&(struct store_new_event){.run_id = id,
						  .type = STORE_EVENT_RUN_STARTED,
						  .at = now,
						  .command_index = -1,
						  .json = "{}"},
			&err));
		need(store_command_start(s, id, 0, now, &err));
		need(store_event_add(
			s,
			&(struct store_new_event){.run_id = id,
						  .type = STORE_EVENT_COMMAND_STARTED,
						  .at = now,
						  .command_index = 0,
						  .json = "{}"},
			&err));
		commit(s);
		need(store_command_finish(s, id, &done, &err));
		need(store_event_add(
			s,
			&(struct store_new_event){.run_id = id,
						  .type = STORE_EVENT_COMMAND_FINISHED,
						  .at = now,
						  .command_index = 0,
						  .json = "{}"},
			&err));
		need(store_run_finish(s, id, STORE_RUN_COMPLETED, now, NULL, &err));
		need(store_event_add(
			s,
			&(struct store_new_event){.run_id = id,
						  .type = STORE_EVENT_RUN_FINISHED,
						  .at = now,
						  .command_index = -1,
						  .json = "{}"},
			&err));
		commit(s);
	}
	report("whole_runs_of_two_commits", total, began);
}

static void reads(struct store_reader *r, int total)
{
	int64_t began = bench_now_us(CLOCK_MONOTONIC);

	for (int i = 0; i < total; i++) {
		AUTO_STORE_RUN run = {0};
		char id[40];

		snprintf(id, sizeof id, "run_%032d", i);
		need(store_read_run(r, STORE_TENANT_DEFAULT, id, &run, &err));
	}
	report("run_objects_read", total, began);
}

int main(int argc, char **argv)
{
	struct store_migrate_opts o = {.group = (gid_t)-1};
	char folder[PATH_MAX], path[PATH_MAX + 16];
	struct store_reader *r = NULL;
	struct store *s = NULL;

	snprintf(folder, sizeof folder, "%s/bench_store.XXXXXX",
		 argc > 1 ? argv[1] : "/tmp");
	if (!mkdtemp(folder))
		return perror(folder), 1;
	snprintf(path, sizeof path, "%s/db/x.sqlite", folder);
	need(store_migrate(path, &o, &err));
	need(store_open(path, &(struct store_opts){0}, &s, &err));
	need(store_reader_open(path, &r, &err));
	batches(s, "commits_of_1_row", 1, 100000, 40);
	batches(s, "rows_in_batches_of_100", 100, 400000, 40);
	batches(s, "kept_output_MB_in_64_KB_rows", 16, 16 * 512, 65536);
	whole_runs(s, 20000);
	reads(r, 20000);
	struct store_stats st;
	store_stats(s, &st);
	printf("{\"what\":\"checkpoints\",\"n\":%lld,\"blocked\":%lld,\"wal_bytes\":%lld}"
	       "\n",
	       (long long)st.checkpoints, (long long)st.blocked_checkpoints,
	       (long long)st.wal_bytes);
	store_reader_close(r);
	store_close(s);
	return 0;
}
