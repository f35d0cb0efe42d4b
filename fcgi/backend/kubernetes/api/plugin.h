/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_API_PLUGIN_H
#define BACKEND_KUBERNETES_API_PLUGIN_H

#include <stdint.h>

#include "backend/kubernetes/api/kubeconfig.h"
#include "base/err.h"
#include "base/str.h"

/*
 * A credential plugin (client.authentication.k8s.io/v1): a program that prints what
 * to log in with.
 */
struct kube_ticket {
	char *token;              /* or NULL */
	char *cert_pem, *key_pem; /* or NULL, both */
	int64_t expires_ms;       /* wall clock; INT64_MAX: it does not */
};
void kube_ticket_release(struct kube_ticket *t); /* zeroed is fine */

/*
 * Runs k's plugin, without a terminal, with our environment and what k adds to it;
 * 30 s at most. The error has the plugin's last words and k's hint how to install
 * it. ERR_BUSY: *stop_fd (NULL: none) was readable, and it was killed. Blocking.
 */
int kube_plugin_run(const struct kubeconfig *k, const int *stop_fd,
		    struct kube_ticket *ret, struct err *e);

/* Reads what a plugin printed. Pure. */
int kube_plugin_parse(const char *api_version, struct str text, struct kube_ticket *ret,
		      struct err *e);

#endif
