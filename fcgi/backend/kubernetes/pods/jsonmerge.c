/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/pods/jsonmerge.h"

#include <string.h>

#include "base/json.h"

static const struct {
	const char *list, *key; /* key NULL: the items are added up */
} merged_lists[] = {
	{"containers", "name"},
	{"initContainers", "name"},
	{"ephemeralContainers", "name"},
	{"volumes", "name"},
	{"env", "name"},
	{"imagePullSecrets", "name"},
	{"volumeMounts", "mountPath"},
	{"volumeDevices", "devicePath"},
	{"ownerReferences", "uid"},
	{"tolerations", NULL},
};

/* Whether lists of that member are merged, and by what. */
static bool is_merged(const char *list, const char **ret_key)
{
	size_t i;

	for (i = 0; i < sizeof merged_lists / sizeof *merged_lists; i++) {
		if (strcmp(merged_lists[i].list, list) != 0)
			continue;
		*ret_key = merged_lists[i].key;
		return true;
	}
	return false;
}

/* The index of the item whose key has that value; the size when there is none. */
static size_t find(const json_t *list, const char *key, const char *value)
{
	const char *other;
	size_t i;

	for (i = 0; i < json_array_size(list); i++) {
		other = json_get_string(json_array_get(list, i), key);
		if (other && strcmp(other, value) == 0)
			return i;
	}
	return json_array_size(list);
}

static json_t *merge_lists(const json_t *base, const json_t *over, const char *key)
{
	json_t *out = json_must(json_deep_copy(base));
	const json_t *item;
	const char *value;
	size_t i, at;

	json_array_foreach(over, i, item) {
		value = key ? json_get_string(item, key) : NULL;
		at = value ? find(out, key, value) : json_array_size(out);
		if (at < json_array_size(out))
			json_array_set_new(out, at,
					   jsonmerge(json_array_get(out, at), item));
		else
			json_array_append_new(out, json_must(json_deep_copy(item)));
	}
	return out;
}

static json_t *merge_member(const char *name, const json_t *base, const json_t *over)
{
	const char *key = NULL;

	if (json_is_array(base) && json_is_array(over) && is_merged(name, &key))
		return merge_lists(base, over, key);
	return jsonmerge(base, over);
}

json_t *jsonmerge(const json_t *base, const json_t *over)
{
	json_t *out, *value;
	const char *name;

	if (!json_is_object(over))
		return json_must(json_deep_copy(over));
	out = json_is_object(base) ? json_must(json_deep_copy(base)) : json_object();
	json_object_foreach((json_t *)over, name, value) {
		if (json_is_null(value))
			json_object_del(out, name);
		else
			json_put(out, name,
				 merge_member(name, json_object_get(out, name), value));
	}
	return out;
}
