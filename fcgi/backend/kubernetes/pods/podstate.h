/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_PODS_PODSTATE_H
#define BACKEND_KUBERNETES_PODS_PODSTATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/*
 * What a Pod is at, from its description by the API server. Pure. A pod's words
 * are the cluster's own: reasons and messages of its status, on one line.
 */
enum podstate {
	PODSTATE_WAITING,       /* on its way: scheduled, pulled, started */
	PODSTATE_UNSCHEDULABLE, /* no node takes it, now */
	PODSTATE_NO_IMAGE,      /* its image cannot be had, now */
	PODSTATE_BROKEN,        /* can never start as it is */
	PODSTATE_CRASHED,       /* its container ended; the node starts it again */
	PODSTATE_RUNNING,       /* the agent may be reachable */
	PODSTATE_ENDED,         /* never runs again: evicted, its node shut down, … */
	PODSTATE_LEAVING,       /* is being deleted */
	PODSTATE_COUNT
};

struct pod {
	char *name, *uid;
	char *node;     /* "" until it is scheduled */
	char *image;    /* of our container, as it was asked for */
	char *instance; /* of its labels and annotations; "" when absent */
	char *fingerprint;
	char *owner; /* uid of the first; "" when it has none */
	enum podstate state;
	char *words;         /* why it is at that; "" when there is nothing to say */
	int64_t restarts;    /* of our container */
	bool is_unreachable; /* it runs, but its node has not been heard of */
};
void pod_release(struct pod *p);
#define AUTO_POD __attribute__((cleanup(pod_release))) struct pod

struct pod pod_copy(const struct pod *p);

/* How descriptions are read: whose labels, which container. Borrowed. */
struct pod_reading {
	const char *label_prefix, *container;
};

/* ERR_BACKEND: that is no description of a pod. */
int pod_parse(const json_t *root, const struct pod_reading *how, struct pod *ret,
	      struct err *e);

#endif
