/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/podlist.h"

#include <string.h>

#include "backend/kubernetes/pods.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"

struct listing {
	struct kube *k;
	struct sandbox_list l;
};

static struct sandbox_info *info_of(struct sandbox_list *l, const char *name)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (strcmp(l->v[i].name, name) == 0)
			return &l->v[i];
	l->v = xreallocarray(l->v, l->n + 1, sizeof *l->v);
	l->v[l->n] = (struct sandbox_info){.name = xstrdup(name)};
	return &l->v[l->n++];
}

static void on_begin(void *arg)
{
	sandbox_list_release(&((struct listing *)arg)->l);
}

static int on_pod(void *arg, json_t *object, struct err *e)
{
	struct listing *w = arg;
	struct err ignored = ERR_INIT;
	struct sandbox_info *i;
	AUTO_POD p = {0};

	(void)e;
	if (pod_parse(object, &w->k->reading, &p, &ignored) < 0 ||
	    pods_check_name(p.name, &ignored) < 0)
		return 0;
	i = info_of(&w->l, p.name);
	i->running = p.state == PODSTATE_RUNNING;
	i->outdated = strcmp(p.fingerprint, w->k->spec.fingerprint) != 0;
	i->old_image = strcmp(p.image, w->k->spec.image) != 0;
	i->container_id = MOVE(p.uid);
	i->image = MOVE(p.image);
	i->policy_fingerprint = MOVE(p.fingerprint);
	return 0;
}

/* A volume whose pod was lost is a sandbox that does not run. */
static int on_claim(void *arg, json_t *object, struct err *e)
{
	struct listing *w = arg;
	const char *name = json_get_string(json_object_get(object, "metadata"), "name");
	struct err ignored = ERR_INIT;

	(void)e;
	if (name && pods_check_name(name, &ignored) == 0)
		info_of(&w->l, name);
	return 0;
}

static int list_of(struct listing *w, const char *what,
		   int (*item)(void *arg, json_t *object, struct err *e), bool first,
		   struct err *e)
{
	AUTO_FREE char *path = kube_path(w->k->api, "%s", what);
	char version[KUBE_VERSION_MAX];

	return kube_list(w->k->api,
			 &(struct kube_list){.path = path,
					     .label_selector = w->k->selector,
					     .begin = first ? on_begin : NULL,
					     .item = item,
					     .arg = w},
			 version, e);
}

int podlist(struct kube *k, struct sandbox_list *ret, struct err *e)
{
	struct listing w = {.k = k};

	if (list_of(&w, "pods", on_pod, true, e) < 0 ||
	    (*k->conf->kube_volume_size &&
	     list_of(&w, "persistentvolumeclaims", on_claim, false, e) < 0)) {
		sandbox_list_release(&w.l);
		return -1;
	}
	*ret = w.l;
	return 0;
}

static int on_any(void *arg, json_t *object, struct err *e)
{
	(void)object;
	(void)e;
	*(bool *)arg = true;
	return 0;
}

int podlist_any(struct kube *k, int64_t deadline, bool *ret, struct err *e)
{
	static const char *const kinds[] = {"pods", "persistentvolumeclaims"};
	char version[KUBE_VERSION_MAX];
	size_t i;

	*ret = false;
	for (i = 0; i < sizeof kinds / sizeof *kinds && !*ret; i++) {
		AUTO_FREE char *path = kube_path(k->api, "%s", kinds[i]);
		int64_t left = deadline - clock_mono_ms();

		if (left <= 0)
			return err_set(e, ERR_TIMEOUT, "no time is left to ask");
		if (kube_list(k->api,
			      &(struct kube_list){.path = path,
						  .label_selector = k->selector,
						  .item = on_any,
						  .arg = ret,
						  .once = true,
						  .timeout_ms = left},
			      version, e) < 0)
			return -1;
	}
	return 0;
}
