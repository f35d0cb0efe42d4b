/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_CLAIMS_H
#define BACKEND_KUBERNETES_CLAIMS_H

#include "backend/kubernetes/kubernetes.h"

/*
 * The claim of the volume that a sandbox's /workspace is on, by the sandbox's name.
 * With KUBERNETES_VOLUME_SIZE alone: without it there is nothing to do. Control
 * threads.
 */

/*
 * *ret_kept: it was there already, with its files. One that someone has deleted, and
 * that goes as soon as its last pod does, is waited for and made anew; so is any when
 * spec->fresh. ERR_TIMEOUT: it does not go.
 */
int claims_make(struct kube *k, const struct sandbox_spec *spec, bool *ret_kept,
		struct err *e);

/* Does not wait for its end. *ret_existed is set, and left alone when there was none. */
int claims_remove(struct kube *k, const char *name, bool *ret_existed, struct err *e);

#endif
