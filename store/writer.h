/* SPDX-License-Identifier: MIT */
#ifndef STORE_WRITER_H
#define STORE_WRITER_H

#include "base/err.h"
#include "store/types.h"

/*
 * The writing half. One `struct store` per server, owned by the runner and used
 * by its loop thread only (a checkpoint thread of its own lives inside).
 *
 * Transactions. The first write of a loop turn opens one, store_commit() at the
 * end of the turn makes all of it durable and visible to the readers at once.
 * Reads through this header see what is not committed yet.
 *
 * Failure. A call that fails with another kind than ERR_STORE changed nothing
 * and the transaction goes on. ERR_STORE (disk full, I/O, another process holds
 * the lock too long) means that the WHOLE transaction is lost: further writes
 * fail at once, until store_commit(), which then fails too and starts afresh. So
 * the runner may look at store_commit() alone: after -1 nothing since the last
 * good commit happened. It must then repeat: state rows from its own memory,
 * output from the agent, which keeps everything that was not acknowledged;
 * acknowledge, answer requests and ring doorbells only after a good commit.
 *
 * Every write may be repeated: inserts tell or ignore what is there, updates of
 * an ended run or command do nothing, output is taken exactly once by its offset.
 */
struct store;

struct store_opts {
	const char *synchronous; /* "NORMAL" or "FULL" */
	int64_t busy_ms;         /* wait for another writer at most; 0: 500 */
};

/* The file must have been migrated; ERR_STORE names the versions otherwise. */
int store_open(const char *path, const struct store_opts *o, struct store **ret,
	       struct err *e);
void store_close(struct store *s); /* an open transaction is undone; NULL is fine */

struct store_commit_info {
	int64_t newest_event_id; /* newest event of this commit; 0: it had none */
	int64_t duration_us;     /* how long this commit took */
	bool wrote;              /* false: there was nothing to do */
};
int store_commit(struct store *s, struct store_commit_info *ret, struct err *e);

/* For /metrics and /readyz; any thread. */
struct store_stats {
	int64_t commits, failed_commits;
	int64_t wal_bytes;                        /* at the last commit or checkpoint */
	int64_t checkpoints, blocked_checkpoints; /* blocked: a reader held it back */
};
void store_stats(struct store *s, struct store_stats *ret);

/* ---- sessions (sessions.c) */
/* One that is open takes the version and the client's name of the row. */
int store_session_open(struct store *s, const struct store_session *row, struct err *e);
int store_session_close(struct store *s, const char *tenant, const char *id,
			bool *ret_closed, struct err *e);
int store_sessions_touch(struct store *s, const char *const *ids, size_t n, int64_t at,
			 struct err *e);
/* Those not seen since then go, and of the others all but the `most` seen last. */
int store_sessions_expire(struct store *s, int64_t seen_before, int64_t most,
			  int64_t *ret_count, struct err *e);
/* level NULL: none is wanted. ERR_NOT_FOUND: no such session of the tenant. */
int store_session_log_level(struct store *s, const char *tenant, const char *id,
			    const char *level, struct err *e);
struct store_subscription {
	const char *tenant, *session_id, *uri;
};
/* ERR_LIMIT: the session has `max` already, or there is no such session. */
int store_subscribe(struct store *s, const struct store_subscription *v, int64_t max,
		    struct err *e);
int store_unsubscribe(struct store *s, const struct store_subscription *v, struct err *e);

/* ---- sandboxes (sandboxes.c); the key is (tenant, identifier) */
int store_sandbox_put(struct store *s, const struct store_sandbox *row, struct err *e);
/* error NULL clears it. ERR_NOT_FOUND: no such row. */
int store_sandbox_set_state(struct store *s, const char *tenant, const char *identifier,
			    enum store_sandbox_state state, const char *error,
			    struct err *e);
struct store_lease {
	const char *tenant, *identifier;
	int64_t expires_at, used_at;
};
/* Never shortens (an admin may have extended it); tells what holds now. */
int store_sandbox_extend(struct store *s, const struct store_lease *l,
			 int64_t *ret_expires_at, struct err *e);
int store_sandbox_remove(struct store *s, const char *tenant, const char *identifier,
			 struct err *e);
int store_sandboxes_all(struct store *s, struct store_sandboxes *ret, struct err *e);
/* expires_at <= at, whatever the state, the longest overdue first. */
int store_sandboxes_due(struct store *s, int64_t at, struct store_sandboxes *ret,
			struct err *e);

/* NULL and 0: there is no row. Else the name is the caller's. */
int store_sandbox_name(struct store *s, const char *tenant, const char *identifier,
		       char **ret, int64_t *ret_created_at, struct err *e);

/* ---- the warm pool (warm.c); the key is the name */
int store_warm_put(struct store *s, const struct store_warm *row, struct err *e);
int store_warm_remove(struct store *s, const char *name, struct err *e);
int store_warm_all(struct store *s, struct store_warms *ret, struct err *e);

/* ---- runs and commands (runs.c, commands.c) */
/*
 * The run as queued, with all its commands (as queued), in one step. A run_id
 * that exists is left alone and told; under another tenant: ERR_CONFLICT.
 */
int store_run_insert(struct store *s, const struct store_run *row, bool *ret_existed,
		     struct err *e);
/* The same question alone; opens the transaction. */
int store_run_is_known(struct store *s, const char *tenant, const char *run_id,
		       bool *ret_known, struct err *e);
int store_run_start(struct store *s, const char *run_id, const char *sandbox_name,
		    const char *container_id, int64_t at, struct err *e);
int store_run_finish(struct store *s, const char *run_id, enum store_run_state state,
		     int64_t at, const char *error, struct err *e);
int store_run_artifacts_error(struct store *s, const char *run_id, const char *text,
			      struct err *e);
int store_command_start(struct store *s, const char *run_id, int64_t index, int64_t at,
			struct err *e);
/*
 * Takes status, exit_code, signal, reason, oom, started_at (0: as it is),
 * ended_at, bytes, truncated, background_left, cpu_ms and max_rss_kb from c;
 * `stored` is the store's own knowledge.
 */
int store_command_finish(struct store *s, const char *run_id,
			 const struct store_command *c, struct err *e);

/* Unfinished runs, oldest first, with commands and what output is stored. */
int store_runs_unfinished(struct store *s, struct store_runs *ret, struct err *e);

/* ---- events (events.c); the store numbers them */
struct store_new_event {
	const char *run_id;
	enum store_event_type type; /* any but output */
	int64_t at;
	int64_t command_index; /* -1: none */
	const char *json;      /* one object, as the SSE shows it */
};
int store_event_add(struct store *s, const struct store_new_event *v, struct err *e);

struct store_output {
	const char *run_id;
	int64_t command_index;
	enum store_stream stream;
	int64_t at;
	int64_t offset; /* of data's first byte in the stream */
	const void *data;
	size_t n;
	bool truncated; /* the cap cuts here; may come with n = 0 */
};
/*
 * Exactly once: bytes below what is stored are skipped, so a repeat is harmless.
 * ret_stored: what is stored now, the offset to acknowledge after the commit. A
 * gap is ERR_INVALID. Do not split a UTF-8 character: a chunk that is valid
 * UTF-8 is stored as TEXT, another as BLOB.
 */
int store_output_add(struct store *s, const struct store_output *o, int64_t *ret_stored,
		     struct err *e);

/* ---- artifacts (artifacts.c) */
/*
 * The run's own ones (none may be STORE_BASE_SAME). base: the run whose copied files it
 * has besides, and which has no base; NULL: none.
 */
int store_artifacts_add(struct store *s, const char *run_id, const char *base,
			const struct store_artifact *v, size_t n, struct err *e);
/*
 * The newest ended run of the identifier that has artifacts: its run_id and
 * artifacts (nothing else is filled). ERR_NOT_FOUND: none.
 */
int store_artifacts_previous(struct store *s, const char *tenant, const char *identifier,
			     struct store_run *ret, struct err *e);

/* ---- what admins changed (admin.c) */
/*
 * Cheap when no other process wrote since the last call: *ret_changed is false
 * and nothing is filled. Else: the unfinished runs that have cancel_requested
 * (without commands), and all sandboxes as they are now; compare expires_at.
 */
struct store_changes {
	struct store_runs cancel;
	struct store_sandboxes sandboxes;
};
int store_changes_poll(struct store *s, bool *ret_changed, struct store_changes *ret,
		       struct err *e);
void store_changes_release(struct store_changes *c);

/* ---- retention (sweep.c) */
struct store_sweep_opts {
	int64_t now;
	int64_t max_runs;    /* keep the newest so many; 0: no bound */
	int64_t max_age_ms;  /* and none that ended longer ago; 0: no bound */
	int64_t budget_rows; /* log rows to delete in this call; 0: 1000 */
};
/*
 * One bounded step. Doomed runs are hidden from the readers at once, lose
 * their log in steps, and are then listed in ret (run_id, tenant, identifier):
 * remove their files, then call store_run_remove(). A crash in between is
 * harmless, they are listed again. *ret_more: call again in a later turn.
 */
int store_sweep(struct store *s, const struct store_sweep_opts *o, struct store_runs *ret,
		bool *ret_more, struct err *e);
int store_run_remove(struct store *s, const char *run_id, struct err *e);

/* ---- audit (audit.c); detail: JSON or NULL */
struct store_audit_row {
	int64_t at;
	const char *tenant, *actor, *action, *subject, *detail;
};
int store_audit(struct store *s, const struct store_audit_row *row, struct err *e);

static inline void store_closep(struct store **s)
{
	store_close(*s);
}
#define AUTO_STORE __attribute__((cleanup(store_closep))) struct store

#endif
