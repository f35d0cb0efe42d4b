/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_API_LOGIN_H
#define BACKEND_KUBERNETES_API_LOGIN_H

#include "backend/kubernetes/api/kubeconfig.h"
#include "backend/kubernetes/api/plugin.h"
#include "base/err.h"
#include "net/http.h"

/*
 * What one call is made with. Counted, so that a call that takes long keeps its
 * own while others have been given a newer one. Any thread.
 */
struct kube_login {
	struct http *http; /* with the server's and the client's certificates */
	char **headers;    /* Authorization, Impersonate-*; NULL-terminated */
};
void kube_login_hold(const struct kube_login *l);
void kube_login_put(const struct kube_login *l); /* NULL is fine */

struct kube_login_args {
	const struct kubeconfig *k;
	const char *base;                 /* of the server's URL */
	const struct kube_ticket *ticket; /* of the plugin; zeroed: none */
};

/*
 * Reads k's files. A login that says the same stays, so that its user sees that
 * nothing is new; else *now (NULL: none) is put and is the new one. Logins that
 * differ in the token alone share their connections.
 */
int kube_login_renew(const struct kube_login_args *a, const struct kube_login **now,
		     struct err *e);

#endif
