/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_API_CONFIGMAP_H
#define BACKEND_KUBERNETES_API_CONFIGMAP_H

#include <jansson.h>

#include "backend/kubernetes/api/api.h"

/*
 * Makes the ConfigMap that body describes (metadata.name and what is in data and
 * binaryData), or finds it made already, by whoever was first. *ret_uid (may be
 * NULL) is its uid, to free(). One whose owner is another than the body's is made anew:
 * that owner went, and the cluster removes what it owned. ERR_CONFLICT: there is one of
 * that name that holds something else. Any thread.
 */
int configmap_ensure(struct kube_api *a, const json_t *body, char **ret_uid,
		     struct err *e);

/* Removes the one of that uid. Gone, or another by now: fine. Any thread. */
int configmap_remove(struct kube_api *a, const char *name, const char *uid,
		     struct err *e);

#endif
