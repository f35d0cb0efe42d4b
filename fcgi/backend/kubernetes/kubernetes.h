/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_KUBERNETES_H
#define BACKEND_KUBERNETES_KUBERNETES_H

#include "backend/backend.h"
#include "backend/kubernetes/agentmap.h"
#include "backend/kubernetes/api/api.h"
#include "backend/kubernetes/pods/podspec.h"
#include "backend/kubernetes/pods/podwatch.h"

/*
 * Sandboxes as Pods of an existing cluster. Immutable after open() but for what the
 * parts lock for themselves, so calls for different sandboxes may run at once. The
 * agent is PID 1 of the pod's container, from a ConfigMap; one exec of
 * `agent connect` per sandbox carries its stream.
 *
 * A pod cannot be stopped and started again: stop() ends what runs in it and leaves
 * it idle, with its files. Its container is started again by its node when it ends;
 * then what lies in the volumes (/workspace, /artifacts, /tmp) is kept and the rest
 * is not.
 */
struct kube {
	struct backend base;
	const struct conf *conf; /* outlives the backend */
	backend_progress_fn *progress;
	void *progress_arg;
	struct podspec spec;
	struct pod_reading reading;
	char *selector, *pods_path;
	struct kube_api *api;
	struct agentmap *agents;
	struct podwatch *watch;
	struct pump *pump;
	int64_t look_ms; /* how often a pod that is waited for is asked for besides */
	int64_t gone_ms; /* how long a pod's end is waited for before it is forced */
};

/* A line for the log, and for the runs that wait for `who`. */
void kube_say(struct kube *k, const char *who, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

extern const struct backend_ops backend_kubernetes;

#endif
