/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_PODLIST_H
#define BACKEND_KUBERNETES_PODLIST_H

#include "backend/kubernetes/kubernetes.h"

/*
 * All sandboxes of this server as the API server has them now: its pods, and the
 * claims whose pods are gone. Control thread.
 */
int podlist(struct kube *k, struct sandbox_list *ret, struct err *e);

/*
 * Is there a pod or a claim of this server? Claims are asked for also where
 * KUBERNETES_VOLUME_SIZE is not set (any more). Each request is tried once, until
 * deadline (monotonic). -1: not known; also when the role does not allow to list claims.
 */
int podlist_any(struct kube *k, int64_t deadline, bool *ret, struct err *e);

#endif
