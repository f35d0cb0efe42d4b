/* SPDX-License-Identifier: MIT */
#ifndef STORE_TYPES_H
#define STORE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The rows of the store as both halves (writer.h, reader.h) speak of them.
 *
 * Strings are `const char *`: borrowed from the caller in a struct the caller
 * filled, owned by the struct's `mem` in one the store filled. What the store
 * filled is given back with the release function named after it; releasing a
 * zeroed struct is fine. NULL means "none" for every string but a key.
 * Times are milliseconds since the epoch, UTC; 0 means "not yet". Sizes are bytes.
 *
 * The store's own words (see *_name) are what a sysadmin reads in the tables.
 * Where the outside interface knows fewer of them (a command is queued,
 * completed, failed or timed_out there), the edge maps.
 */
struct store_arena; /* memory of one result; opaque */

#define STORE_TENANT_DEFAULT "default"

enum store_sandbox_state {
	STORE_SANDBOX_CREATING,
	STORE_SANDBOX_READY,
	STORE_SANDBOX_STOPPED, /* not running, files kept; started again when used */
	STORE_SANDBOX_DELETING,
	STORE_SANDBOX_FAILED,
	STORE_SANDBOX_STATE_COUNT
};

enum store_run_state {
	STORE_RUN_QUEUED,
	STORE_RUN_RUNNING,
	STORE_RUN_COMPLETED, /* from here on: ended */
	STORE_RUN_FAILED,
	STORE_RUN_CANCELED,
	STORE_RUN_STATE_COUNT
};

enum store_command_status {
	STORE_COMMAND_QUEUED,
	STORE_COMMAND_RUNNING,
	STORE_COMMAND_COMPLETED, /* exit code 0; from here on: ended */
	STORE_COMMAND_FAILED,
	STORE_COMMAND_TIMED_OUT,
	STORE_COMMAND_CANCELED,
	STORE_COMMAND_LOST, /* its sandbox vanished; nobody knows how it ended */
	STORE_COMMAND_STATUS_COUNT
};

/* Names are the seed's SSE event names. */
enum store_event_type {
	STORE_EVENT_SANDBOX_PROGRESS, /* ours: before run_started */
	STORE_EVENT_RUN_STARTED,
	STORE_EVENT_COMMAND_STARTED,
	STORE_EVENT_COMMAND_STDOUT,
	STORE_EVENT_COMMAND_STDERR,
	STORE_EVENT_COMMAND_FINISHED,
	STORE_EVENT_ARTIFACTS_EXTRACTED,
	STORE_EVENT_RUN_FINISHED, /* terminal: the last event of its run */
	STORE_EVENT_RUN_FAILED,   /* terminal */
	STORE_EVENT_TYPE_COUNT
};

enum store_stream { STORE_STDOUT, STORE_STDERR, STORE_STREAM_COUNT };

/* "ready", "timed_out", "command_stdout", ...; never NULL for a listed value. */
const char *store_sandbox_state_name(enum store_sandbox_state s);
const char *store_run_state_name(enum store_run_state s);
const char *store_command_status_name(enum store_command_status s);
const char *store_event_type_name(enum store_event_type t);

static inline bool store_run_ended(enum store_run_state s)
{
	return s >= STORE_RUN_COMPLETED;
}

static inline bool store_command_ended(enum store_command_status s)
{
	return s >= STORE_COMMAND_COMPLETED;
}

static inline bool store_event_is_output(enum store_event_type t)
{
	return t == STORE_EVENT_COMMAND_STDOUT || t == STORE_EVENT_COMMAND_STDERR;
}

static inline bool store_event_is_terminal(enum store_event_type t)
{
	return t == STORE_EVENT_RUN_FINISHED || t == STORE_EVENT_RUN_FAILED;
}

struct store_session {
	const char *id, *tenant, *protocol_version, *client_name, *client_version;
	const char *client_can; /* comma list: elicitation, sampling, roots */
	const char *log_level;  /* NULL: none is wanted */
	int64_t created_at, last_seen_at;
	struct store_arena *mem;
};

struct store_sandbox {
	const char *tenant, *identifier; /* the key */
	const char *name, *backend, *container_id, *image, *policy_fingerprint;
	enum store_sandbox_state state;
	int64_t created_at, expires_at, last_used_at;
	int64_t ttl_s;
	const char *error;      /* why it failed, a sentence */
	const char *agent_boot; /* hex; NULL: its agent has not been met */
};

/* One of the warm pool: ready, and nobody's. */
struct store_warm {
	const char *name; /* the key */
	const char *backend, *container_id, *image, *policy_fingerprint;
	const char *made_with, *host_boot; /* compared by the runner */
	int64_t created_at;
};

struct store_command {
	int64_t index;         /* 0, 1, 2, ... within the run */
	const char *shell;     /* exactly one of shell and argv_json */
	const char *argv_json; /* JSON array of strings */
	const char *cwd;
	const char *env_json;   /* JSON object of strings */
	const char *stdin_text; /* NULL: empty */
	int64_t timeout_ms;     /* 0: none */
	bool allow_failure;
	bool background; /* goes on as a run of its own */

	enum store_command_status status;
	int64_t exit_code;  /* -1: none */
	int64_t signal;     /* 0: none */
	const char *reason; /* a sentence: why it did not simply end */
	int oom;            /* 1 yes, 0 no, -1 unknown */
	int64_t started_at, ended_at;
	int64_t bytes[STORE_STREAM_COUNT];  /* all that was produced (so far, at least) */
	int64_t stored[STORE_STREAM_COUNT]; /* what is kept: the first so many */
	bool truncated[STORE_STREAM_COUNT];
	int64_t background_left; /* processes that live on */
	int64_t cpu_ms;          /* -1: unknown */
	int64_t max_rss_kb;      /* -1: unknown */
};

/*
 * A run that differs in few files from one before has only these in its folder and in
 * its rows; the others are a base's, a run that has all of its own.
 */
enum store_in_base {
	STORE_BASE_NONE,  /* the run's own */
	STORE_BASE_SAME,  /* the base's */
	STORE_BASE_OTHER, /* the run's own; the base has another one of this path */
};

struct store_artifact {
	const char *path; /* relative to /artifacts */
	int64_t size;
	int64_t mtime_ns; /* as the sandbox said */
	int64_t ctime_ns; /* 0: unknown; for the incremental copy */
	enum store_in_base in_base;
	const char *skipped_reason; /* not NULL: not copied, and why */
};

struct store_run {
	const char *run_id, *tenant, *identifier;
	const char *sandbox_name, *sandbox_container_id;
	enum store_run_state state;
	int64_t created_at, started_at, ended_at;
	const char *error, *artifacts_error;
	const char *background_of; /* the run whose background command it was, or NULL */
	bool cancel_requested;
	bool continue_on_error, lock_sandbox, as_root;
	int64_t ttl_s;
	struct store_command *commands;
	size_t ncommands;
	struct store_artifact *artifacts;
	size_t nartifacts;
	struct store_arena *mem;
};

struct store_event {
	int64_t id;  /* over all runs, ascending, never used again */
	int64_t seq; /* within the run: 1, 2, 3, ... */
	const char *run_id;
	enum store_event_type type;
	int64_t at;
	int64_t command_index; /* -1: none */
	int64_t out_offset;    /* output: offset of data's first byte; else -1 */
	bool truncated;        /* output: the cap cut the stream after these bytes */
	const char *data;      /* output: raw bytes; else one JSON object */
	size_t n;
};

struct store_runs {
	struct store_run *v;
	size_t n;
	struct store_arena *mem;
};

struct store_sandboxes {
	struct store_sandbox *v;
	size_t n;
	struct store_arena *mem;
};

struct store_warms {
	struct store_warm *v;
	size_t n;
	struct store_arena *mem;
};

struct store_events {
	struct store_event *v;
	size_t n;
	bool more; /* the bounds cut it: ask again after the last one */
	struct store_arena *mem;
};

void store_session_release(struct store_session *s);
void store_run_release(struct store_run *r);
void store_runs_release(struct store_runs *l);
void store_sandboxes_release(struct store_sandboxes *l);
void store_warms_release(struct store_warms *l);
void store_events_release(struct store_events *l);

#define AUTO_STORE_SESSION                                                               \
	__attribute__((cleanup(store_session_release))) struct store_session
#define AUTO_STORE_RUN  __attribute__((cleanup(store_run_release))) struct store_run
#define AUTO_STORE_RUNS __attribute__((cleanup(store_runs_release))) struct store_runs
#define AUTO_STORE_SANDBOXES                                                             \
	__attribute__((cleanup(store_sandboxes_release))) struct store_sandboxes
#define AUTO_STORE_WARMS __attribute__((cleanup(store_warms_release))) struct store_warms
#define AUTO_STORE_EVENTS                                                                \
	__attribute__((cleanup(store_events_release))) struct store_events

#endif
