/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_PODS_PODWATCH_H
#define BACKEND_KUBERNETES_PODS_PODWATCH_H

#include "backend/kubernetes/api/follow.h"
#include "backend/kubernetes/pods/podwait.h"

/*
 * What the pods of this server are at, by one list and watch of them all, and who
 * waits for one. Any thread.
 */
struct podwatch;

struct podwatch_args {
	struct kube_api *api; /* outlives it */
	const char *path;     /* of the pods of the namespace */
	const char *label_selector;
	struct pod_reading reading; /* its strings outlive it */
};

/* Returns when all have been listed once. */
int podwatch_start(const struct podwatch_args *a, struct podwatch **ret, struct err *e);
void podwatch_stop(struct podwatch *w); /* NULL is fine */

/* 0: it is up to date. Else what is wrong, since when. */
int podwatch_health(struct podwatch *w, struct err *e);

/*
 * Waits until the pod p, as an answer of the API server described it, runs, or how
 * says that it never will, or it is deleted, be it before the call. *ret is what was
 * told of it last; the caller's.
 */
int podwatch_await(struct podwatch *w, const struct pod *p, struct podwait *how,
		   struct pod *ret, struct err *e);

/*
 * A look at the API server, for a watch that is late: the pod of that uid is p now;
 * NULL: it is gone.
 */
void podwatch_saw(struct podwatch *w, const char *uid, const struct pod *p);

/*
 * Waits until the pod of that uid is gone, or not known; false: not in that time.
 */
bool podwatch_await_gone(struct podwatch *w, const char *uid, int64_t timeout_ms);

/*
 * Which pod the runner has been told of, by name: another uid or another count of
 * restarts under that name means that what ran in it is lost. Before the first
 * podwatch_accept() any pod is the same.
 */
void podwatch_accept(struct podwatch *w, const struct pod *p);
bool podwatch_is_same(struct podwatch *w, const struct pod *p);

/*
 * The pod of that name is there but cannot be reached: for how long that has been so
 * since it was accepted last.
 */
int64_t podwatch_silent_ms(struct podwatch *w, const char *name);

/* The name is not used any more. */
void podwatch_forget(struct podwatch *w, const char *name);

#endif
