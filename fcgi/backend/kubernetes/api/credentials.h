/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_API_CREDENTIALS_H
#define BACKEND_KUBERNETES_API_CREDENTIALS_H

#include <stdbool.h>

#include "backend/kubernetes/api/login.h"
#include "base/err.h"
#include "conf/conf.h"

/*
 * Who we are in the cluster, kept fresh: a pod's service account, or a kubeconfig
 * (KUBECONFIG, KUBERNETES_CONTEXT). Files are looked at again when a minute has
 * passed or the server refused what they said; an exec plugin is run again at its
 * expiry or after a refusal. Whoever finds that it is due runs it; for the others the
 * login goes on while it is valid, and when it is not they wait too. Any thread.
 */
struct kube_credentials;

#define KUBE_SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

struct kube_credentials_args {
	const struct conf *conf;     /* borrowed for the call */
	const char *service_account; /* folder; NULL: KUBE_SERVICE_ACCOUNT */
	/* Between a plugin's runs, whatever became of them; how long before its end
	 * what it gave is renewed. 0: 10 s. */
	int64_t plugin_pause_ms, expiry_early_ms;
};

/*
 * KUBECONFIG when it is set, else the service account of the pod we run in. Reads
 * the files and runs the plugin once; the error says what was looked for.
 */
int kube_credentials_open(const struct kube_credentials_args *a,
			  struct kube_credentials **ret, struct err *e);
void kube_credentials_free(struct kube_credentials *c); /* NULL is fine */

/*
 * The server ends: a plugin that runs is killed and none is run any more. A login
 * that is valid goes on; who waits for one, or asks when there is none, gets ERR_BUSY.
 */
void kube_credentials_stop(struct kube_credentials *c);

/*
 * The namespace of sandboxes: KUBERNETES_SANDBOX_NAMESPACE, else POD_NAMESPACE,
 * else the context's or the service account's, else "default".
 */
const char *kube_credentials_namespace(const struct kube_credentials *c);
const char *kube_credentials_where(const struct kube_credentials *c); /* for people */
const char *kube_credentials_host(const struct kube_credentials *c);  /* Host header */
const char *kube_credentials_path(const struct kube_credentials *c);  /* "" or "/x" */

/* The login for a call, to put. */
int kube_login_get(struct kube_credentials *c, const struct kube_login **ret,
		   struct err *e);

/*
 * The server did not take that login: 401 (is_401), or its certificate may not be
 * the one that our files vouch for. The next kube_login_get() reads the files again,
 * and after a 401 runs the plugin again, not more often than plugin_pause_ms. When
 * it answers with the same login, a repeat would be refused as well.
 */
void kube_login_refused(struct kube_credentials *c, const struct kube_login *l,
			bool is_401);

#endif
