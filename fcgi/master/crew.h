/* SPDX-License-Identifier: MIT */
#ifndef MASTER_CREW_H
#define MASTER_CREW_H

#include "base/err.h"
#include "conf/conf.h"
#include "master/datadir.h"
#include "master/role.h"
#include "master/rolefd.h"

/*
 * All roles, and what outlives them: the listener, a SOCK_SEQPACKET pair and a
 * doorbell per edge, the life pipe whose write end only the master has. A role
 * that dies is started again on the same descriptors, so what was sent to it
 * and not yet read is not lost.
 */
struct crew {
	struct conf conf; /* owned; replaced by crew_reconfigure() */
	const struct datadir *dir;
	char **environment; /* a copy of the master's own */
	char *exe;
	int nedges;
	int life[2];
	int listen_fd;
	int control_fd; /* the listener of control.sock, for the runner */
	int stats_fd;   /* the edges' shared numbers (edge/stats.h), so that they outlive
			   an edge */
	int edge_end[ROLE_EDGES_MAX], runner_end[ROLE_EDGES_MAX];
	int doorbell[ROLE_EDGES_MAX];
	struct role roles[1 + ROLE_EDGES_MAX]; /* [0]: the runner */
	int nroles;
};

/* Makes the descriptors; starts nobody. Takes over conf. */
int crew_open(struct crew *k, struct conf *conf, const struct datadir *d,
	      char **environment, struct err *e);

/* Close all, the life pipe first. No role may be running. */
void crew_close(struct crew *k);

/* Starts whose time has come, kills whose grace is over. */
void crew_tick(struct crew *k, int64_t now_ms);

/* When crew_tick() is needed next; INT64_MAX: only after an event. */
int64_t crew_next_ms(const struct crew *k);

/* A child has ended. False: none of the roles (an orphan we adopted). */
bool crew_reap(struct crew *k, pid_t pid, int status, int64_t now_ms);

/* The ready descriptor of a role has something. */
void crew_read_ready(struct role *r);
bool crew_ready(const struct crew *k);

/* Replace one role: told to leave, killed after grace, started again when gone. */
void crew_replace(struct role *r, int64_t now_ms);

/* TERM to all, killed after grace_ms, none is started again. */
void crew_stop(struct crew *k, int64_t grace_ms, int64_t now_ms);
bool crew_gone(const struct crew *k);

/*
 * Takes over conf if only what may change has changed; then every role is
 * replaced. Refused (conf stays the caller's) with the variable's name.
 */
int crew_reconfigure(struct crew *k, struct conf *conf, int64_t now_ms, struct err *e);

#endif
