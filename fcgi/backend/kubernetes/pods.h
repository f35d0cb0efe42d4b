/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_PODS_H
#define BACKEND_KUBERNETES_PODS_H

#include "backend/kubernetes/kubernetes.h"

/* One pod in the cluster, by the name of its sandbox. Control threads. */

/* What is put into paths. */
int pods_check_name(const char *name, struct err *e);

/*
 * As the API server has it now. ERR_NOT_FOUND: there is none. ERR_CONFLICT: there
 * is one that is not this instance's, and nobody may touch it. ERR_BUSY: the API
 * server cannot be asked now.
 */
int pods_get(struct kube *k, const char *name, struct pod *ret, struct err *e);

/* The same, and an absent one is no error; *ret_there: there is one of ours. */
int pods_find(struct kube *k, const char *name, struct pod *ret, bool *ret_there,
	      struct err *e);

/*
 * Makes one on nodes of the i-th architecture. A pod that a lost answer left behind
 * is taken for the one that was asked for. *ret is as made, not running yet.
 */
int pods_make(struct kube *k, const struct sandbox_spec *spec, size_t arch,
	      struct pod *ret, struct err *e);

/* Asks for its end and does not wait for it. Gone, or another by now: fine. */
int pods_begin_removal(struct kube *k, const struct pod *p, struct err *e);

/*
 * Returns when it is gone, so that its name is free. A node that is lost does not
 * confirm it: after a while the API server is made to forget the pod.
 */
int pods_remove(struct kube *k, const struct pod *p, struct err *e);

#endif
