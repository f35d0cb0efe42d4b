/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_API_EXEC_H
#define BACKEND_KUBERNETES_API_EXEC_H

#include "backend/kubernetes/api/api.h"
#include "net/pump.h"

/*
 * A program in a pod's container with its standard input and output as a stream:
 * exec over a WebSocket, subprotocol v5.channel.k8s.io or v4, whichever the server
 * takes, carried by the pump. Control thread; several at once.
 *
 * What it carries must be acknowledged by the program itself: a busy cluster was seen
 * (1.34) to lose the end of the output and the exit code, and to say Success.
 *
 * Idle cuts: the API server drops a stream that carried no data for 4 hours, things
 * in between do it after minutes. The runner asks a silent agent for a sign of life
 * every AGENTCONN_PING_MS (15 s) and gets one, which is data in both directions.
 */
struct kube_exec {
	const char *pod, *container; /* checked names */
	const char *const *argv;     /* NULL-terminated; no shell */
	/*
	 * A stream that was handed out is over, and not because its descriptor was
	 * closed: what the server said of it, or that it said nothing. NULL: not told.
	 * On the pump's thread; arg outlives the pump.
	 */
	void (*ended)(void *arg, const char *pod, const struct err *why);
	void *arg;
	struct kube_status *status; /* a refusal's details; NULL: none */
};

/*
 * Returns when the program has written its first bytes: a stream that is handed out
 * is one that works. *ret_fd: CLOEXEC, non-blocking. ERR_NOT_FOUND: there is no
 * such pod; other refusals as kube_status_err(); an API server (or a proxy in
 * front of it) that knows no exec by WebSocket is said in words.
 */
int kube_exec_open(struct kube_api *a, struct pump *p, const struct kube_exec *x,
		   int *ret_fd, struct err *e);

#endif
