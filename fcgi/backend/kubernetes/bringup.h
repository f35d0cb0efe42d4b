/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_BRINGUP_H
#define BACKEND_KUBERNETES_BRINGUP_H

#include "backend/kubernetes/kubernetes.h"

/*
 * A sandbox's pod, running, whatever there is of it: the one that is there and waits
 * or runs, a new one in the place of one that cannot go on (ended, of another policy,
 * of an owner that went) or is not wanted (spec->fresh), or a first one. On nodes of
 * the first architecture that takes it. What never ran is not left. Sets fresh and
 * recreated of *info. Control thread.
 */
int bringup(struct kube *k, const struct sandbox_spec *spec, struct pod *p,
	    struct sandbox_info *info, struct err *e);

#endif
