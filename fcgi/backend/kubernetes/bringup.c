/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/bringup.h"

#include <string.h>

#include "backend/kubernetes/claims.h"
#include "backend/kubernetes/pods.h"
#include "base/auto.h"

static void on_waiting(void *arg, const struct pod *p)
{
	struct kube *k = arg;

	if (*p->words)
		kube_say(k, p->name, "%s: %s", p->name, p->words);
}

/* The watch may be late, and someone may have deleted the agent. */
static void on_look(void *arg, const struct pod *p)
{
	struct kube *k = arg;
	struct err why = ERR_INIT;
	AUTO_POD now = {0};

	if (podwatch_health(k->watch, &why) < 0 || agentmap_look(k->agents, &why) < 0)
		return; /* its time runs on, and the watch says what is wrong */
	if (pods_get(k, p->name, &now, &why) == 0 && strcmp(now.uid, p->uid) == 0)
		podwatch_saw(k->watch, p->uid, &now);
	else if (why.kind == ERR_NONE || why.kind == ERR_NOT_FOUND)
		podwatch_saw(k->watch, p->uid, NULL);
}

static struct podwait waiting(struct kube *k, bool is_new)
{
	return (struct podwait){
		.start_ms = k->conf->kube_start_s * 1000,
		.unschedulable_ms = k->conf->kube_unschedulable_s * 1000,
		.is_new = is_new,
		.changed = on_waiting,
		.look = on_look,
		.look_ms = k->look_ms,
		.arg = k,
	};
}

/* p becomes what it is when it runs. */
static int await(struct kube *k, struct podwait *how, struct pod *p, struct err *e)
{
	struct pod now = {0};

	if (p->state == PODSTATE_RUNNING)
		return 0;
	if (podwatch_await(k->watch, p, how, &now, e) < 0)
		return -1;
	pod_release(p);
	*p = now;
	return 0;
}

/*
 * On the first architecture whose nodes take it; when none does, the words are about
 * the preferred one. What never ran is not left.
 */
static int make_new(struct kube *k, const struct sandbox_spec *spec, struct pod *ret,
		    struct err *e)
{
	size_t n = agentmap_count(k->agents), i;
	struct err ignored = ERR_INIT, why = ERR_INIT;

	for (i = 0; i < n; i++) {
		struct podwait how = waiting(k, true);
		struct err now = ERR_INIT;

		if (pods_make(k, spec, i, ret, e) < 0)
			return -1;
		if (await(k, &how, ret, &now) == 0)
			return 0;
		if (i == 0 || how.last != PODSTATE_UNSCHEDULABLE)
			why = now;
		if (how.last != PODSTATE_UNSCHEDULABLE || i + 1 == n)
			break;
		if (pods_remove(k, ret, e) < 0)
			return -1;
		pod_release(ret);
	}
	pods_begin_removal(k, ret, &ignored);
	*e = why;
	return -1;
}

/* Why what is there cannot go on as the sandbox that is asked for; NULL: it can. */
static const char *why_not(const struct kube *k, const struct sandbox_spec *spec,
			   const struct pod *p, const char *owner_uid)
{
	if (spec->fresh)
		return "a fresh one is asked for";
	if (p->state == PODSTATE_ENDED || p->state == PODSTATE_LEAVING)
		return *p->words ? p->words : "its pod has ended";
	if (strcmp(p->fingerprint, k->spec.fingerprint) != 0)
		return "it was made under another policy";
	if (strcmp(p->owner, owner_uid) != 0)
		return "its owner was deleted, and the cluster deletes it therefore";
	return NULL;
}

static int replace(struct kube *k, const struct sandbox_spec *spec, const struct pod *p,
		   const char *why, struct err *e)
{
	if (!spec->fresh)
		kube_say(k, spec->name, "%s is replaced: %s", spec->name, why);
	return pods_remove(k, p, e);
}

/* What the caller is told of a sandbox that is not what it was. */
static const char container_words[] =
	"its container had ended and was started again: /workspace, /artifacts and /tmp "
	"are kept, everything else is as in the image";
static const char pod_words[] =
	"its pod was lost or replaced: /workspace is kept, everything else is as in the "
	"image";

int bringup(struct kube *k, const struct sandbox_spec *spec, struct pod *p,
	    struct sandbox_info *info, struct err *e)
{
	bool there = false, kept = false;
	AUTO_FREE char *owner = NULL;
	const char *why;

	if (agentmap_ensure(k->agents, &owner, e) < 0 ||
	    pods_find(k, spec->name, p, &there, e) < 0)
		return -1;
	why = there ? why_not(k, spec, p, owner) : NULL;
	if (there && !why) {
		struct podwait how = waiting(k, false);

		if (await(k, &how, p, e) < 0)
			return -1;
		if (!podwatch_is_same(k->watch, p))
			info->recreated = container_words;
		return 0;
	}
	if (there && replace(k, spec, p, why, e) < 0)
		return -1;
	pod_release(p);
	if (claims_make(k, spec, &kept, e) < 0 || make_new(k, spec, p, e) < 0)
		return -1;
	info->fresh = !kept;
	info->recreated = kept ? pod_words : NULL;
	return 0;
}
