/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/api/configmap.h"

#include <string.h>

#include "base/auto.h"
#include "base/json.h"
#include "base/mem.h"

static bool is_same(const json_t *a, const json_t *b, const char *member)
{
	const json_t *x = json_object_get(a, member), *y = json_object_get(b, member);

	return json_object_size(x) == 0 ? json_object_size(y) == 0 : json_equal(x, y);
}

static int get(struct kube_api *a, const char *name, struct kube_status *status,
	       json_t **ret, struct err *e)
{
	AUTO_FREE char *path = kube_path(a, "configmaps/%s", name);

	return kube_call(a,
			 &(struct kube_call){.method = "GET",
					     .path = path,
					     .may_repeat = true,
					     .status = status},
			 ret, e);
}

static int post(struct kube_api *a, const json_t *body, struct kube_status *status,
		json_t **ret, struct err *e)
{
	AUTO_FREE char *path = kube_path(a, "configmaps");

	return kube_call(a,
			 &(struct kube_call){.method = "POST",
					     .path = path,
					     .json = body,
					     .may_repeat = true,
					     .status = status},
			 ret, e);
}

/* Looking first: the body may be large and is nearly always there. */
static int get_or_make(struct kube_api *a, const json_t *body, const char *name,
		       json_t **ret, struct err *e)
{
	struct kube_status status = {0};
	struct err why = ERR_INIT;

	if (get(a, name, &status, ret, &why) == 0)
		return 0;
	if (why.kind != ERR_NOT_FOUND || status.reason == KUBE_NO_NAMESPACE) {
		*e = why;
		return -1;
	}
	why = (struct err)ERR_INIT;
	status = (struct kube_status){0};
	if (post(a, body, &status, ret, &why) == 0)
		return 0;
	if (status.reason == KUBE_EXISTS) /* someone was faster, or we ourselves */
		return get(a, name, NULL, ret, e);
	*e = why;
	return -1;
}

static const char *uid_of(const json_t *map)
{
	return json_get_string(json_object_get(map, "metadata"), "uid");
}

static const char *owner_of(const json_t *map)
{
	const json_t *meta = json_object_get(map, "metadata");

	return json_get_string(
		json_array_get(json_object_get(meta, "ownerReferences"), 0), "uid");
}

/* Its owner went: the cluster will remove it, at a time of its own. */
static bool is_left_behind(const json_t *found, const json_t *body)
{
	const char *has = owner_of(found), *wants = owner_of(body);

	return has && wants && uid_of(found) && strcmp(has, wants) != 0;
}

int configmap_remove(struct kube_api *a, const char *name, const char *uid, struct err *e)
{
	AUTO_FREE char *path = kube_path(a, "configmaps/%s", name);
	AUTO_JSON *options =
		json_must(json_pack("{s:s,s:s,s:{s:s}}", "kind", "DeleteOptions",
				    "apiVersion", "v1", "preconditions", "uid", uid));
	struct kube_status status = {0};
	struct err why = ERR_INIT;

	if (kube_call(a,
		      &(struct kube_call){.method = "DELETE",
					  .path = path,
					  .json = options,
					  .may_repeat = true,
					  .status = &status},
		      NULL, &why) == 0 ||
	    why.kind == ERR_NOT_FOUND || status.reason == KUBE_CONFLICT)
		return 0;
	*e = why;
	return -1;
}

static int replace(struct kube_api *a, const json_t *body, const char *name,
		   json_t **found, struct err *e)
{
	if (configmap_remove(a, name, uid_of(*found), e) < 0)
		return -1;
	json_decref(MOVE(*found));
	if (get_or_make(a, body, name, found, e) < 0)
		return -1;
	if (is_left_behind(*found, body))
		return err_set(e, ERR_BUSY, "one of an earlier server is still there");
	return 0;
}

int configmap_ensure(struct kube_api *a, const json_t *body, char **ret_uid,
		     struct err *e)
{
	const char *name = json_get_string(json_object_get(body, "metadata"), "name");
	AUTO_JSON *found = NULL;
	const char *uid;

	if (get_or_make(a, body, name, &found, e) < 0 ||
	    (is_left_behind(found, body) && replace(a, body, name, &found, e) < 0))
		return err_wrap(e, "the ConfigMap %s", name);
	uid = uid_of(found);
	if (!uid || !*uid)
		return err_set(e, ERR_BACKEND, "the ConfigMap %s has no uid", name);
	if (!is_same(found, body, "data") || !is_same(found, body, "binaryData"))
		return err_set(e, ERR_CONFLICT,
			       "the ConfigMap %s holds something else than it should; "
			       "remove it",
			       name);
	if (ret_uid)
		*ret_uid = xstrdup(uid);
	return 0;
}
