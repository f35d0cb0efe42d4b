/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_API_FOLLOW_H
#define BACKEND_KUBERNETES_API_FOLLOW_H

#include "backend/kubernetes/api/collection.h"

/*
 * A collection kept up to date: list, then watch from there, in a thread of its
 * own, for as long as it is not stopped. A watch that ends goes on from its last
 * version; one that is too old (410) lists again; a server that is away or refuses
 * is tried again with growing pauses, 0.2 s to 15 s.
 */
struct kube_follow;

/* All on the thread. Objects are borrowed for the call. */
struct kube_follow_events {
	/* A list begins: what is not told by object() until listed() is gone. */
	void (*begin)(void *arg);
	void (*object)(void *arg, const json_t *o); /* is there, or has changed */
	void (*gone)(void *arg, const json_t *o);   /* was deleted; its last state */
	void (*listed)(void *arg);
	/*
	 * Not up to date now, and why; the next listed() or object() ends that. The
	 * same words are told once until a watch has worked again.
	 */
	void (*trouble)(void *arg, const struct err *why);
};

struct kube_follow_args {
	struct kube_api *api; /* outlives it */
	const char *path;     /* copied */
	const char *label_selector;
	const struct kube_follow_events *ev;
	void *arg;
};
int kube_follow_start(const struct kube_follow_args *a, struct kube_follow **ret,
		      struct err *e);

/* At once, whatever the thread waits for. NULL is fine. */
void kube_follow_stop(struct kube_follow *f);

#endif
