/* SPDX-License-Identifier: MIT */
#ifndef AGENT_SPAWN_H
#define AGENT_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/users.h"
#include "wire/agentproto.h"

/*
 * Start one process: vfork-like (the child runs on a stack of its own in our
 * memory until it execs), so the cost does not grow with the agent, and the
 * child reports a failure by writing to *plan before it leaves.
 */
enum { SPAWN_SCRIPT_FD = 63 }; /* where a script is found: /dev/fd/63 */

struct spawn {
	char **argv; /* NULL-terminated */
	char **envp;
	const char *cwd;
	const struct user *user;
	int fds[3];    /* become 0, 1, 2; above 2 */
	int script_fd; /* becomes SPAWN_SCRIPT_FD; -1: none */
	uint64_t mark; /* see tree.h */
	/* set when it fails */
	enum ap_stage stage;
	int error;
};

/*
 * Once, before the first: lets the agent itself have many descriptors (its children get
 * what it had), and finds out how its children are to be killed before it is.
 */
void spawn_prepare(void);

/* Has the sandbox reached its limit of processes? Found out by starting one. */
bool spawn_is_full(void);

/* The pid, or -1 with stage and error filled. */
pid_t spawn(struct spawn *s);

#endif
