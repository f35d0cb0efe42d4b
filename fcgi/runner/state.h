/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_STATE_H
#define RUNNER_STATE_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "backend/backend.h"
#include "conf/conf.h"
#include "runner/agentconn.h"
#include "runner/control.h"
#include "runner/edges.h"
#include "runner/metrics.h"
#include "runner/runner.h"
#include "store/writer.h"
#include "wire/runspec.h"

/*
 * What the runner holds in memory. All of it belongs to the loop thread; jobs on
 * control threads carry copies. Everything here can be dropped at any moment and
 * built again from the store, the backend and the agents: that is what a start
 * does (recovery.c), and what follows a commit that failed.
 */
struct runner;
struct sync;
struct filejob;
struct orphan_job;
struct waitwords;
struct warmpool;

/* One output stream of one command; output.c. */
struct stream {
	int64_t stored;  /* bytes in the store: acknowledged after a commit */
	int64_t dropped; /* came beyond the cap: acknowledged, and kept nowhere */
	uint64_t acked;
	size_t ntail;    /* the beginning of a character whose end has not come */
	uint8_t tail[4]; /* not stored, not acknowledged */
	bool truncated;
};

struct command {
	enum store_command_status status;
	int64_t started_at;
	bool confirmed; /* it has begun, for all we know: the agent said STARTED */
	bool resumed;   /* RESUME named it: the agent may say GONE */
	uint64_t oom_before;
	bool oom_known;
	struct stream streams[STORE_STREAM_COUNT];
	uint64_t in_sent, in_taken; /* bytes of its input; feed.c */
	bool in_ended;              /* its end was sent */
};

/* Why a run is being ended before its time. */
enum ending { ENDING_NOT, ENDING_CANCEL, ENDING_LOST };

struct run {
	struct run *hash_next;     /* runs by run_id */
	struct run *next, **prevp; /* of its sandbox, first come first */
	struct sandbox *sb;
	char *run_id, *tenant;
	char *background_of; /* the run whose background command it was, or NULL */
	uint8_t id[16];
	struct run_spec spec;
	enum store_run_state state;
	int64_t created_at, started_at;
	struct command *cmds;
	size_t at;   /* the command that runs or is next */
	bool failed; /* a command failed without leave */
	int nwords;  /* of sandbox_progress told to it */
	bool want_ack, cancel_sent;
	bool launched; /* run_launch() */
	enum ending ending;
	char *why;          /* of ending or of failing, a sentence */
	int64_t guard_mono; /* the agent must have ended the command by then; 0: none */
	struct sync *sync;  /* artifacts being fetched */
	bool no_artifacts;  /* the agent saw none when the last command ended */
};

enum sandbox_state {
	SANDBOX_ABSENT,     /* none, or stopped with its files kept */
	SANDBOX_CREATING,   /* a control thread creates it and connects */
	SANDBOX_CONNECTING, /* it is there; connecting to its agent (again) */
	SANDBOX_READY,      /* the agent has said hello */
	SANDBOX_DELETING,   /* a control thread stops or removes it */
	SANDBOX_STATE_COUNT
};

/* Someone who waits for a delete or a restart. */
struct waiter {
	struct waiter *next;
	struct replyto to;
	bool restart;
};

struct sandbox {
	struct sandbox *hash_next;
	struct runner *r;
	char *tenant, *identifier, *container_id, *image, *fingerprint;
	char name[64];     /* what it is called at the backend; the store says it */
	char own_name[64]; /* what a create calls it */
	enum sandbox_state state;
	bool has_row;      /* known in the store */
	bool wipe;         /* the next create starts from nothing */
	bool fresh;        /* no file of an earlier sandbox is in it; told once */
	bool dropped;      /* forgotten by a reset: freed when its job is done */
	bool remove_next;  /* a delete came while a job was at work */
	bool removing;     /* the job at work removes it */
	bool job;          /* a control job holds this record */
	bool create_again; /* a restart: create as soon as it is removed */
	int64_t created_at, expires_at, ttl_s;
	int64_t leased_at; /* when expires_at was written last */
	struct agentconn *conn;
	uint8_t boot_id[16]; /* of its agent's process */
	bool has_boot;
	bool boot_restored;      /* an earlier runner met it, this one has not yet */
	int64_t lost_since_mono; /* the connection broke then; 0: it is up */
	int64_t ready_mono;      /* it is up since then */
	int strikes;             /* connections lost while no command came to its end */
	int silences; /* connects in a row for which the backend could not be asked */
	const char *stale; /* why it is stopped when nothing runs */
	const char *again; /* why it was started anew, files kept; told once */
	struct sandbox *ack_next;
	bool ack_listed; /* in r->to_ack */
	bool bound;      /* to one of the warm pool, in this turn */
	uv_timer_t *retry;
	struct run *runs, **runs_tail;
	struct waiter *waiters;
	struct ap_id *forget; /* commands whose end is written in this turn */
	size_t nforget, forget_cap;
	struct ap_id *strangers; /* commands nobody has claimed yet; strangers.c */
	size_t nstrangers;
	int64_t claim_until_mono;
	uint32_t next_req;
	int syncs; /* artifacts being fetched */
	struct filejob *files;
	size_t nfiles;
	int open_files; /* of them, those the agent is at */
};

enum { HASH_SIZE = 1024 }; /* a power of two */

enum runner_phase {
	PHASE_RECOVERING, /* the store is readable, the backend is not there yet */
	PHASE_SERVING,
	PHASE_STORE_FAILED, /* nothing in memory; tries once a second */
	PHASE_STOPPING,
};

/* Answers that wait for the commit of this turn. */
struct late_answer {
	struct late_answer *next;
	struct replyto to;
	json_t *body;
	bool is_run;
};

struct runner {
	uv_loop_t loop;
	const struct runner_args *args;
	const struct conf *conf;
	enum runner_phase phase;
	struct store *store;
	struct control *control;
	struct edges *edges;
	const struct backend_ops *ops; /* NULL: there is no such backend */
	struct backend *backend;       /* NULL until it is open */
	struct waitwords *words;       /* what it says */
	struct warmpool *warm;
	bool backend_failed;
	int64_t backend_wait_ms; /* before the next try; longer after each failure */
	int64_t backend_due;     /* monotonic */
	char backend_words[600];
	char store_words[600]; /* why the last commit failed; "" = it did not */

	uv_prepare_t before_poll;
	uv_check_t after_poll;
	uv_timer_t tick, store_retry, stop_look;
	uv_signal_t on_term, on_int, on_usr1;
	uv_poll_t life;
	int64_t next_reap, next_sweep, next_sessions, next_beat;
	bool has_reserve;   /* reserve.c: room for the database is kept */
	bool short_of_room; /* the disk is full; only what makes room is accepted */
	bool making_room;   /* all sandboxes are being stopped for it */
	char *reserve_path;
	int64_t full_since_mono;    /* the disk is full since then; 0: it is not */
	bool reconciled;            /* the backend's list was compared with the store */
	bool opening;               /* a control thread opens the backend */
	struct orphan_job *orphans; /* unknown sandboxes that are being removed */
	uint32_t generation;        /* of what is in memory: a reset begins a new one */
	bool sweeping;
	int64_t stop_by_mono, stop_hard_mono;
	bool sandboxes_stopped;
	bool looked_again; /* for sandboxes without a record, at the end of a stop */

	bool dirty;  /* something was written in this turn */
	bool urgent; /* and must be committed at its end */
	uint64_t hold_until;
	uv_timer_t hold_over;
	struct late_answer *answers, **answers_tail;

	struct agentconns conns;
	struct sandbox *to_ack; /* with something to say once it is stored */
	struct sandbox *sandboxes[HASH_SIZE];
	size_t nsandboxes;
	struct run *runs[HASH_SIZE];
	size_t nruns;
	struct metrics metrics;
	size_t file_bytes; /* held by file jobs */
	gid_t artifacts_gid;
	char *artifacts_dir;
};

#endif
