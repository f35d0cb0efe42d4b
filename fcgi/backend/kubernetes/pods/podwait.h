/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_PODS_PODWAIT_H
#define BACKEND_KUBERNETES_PODS_PODWAIT_H

#include "backend/kubernetes/pods/podstate.h"

/*
 * How long a pod that does not run yet is waited for, and when there is no sense in
 * it any more. Pure; times are milliseconds of a monotonic clock.
 */
struct podwait {
	int64_t start_ms;         /* for all of it */
	int64_t unschedulable_ms; /* until a node takes it */
	bool is_new;              /* just made: a container that ends is a bad one */
	/* Told when its words change while it is waited for; NULL: nobody. */
	void (*changed)(void *arg, const struct pod *p);
	/* Called every look_ms: a watch may be late or silent, and what the pod needs
	 * may have gone. NULL: nobody. */
	void (*look)(void *arg, const struct pod *p);
	int64_t look_ms;
	void *arg;
	/* kept by podwait_judge() */
	int64_t began, unschedulable_since, no_image_since; /* 0: not */
	enum podstate last;
};

enum { PODWAIT_IMAGE_MS = 20000 }; /* registries blink: a failed pull gets this long */

enum podwait_verdict { PODWAIT_MORE, PODWAIT_RUNS, PODWAIT_FAILED };

/*
 * PODWAIT_MORE: *ret_left_ms says when to judge again at the latest. PODWAIT_FAILED:
 * e says why, in the cluster's words: ERR_TIMEOUT when the time is up, else
 * ERR_BACKEND.
 */
enum podwait_verdict podwait_judge(struct podwait *w, const struct pod *p, int64_t now,
				   int64_t *ret_left_ms, struct err *e);

#endif
