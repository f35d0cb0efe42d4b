/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_ACCESS_H
#define BACKEND_KUBERNETES_ACCESS_H

#include "backend/kubernetes/api/api.h"

/*
 * What the server may do in the namespace of the sandboxes, asked of the API server
 * (SelfSubjectAccessReview, which needs no role). ERR_DENIED names everything that
 * is missing at once.
 */
int access_check(struct kube_api *a, bool with_claims, struct err *e);

#endif
