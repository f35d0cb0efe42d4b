/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/access.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/json.h"

/*
 * The Role of docs/kubernetes.md. An exec by WebSocket is a `get` to older API
 * servers, and a `create` besides from 1.35 on.
 */
static const struct {
	const char *verb, *resource, *subresource;
	bool for_claims;
} needed[] = {
	{"get", "pods", "", false},
	{"list", "pods", "", false},
	{"watch", "pods", "", false},
	{"create", "pods", "", false},
	{"delete", "pods", "", false},
	{"get", "pods", "exec", false},
	{"create", "pods", "exec", false},
	{"get", "configmaps", "", false},
	{"create", "configmaps", "", false},
	{"delete", "configmaps", "", false},
	{"get", "persistentvolumeclaims", "", true},
	{"list", "persistentvolumeclaims", "", true},
	{"watch", "persistentvolumeclaims", "", true},
	{"create", "persistentvolumeclaims", "", true},
	{"delete", "persistentvolumeclaims", "", true},
};

static int may(struct kube_api *a, size_t i, bool *ret, struct err *e)
{
	AUTO_JSON *body = json_must(
		json_pack("{s:s,s:s,s:{s:{s:s,s:s,s:s,s:s}}}", "apiVersion",
			  "authorization.k8s.io/v1", "kind", "SelfSubjectAccessReview",
			  "spec", "resourceAttributes", "namespace",
			  kube_api_namespace(a), "verb", needed[i].verb, "resource",
			  needed[i].resource, "subresource", needed[i].subresource));
	AUTO_JSON *answer = NULL;

	if (kube_call(a,
		      &(struct kube_call){.method = "POST",
					  .path = "/apis/authorization.k8s.io/v1/"
						  "selfsubjectaccessreviews",
					  .json = body,
					  .may_repeat = true},
		      &answer, e) < 0)
		return -1;
	*ret = json_is_true(
		json_object_get(json_object_get(answer, "status"), "allowed"));
	return 0;
}

int access_check(struct kube_api *a, bool with_claims, struct err *e)
{
	AUTO_BUF missing = BUF_INIT(4096);
	bool allowed = false;
	size_t i;

	for (i = 0; i < sizeof needed / sizeof *needed; i++) {
		if (needed[i].for_claims && !with_claims)
			continue;
		if (may(a, i, &allowed, e) < 0)
			return -1;
		if (!allowed)
			buf_printf(&missing, "%s%s %s%s%s", missing.len ? ", " : "",
				   needed[i].verb, needed[i].resource,
				   *needed[i].subresource ? "/" : "",
				   needed[i].subresource);
	}
	if (missing.len == 0)
		return 0;
	return err_set(e, ERR_DENIED,
		       "the server may not, in the namespace %s: %s; a Role and a "
		       "RoleBinding give it that (docs/kubernetes.md)",
		       kube_api_namespace(a), missing.p);
}
