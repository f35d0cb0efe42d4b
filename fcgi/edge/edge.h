/* SPDX-License-Identifier: MIT */
#ifndef EDGE_EDGE_H
#define EDGE_EDGE_H

#include "conf/conf.h"

/*
 * The edge role: one FastCGI process. The descriptors are inherited from the
 * master, which keeps its own copies so that a restarted edge goes on with
 * them. The role never returns while it serves.
 */
struct edge_args {
	int index;       /* 0..edges-1 */
	int life_fd;     /* end of file: the master is gone, leave */
	int listen_fd;   /* the FastCGI listener, non-blocking, shared by all edges */
	int runner_fd;   /* this edge's end of its SOCK_SEQPACKET pair */
	int doorbell_fd; /* eventfd; the runner adds 1 after a commit */
	int ready_fd;    /* write one byte when serving, then close; -1: none */
	int stats_fd;    /* empty memfd shared by all edges (edge/stats.h); <= 0: none */
	const char *db_path;
	int64_t keepalive_ms; /* of event streams; 0: 15 s, for all but tests */
	/* What is answered at a stop may take so long; 0: 3 s, for all but tests. */
	int64_t stop_grace_ms;
};

/*
 * Drops to conf->edge_user (when root), no capabilities, no_new_privs, seccomp,
 * then serves until TERM (finishes answers in hand, ends streams) or the life
 * pipe closes. Returns the process's exit code.
 */
int edge_main(const struct edge_args *a, const struct conf *c);

#endif
