/* SPDX-License-Identifier: MIT */
#include "wire/args.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const json_t *arg_value(struct arg a)
{
	const json_t *v = json_object_get(a.obj, a.key);

	return v && !json_is_null(v) ? v : NULL;
}

const char *arg_name(struct arg a, char out[static ARG_NAME_SIZE])
{
	snprintf(out, ARG_NAME_SIZE, "%.80s%s%.64s", a.path, *a.path ? "." : "", a.key);
	return out;
}

const char *arg_type_name(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
	case JSON_REAL:
		return "a number";
	case JSON_TRUE:
	case JSON_FALSE:
		return "a boolean";
	case JSON_NULL:
		return "null";
	}
	return "something else";
}

/* JSON Schema calls 5.0 an integer, and some clients write it so. */
static bool whole_number(const json_t *v, int64_t *ret)
{
	double d;

	if (json_is_integer(v)) {
		*ret = json_integer_value(v);
		return true;
	}
	d = json_is_real(v) ? json_real_value(v) : 0.5;
	if (d < -9007199254740992.0 || d > 9007199254740992.0 || (double)(int64_t)d != d)
		return false;
	*ret = (int64_t)d;
	return true;
}

int arg_int(struct arg a, int64_t min, int64_t max, int64_t *io, struct err *e)
{
	const json_t *v = arg_value(a);
	char name[ARG_NAME_SIZE];
	int64_t n;

	if (!v)
		return 0;
	if (!json_is_number(v))
		return err_set(e, ERR_INVALID,
			       "%s must be a whole number from %" PRId64 " to %" PRId64
			       ", not %s",
			       arg_name(a, name), min, max, arg_type_name(v));
	if (!whole_number(v, &n) || n < min || n > max)
		return err_set(e, ERR_INVALID,
			       "%s must be a whole number from %" PRId64 " to %" PRId64,
			       arg_name(a, name), min, max);
	*io = n;
	return 0;
}

int arg_bool(struct arg a, bool *io, struct err *e)
{
	const json_t *v = arg_value(a);
	char name[ARG_NAME_SIZE];

	if (v && !json_is_boolean(v))
		return err_set(e, ERR_INVALID,
			       "%s must be true or false without quotes, not %s",
			       arg_name(a, name), arg_type_name(v));
	if (v)
		*io = json_is_true(v);
	return 0;
}

int arg_text(const json_t *v, const char *name, const char **ret, struct err *e)
{
	const char *s = json_string_value(v);

	if (!s)
		return err_set(e, ERR_INVALID, "%s must be a string, not %s%s", name,
			       arg_type_name(v),
			       json_is_number(v) || json_is_boolean(v)
				       ? "; put it in double quotes"
				       : "");
	if (strlen(s) != json_string_length(v))
		return err_set(e, ERR_INVALID,
			       "%s must not hold a NUL byte (\\u0000); no program can "
			       "receive one",
			       name);
	*ret = s;
	return 0;
}

int arg_string(struct arg a, const char **ret, struct err *e)
{
	const json_t *v = arg_value(a);
	char name[ARG_NAME_SIZE];

	*ret = NULL;
	return v ? arg_text(v, arg_name(a, name), ret, e) : 0;
}

int arg_object(struct arg a, const json_t **ret, struct err *e)
{
	const json_t *v = arg_value(a);
	char name[ARG_NAME_SIZE];

	if (v && !json_is_object(v))
		return err_set(e, ERR_INVALID, "%s must be an object, not %s",
			       arg_name(a, name), arg_type_name(v));
	*ret = v;
	return 0;
}

bool arg_is_one_of(const char *key, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(*names, key) == 0)
			return true;
	return false;
}

const char *arg_unknown(const json_t *obj, const char *const *names)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)obj, key, v) {
		if (!arg_is_one_of(key, names))
			return key;
	}
	return NULL;
}

int arg_only(const json_t *obj, const char *path, const char *const *names, struct err *e)
{
	const char *key = arg_unknown(obj, names);
	AUTO_BUF known = BUF_INIT(400);
	char name[ARG_NAME_SIZE];

	if (!key)
		return 0;
	for (size_t i = 0; names[i]; i++)
		buf_printf(&known, "%s%s", i ? ", " : "", names[i]);
	return err_set(e, ERR_INVALID, "%s is not known here; what can be sent: %s",
		       arg_name((struct arg){obj, path, key}, name), known.p);
}
