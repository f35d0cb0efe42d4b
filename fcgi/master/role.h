/* SPDX-License-Identifier: MIT */
#ifndef MASTER_ROLE_H
#define MASTER_ROLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * One process the master keeps alive, and the rule how fast it is started again.
 * Times are milliseconds of the monotonic clock.
 */
enum role_kind {
	ROLE_RUNNER,
	ROLE_EDGE,
};

enum role_state {
	ROLE_WAITING, /* not running; starts at start_at_ms */
	ROLE_RUNNING,
	ROLE_LEAVING, /* told to go; killed at kill_at_ms */
	ROLE_GONE,    /* not running and not to be started: the server stops */
};

struct role {
	enum role_kind kind;
	int index; /* edges: 0..; runner: 0 */
	enum role_state state;
	pid_t pid;    /* 0 when not running */
	int ready_fd; /* read end until it is ready; -1 */
	bool ready;
	int64_t started_ms, start_at_ms, kill_at_ms;
	int quick_deaths;    /* in a row */
	bool leave_for_good; /* the server stops: not to be started again */
};

/* What a role's process gets: its arguments, its environment, its descriptors. */
struct role_exec {
	char **argv;
	char **envp;
	const int *fds; /* placed at 3, 4, 5, …; all others are closed */
	int nfds;
};

const char *role_name(enum role_kind kind);

/* Fork and execute `path` (this binary). *ret is the child. */
int role_spawn(const char *path, const struct role_exec *x, pid_t *ret, struct err *e);

/*
 * Note a death. Returns the delay until the next start: none after a decent life
 * or a wanted leave, else growing to a bound, which it keeps for ever: a second for
 * a role that had served (it can work), ten for one that never got so far.
 */
enum {
	ROLE_DECENT_LIFE_MS = 2000,
	ROLE_DELAY_MAX_MS = 10000,
	ROLE_DELAY_MAX_SERVED_MS = 1000,
	ROLE_CRASH_LOOP = 4,
};
int64_t role_died(struct role *r, int64_t now_ms);

#endif
