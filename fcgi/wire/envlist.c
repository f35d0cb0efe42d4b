/* SPDX-License-Identifier: MIT */
#include "wire/envlist.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/json.h"
#include "base/mem.h"
#include "wire/args.h"

static bool is_name(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!((s[i] >= 'A' && s[i] <= 'Z') || (s[i] >= 'a' && s[i] <= 'z') ||
		      s[i] == '_' || (i > 0 && s[i] >= '0' && s[i] <= '9')))
			return false;
	return n > 0;
}

static int check_entry(const char *name, const char *key, size_t key_len,
		       size_t value_len, struct err *e)
{
	if (!is_name(key, key_len))
		return err_set(e, ERR_INVALID,
			       "%s: \"%.*s\" is no environment name; use letters, digits "
			       "and _, not beginning with a digit",
			       name, (int)(key_len > 64 ? 64 : key_len), key);
	if (key_len + 1 + value_len > EXEC_STRING_MAX)
		return err_set(e, ERR_INVALID,
			       "%s: %.64s is too long; one entry holds at most %d bytes. "
			       "Write the value to a file instead",
			       name, key, EXEC_STRING_MAX);
	return 0;
}

static int add_object(json_t *map, const json_t *obj, const char *name, struct err *e)
{
	char where[ARG_NAME_SIZE];
	const char *key, *value;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)obj, key, v) {
		arg_name((struct arg){obj, name, key}, where);
		if (arg_text(v, where, &value, e) < 0 ||
		    check_entry(name, key, strlen(key), strlen(value), e) < 0)
			return -1;
		json_put(map, key, json_string(value));
	}
	return 0;
}

static int add_array(json_t *map, const json_t *arr, const char *name, struct err *e)
{
	char where[ARG_NAME_SIZE];
	const char *entry, *eq;
	size_t i;

	for (i = 0; i < json_array_size(arr); i++) {
		AUTO_FREE char *key = NULL;

		snprintf(where, sizeof where, "%.120s[%zu]", name, i);
		if (arg_text(json_array_get(arr, i), where, &entry, e) < 0)
			return -1;
		eq = strchr(entry, '=');
		if (!eq)
			return err_set(e, ERR_INVALID, "%s must be \"NAME=VALUE\"",
				       where);
		if (check_entry(where, entry, (size_t)(eq - entry), strlen(eq + 1), e) <
		    0)
			return -1;
		key = xstrndup(entry, (size_t)(eq - entry));
		json_put(map, key, json_string(eq + 1));
	}
	return 0;
}

int envlist_parse(const json_t *value, const char *name, json_t **ret, struct err *e)
{
	AUTO_JSON *map = json_must(json_object());

	if (value && !json_is_object(value) && !json_is_array(value))
		return err_set(e, ERR_INVALID,
			       "%s must be an object of strings or an array of "
			       "\"NAME=VALUE\", not %s",
			       name, arg_type_name(value));
	if ((json_is_object(value) && add_object(map, value, name, e) < 0) ||
	    (json_is_array(value) && add_array(map, value, name, e) < 0))
		return -1;
	*ret = MOVE(map);
	return 0;
}

int envlist_merge(const json_t *base, const json_t *over, const char *name, char ***ret,
		  size_t *io_bytes, struct err *e)
{
	AUTO_JSON *all = json_must(json_copy((json_t *)(uintptr_t)base));
	size_t n = 0, bytes = 0;
	const char *key;
	json_t *v;
	char **list;

	if (json_object_update(all, (json_t *)(uintptr_t)over) < 0)
		abort();
	json_object_foreach(all, key, v)
		bytes += strlen(key) + json_string_length(v) + 2;
	if (json_object_size(all) > ENV_ENTRIES_MAX || bytes > ENV_BYTES_MAX)
		return err_set(e, ERR_INVALID,
			       "%s: an environment has at most %d entries and %d bytes; "
			       "write large values to files instead",
			       name, ENV_ENTRIES_MAX, ENV_BYTES_MAX);
	list = xcalloc(json_object_size(all) + 1, sizeof *list);
	json_object_foreach(all, key, v)
		list[n++] = xasprintf("%s=%s", key, json_string_value(v));
	*io_bytes += bytes;
	*ret = list;
	return 0;
}
