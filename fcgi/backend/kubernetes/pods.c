/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/pods.h"

#include <string.h>

#include "base/auto.h"
#include "base/json.h"
#include "base/mem.h"

int pods_check_name(const char *name, struct err *e)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

	if (strncmp(name, "mcp-sbx-", 8) == 0 && strlen(name) < 64 &&
	    strspn(name, ok) == strlen(name))
		return 0;
	return err_set(e, ERR_INVALID, "not the name of a sandbox");
}

/* To one pod, or to all when it has no name. */
static int call(struct kube *k, const char *name, struct kube_call c, json_t **ret,
		struct err *e)
{
	AUTO_FREE char *path =
		kube_path(k->api, "pods%s%s", name ? "/" : "", name ? name : "");

	c.path = path;
	c.may_repeat = true;
	return kube_call(k->api, &c, ret, e);
}

/* No answer, or one that says "not now": nothing is said about the pod. */
static int as_busy(const struct kube_status *status, struct err *e)
{
	if (status->code == 0 || status->code >= 500 || status->reason == KUBE_BUSY)
		e->kind = ERR_BUSY;
	return -1;
}

/* An answer about the pod of that name. */
static int parse(struct kube *k, const char *name, const json_t *root, struct pod *ret,
		 struct err *e)
{
	AUTO_POD p = {0};

	if (pod_parse(root, &k->reading, &p, e) < 0)
		return -1;
	if (strcmp(p.name, name) != 0)
		return err_set(e, ERR_BACKEND,
			       "the API server answered with another pod than %s", name);
	if (strcmp(p.instance, k->spec.instance) != 0)
		return err_set(e, ERR_CONFLICT,
			       "the namespace %s has a pod %s that is not this server's; "
			       "remove it",
			       kube_api_namespace(k->api), p.name);
	*ret = p;
	p = (struct pod){0};
	return 0;
}

int pods_get(struct kube *k, const char *name, struct pod *ret, struct err *e)
{
	struct kube_status status = {0};
	AUTO_JSON *root = NULL;

	if (call(k, name, (struct kube_call){.method = "GET", .status = &status}, &root,
		 e) < 0)
		return as_busy(&status, e);
	return parse(k, name, root, ret, e);
}

int pods_find(struct kube *k, const char *name, struct pod *ret, bool *ret_there,
	      struct err *e)
{
	struct err why = ERR_INIT;

	if (pods_check_name(name, e) < 0)
		return -1;
	*ret_there = pods_get(k, name, ret, &why) == 0;
	if (*ret_there || why.kind == ERR_NOT_FOUND)
		return 0;
	*e = why;
	return -1;
}

int pods_make(struct kube *k, const struct sandbox_spec *spec, size_t arch,
	      struct pod *ret, struct err *e)
{
	AUTO_FREE char *owner = NULL;
	AUTO_JSON *body = NULL, *root = NULL;
	struct kube_status status = {0};
	struct err why = ERR_INIT;

	if (agentmap_ensure(k->agents, &owner, e) < 0)
		return -1;
	body = podspec_pod(&k->spec, &(struct podspec_args){
					     .spec = spec,
					     .arch = agentmap_arch(k->agents, arch),
					     .agent_map = agentmap_name(k->agents, arch),
					     .owner_name = agentmap_owner_name(k->agents),
					     .owner_uid = owner});
	if (call(k, NULL,
		 (struct kube_call){.method = "POST", .json = body, .status = &status},
		 &root, &why) == 0)
		return parse(k, spec->name, root, ret, e);
	if (status.reason == KUBE_EXISTS)
		return pods_get(k, spec->name, ret, e);
	*e = why;
	return err_wrap(e, "make the sandbox's pod");
}

static int begin(struct kube *k, const struct pod *p, bool now, struct err *e)
{
	AUTO_JSON *body =
		json_must(json_pack("{s:s,s:s,s:{s:s}}", "kind", "DeleteOptions",
				    "apiVersion", "v1", "preconditions", "uid", p->uid));
	struct kube_status status = {0};
	struct err why = ERR_INIT;

	if (now)
		json_put(body, "gracePeriodSeconds", json_integer(0));
	if (call(k, p->name,
		 (struct kube_call){.method = "DELETE", .json = body, .status = &status},
		 NULL, &why) == 0 ||
	    why.kind == ERR_NOT_FOUND || status.reason == KUBE_CONFLICT)
		return 0;
	*e = why;
	return err_wrap(e, "remove the sandbox's pod");
}

int pods_begin_removal(struct kube *k, const struct pod *p, struct err *e)
{
	return begin(k, p, false, e);
}

/* True: the API server has no such pod any more; asked, in case the watch is late. */
static bool is_gone(struct kube *k, const struct pod *p)
{
	struct err why = ERR_INIT;
	AUTO_POD now = {0};

	if (pods_get(k, p->name, &now, &why) < 0)
		return why.kind == ERR_NOT_FOUND;
	return !now.uid || strcmp(now.uid, p->uid) != 0;
}

int pods_remove(struct kube *k, const struct pod *p, struct err *e)
{
	if (begin(k, p, false, e) < 0)
		return -1;
	if (podwatch_await_gone(k->watch, p->uid, k->gone_ms) || is_gone(k, p))
		return 0;
	kube_say(k, BACKEND_NOBODY,
		 "the pod %s does not end on its node %s; it is removed from the API "
		 "server alone",
		 p->name, p->node);
	if (begin(k, p, true, e) < 0)
		return -1;
	if (podwatch_await_gone(k->watch, p->uid, k->gone_ms / 2) || is_gone(k, p))
		return 0;
	return err_set(e, ERR_TIMEOUT,
		       "the pod %s is not gone after %lld s; does it have a finalizer?",
		       p->name, (long long)(k->gone_ms + k->gone_ms / 2) / 1000);
}
