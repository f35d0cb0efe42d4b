/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/claims.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "backend/kubernetes/api/follow.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/mem.h"

enum { GONE_S = 30 };

/* To one claim, or to all when it has no name. */
static int call(struct kube *k, const char *name, struct kube_call c, json_t **ret,
		struct err *e)
{
	AUTO_FREE char *path = kube_path(k->api, "persistentvolumeclaims%s%s",
					 name ? "/" : "", name ? name : "");

	c.path = path;
	c.may_repeat = true;
	return kube_call(k->api, &c, ret, e);
}

/* ---- waiting for one to go: when no pod uses it any more */

/* A list and watch of that one. */
struct going {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_listed; /* in the list that is being read */
	bool is_gone;
	struct err trouble; /* the last one */
};

static void on_begin(void *arg)
{
	((struct going *)arg)->is_listed = false;
}

static void on_object(void *arg, const json_t *o)
{
	(void)o;
	((struct going *)arg)->is_listed = true;
}

static void went(struct going *g)
{
	pthread_mutex_lock(&g->lock);
	g->is_gone = true;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
}

static void on_gone(void *arg, const json_t *o)
{
	(void)o;
	went(arg);
}

static void on_listed(void *arg)
{
	if (!((struct going *)arg)->is_listed)
		went(arg);
}

/* It goes on trying; the time that is left decides. */
static void on_trouble(void *arg, const struct err *why)
{
	struct going *g = arg;

	pthread_mutex_lock(&g->lock);
	g->trouble = *why;
	pthread_mutex_unlock(&g->lock);
}

static bool await(struct going *g)
{
	struct timespec until;
	bool gone;
	int rc = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += GONE_S;
	pthread_mutex_lock(&g->lock);
	while (!g->is_gone && rc == 0)
		rc = pthread_cond_timedwait(&g->changed, &g->lock, &until);
	gone = g->is_gone;
	pthread_mutex_unlock(&g->lock);
	return gone;
}

static void going_init(struct going *g)
{
	pthread_condattr_t attr;

	*g = (struct going){0};
	pthread_mutex_init(&g->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&g->changed, &attr);
	pthread_condattr_destroy(&attr);
}

static int await_gone(struct kube *k, const char *name, struct err *e)
{
	static const struct kube_follow_events events = {.begin = on_begin,
							 .object = on_object,
							 .gone = on_gone,
							 .listed = on_listed,
							 .trouble = on_trouble};
	AUTO_FREE char *path = kube_path(
		k->api, "persistentvolumeclaims?fieldSelector=metadata.name%%3D%s", name);
	struct kube_follow *f = NULL;
	struct going g;
	bool gone;
	int rc;

	going_init(&g);
	rc = kube_follow_start(
		&(struct kube_follow_args){
			.api = k->api, .path = path, .ev = &events, .arg = &g},
		&f, e);
	gone = rc == 0 && await(&g);
	kube_follow_stop(f);
	pthread_cond_destroy(&g.changed);
	pthread_mutex_destroy(&g.lock);
	if (rc < 0 || gone)
		return rc;
	return err_set(e, ERR_TIMEOUT,
		       "the volume of the sandbox (claim %s) is not gone after %d s: %s",
		       name, GONE_S,
		       g.trouble.kind != ERR_NONE ? g.trouble.msg : "does a pod use it?");
}

/* ---- remove, make */

int claims_remove(struct kube *k, const char *name, bool *ret_existed, struct err *e)
{
	struct err why = ERR_INIT;

	if (!*k->conf->kube_volume_size)
		return 0;
	if (call(k, name, (struct kube_call){.method = "DELETE"}, NULL, &why) == 0) {
		*ret_existed = true;
		return 0;
	}
	if (why.kind == ERR_NOT_FOUND)
		return 0;
	*e = why;
	return err_wrap(e, "remove the sandbox's volume");
}

static int remove_old(struct kube *k, const char *name, struct err *e)
{
	bool existed = false;

	if (claims_remove(k, name, &existed, e) < 0)
		return -1;
	return existed ? await_gone(k, name, e) : 0;
}

/* *ret_there: there was one already. */
static int post(struct kube *k, const struct sandbox_spec *spec, const char *owner_uid,
		bool *ret_there, struct err *e)
{
	AUTO_JSON *body = podspec_claim(
		&k->spec,
		&(struct podspec_args){.spec = spec,
				       .owner_name = agentmap_owner_name(k->agents),
				       .owner_uid = owner_uid});
	struct kube_status status = {0};
	struct err why = ERR_INIT;

	*ret_there = false;
	if (call(k, NULL,
		 (struct kube_call){.method = "POST", .json = body, .status = &status},
		 NULL, &why) == 0)
		return 0;
	*ret_there = status.reason == KUBE_EXISTS;
	if (*ret_there)
		return 0;
	*e = why;
	return err_wrap(e, "make the sandbox's volume");
}

/* Someone has deleted it, or the owner it had; then the cluster will. */
static bool is_leaving(const json_t *claim, const char *owner_uid)
{
	const json_t *meta = json_object_get(claim, "metadata");
	const char *owner = json_get_string(
		json_array_get(json_object_get(meta, "ownerReferences"), 0), "uid");

	return json_get_string(meta, "deletionTimestamp") ||
	       (owner && strcmp(owner, owner_uid) != 0);
}

/* *ret: it stays. One that has gone by now does not. */
static int stays(struct kube *k, const char *name, const char *owner_uid, bool *ret,
		 struct err *e)
{
	struct err why = ERR_INIT;
	AUTO_JSON *claim = NULL;

	*ret = call(k, name, (struct kube_call){.method = "GET"}, &claim, &why) == 0 &&
	       !is_leaving(claim, owner_uid);
	if (why.kind == ERR_NONE || why.kind == ERR_NOT_FOUND)
		return 0;
	*e = why;
	return -1;
}

int claims_make(struct kube *k, const struct sandbox_spec *spec, bool *ret_kept,
		struct err *e)
{
	AUTO_FREE char *owner = NULL;
	bool there = false;

	*ret_kept = false;
	if (!*k->conf->kube_volume_size)
		return 0;
	if ((spec->fresh && remove_old(k, spec->name, e) < 0) ||
	    agentmap_ensure(k->agents, &owner, e) < 0 ||
	    post(k, spec, owner, &there, e) < 0)
		return -1;
	if (there && stays(k, spec->name, owner, ret_kept, e) < 0)
		return -1;
	if (!there || *ret_kept)
		return 0;
	return remove_old(k, spec->name, e) < 0 ? -1 : post(k, spec, owner, ret_kept, e);
}
