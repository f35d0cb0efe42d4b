/* SPDX-License-Identifier: MIT */
#ifndef STORE_ROWS_H
#define STORE_ROWS_H

#include "store/db.h"
#include "store/types.h"

/*
 * Rows into structs, for both halves. Each ROWS_* list of columns belongs to the
 * function of its name; the statement selects exactly it. The functions step the
 * statement to its end and fill `ret` only when all went well.
 */
#define ROWS_SANDBOX                                                                     \
	"tenant, identifier, name, backend, container_id, image, policy_fingerprint, "   \
	"state, created_at, expires_at, last_used_at, ttl_s, error, agent_boot"
#define ROWS_WARM                                                                        \
	"name, backend, container_id, image, policy_fingerprint, made_with, host_boot, " \
	"created_at"
#define ROWS_RUN                                                                         \
	"run_id, tenant, identifier, sandbox_name, sandbox_container_id, state, "        \
	"created_at, started_at, ended_at, error, artifacts_error, cancel_requested, "   \
	"continue_on_error, lock_sandbox, as_user = 'root', ttl_s, "                     \
	"background_of"
#define ROWS_EVENT                                                                       \
	"event_id, seq, run_id, type, at, command_index, out_offset, truncated, data"

int rows_sandboxes(struct db *d, sqlite3_stmt *st, struct store_sandboxes *ret,
		   struct err *e);
int rows_warms(struct db *d, sqlite3_stmt *st, struct store_warms *ret, struct err *e);
int rows_runs(struct db *d, sqlite3_stmt *st, struct store_runs *ret, struct err *e);

/* Stops at the bounds, at least one event is taken; the statement may be left early. */
struct rows_bound {
	size_t max_events, max_bytes;
	bool (*wanted)(void *arg, const char *run_id,
		       enum store_event_type type); /* NULL: all */
	void *arg;
};
int rows_events(struct db *d, sqlite3_stmt *st, const struct rows_bound *b,
		struct store_events *ret, int64_t *ret_last_id, struct err *e);

/* Commands and artifacts of a run whose run_id is set, into its memory. */
int rows_run_commands(struct db *d, struct store_run *run, struct err *e);
int rows_run_artifacts(struct db *d, struct store_run *run, struct err *e);
/* Number of its newest event; 0: none. */
int rows_run_last_seq(struct db *d, const char *run_id, int64_t *ret, struct err *e);

/* What is stored of a command's stream by its events; 0 and false: nothing. */
struct rows_stream {
	int64_t stored;
	bool truncated;
};
int rows_stream(struct db *d, const char *run_id, int64_t command,
		enum store_stream stream, struct rows_stream *ret, struct err *e);

/* The newest ended run of the identifier that has artifacts, copied into a. */
int rows_latest_artifacts(struct db *d, const char *tenant, const char *identifier,
			  struct store_arena *a, const char **ret_run_id, struct err *e);

/* Moves a result out of its AUTO local, which is empty then; returns 0. */
int rows_hand_over(void *from, void *to, size_t n);

/* A column as a string in a; NULL for NULL. */
const char *rows_text(struct store_arena *a, sqlite3_stmt *st, int column);

#endif
