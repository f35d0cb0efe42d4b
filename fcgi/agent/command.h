/* SPDX-License-Identifier: MIT */
#ifndef AGENT_COMMAND_H
#define AGENT_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "agent/plan.h"
#include "agent/stream.h"
#include "agent/tree.h"
#include "wire/agentproto.h"

/*
 * The commands an agent knows, from START to FORGET, whether a runner is there
 * or not. A command ends when its leader has exited and its output has ended
 * or a short drain is over; a command that is being killed ends when its whole
 * tree is gone.
 */
struct command {
	struct ap_id id;
	enum ap_state state;
	struct tree tree;
	struct stream streams[AP_STREAM_COUNT];
	/* standard input; fd -1: none, or closed */
	struct watch stdin_watch;
	struct ring stdin_ring;
	bool stdin_eof;
	/* the leader's life */
	bool is_reaped;
	int status; /* as wait(2) */
	struct rusage usage;
	uint64_t started_us, exited_us;
	/* monotonic times, 0: none */
	uint64_t timeout_at, kill_at, silence_at, drain_at;
	uint64_t tell_at; /* until then STARTED may wait for its end, and output too; 0:
			     due */
	uint32_t kill_grace_ms;
	unsigned kill_rounds;
	uint64_t oom_before; /* oom_read() at its start */
	bool oom_known;
	bool is_killing, is_killed; /* TERM was sent; the tree is gone or given up */
	struct ap_exit exit;        /* valid when state is AP_ENDED */
	/* what the present connection has been told */
	bool told_start, told_exit;
	uint64_t told_stdin;
	struct commands *all;
};

struct commands {
	struct loop *loop;
	uint8_t boot_id[16];
	uint32_t serial;
	int oom_fd; /* oom_open() */
	struct command *v[AP_COMMANDS_MAX];
	size_t n;
};

struct command *command_find(struct commands *all, const struct ap_id *id);

/*
 * Make a record and start it; a start that fails is a record that has ended.
 * NULL: there can be no record; *ret_refusal is the answer for the runner.
 */
struct command *command_start(struct commands *all, struct plan *p,
			      struct ap_exit *ret_refusal);

/* The runner's wishes. stdin: false when it broke the window. */
void command_cancel(struct command *c, uint32_t grace_ms);
void command_ack(struct command *c, const struct ap_offsets *stored);
bool command_stdin(struct command *c, uint64_t offset, struct ap_bytes data);
void command_stdin_eof(struct command *c, uint64_t offset);
void command_forget(struct command *c); /* frees it, unless it runs */

/* SIGCHLD: reap everything that has ended. */
void commands_reap(struct commands *all);
/* Do what is due now. */
void commands_tick(struct commands *all);
/* When something is due next; 0: nothing is. */
uint64_t commands_deadline(const struct commands *all);

#endif
