/* SPDX-License-Identifier: MIT */
#ifndef TESTS_MCP_SCHEMA_H
#define TESTS_MCP_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

/*
 * As much of JSON Schema as our own schemas use; an unknown keyword fails, so
 * that none of them is checked by nobody.
 */
static inline bool schema_ok(const json_t *schema, const json_t *v);

static inline bool schema_type_is(const char *type, const json_t *v)
{
	return (strcmp(type, "object") == 0 && json_is_object(v)) ||
	       (strcmp(type, "array") == 0 && json_is_array(v)) ||
	       (strcmp(type, "string") == 0 && json_is_string(v)) ||
	       (strcmp(type, "integer") == 0 && json_is_integer(v)) ||
	       (strcmp(type, "boolean") == 0 && json_is_boolean(v)) ||
	       (strcmp(type, "null") == 0 && json_is_null(v));
}

static inline bool schema_type(const json_t *type, const json_t *v)
{
	const json_t *t;
	size_t i;

	if (json_is_string(type))
		return schema_type_is(json_string_value(type), v);
	json_array_foreach(type, i, t)
		if (schema_type_is(json_string_value(t), v))
			return true;
	return false;
}

static inline bool schema_any(const json_t *list, const json_t *v, bool as_schema)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
		if (as_schema ? schema_ok(one, v) : json_equal(one, v))
			return true;
	return false;
}

static inline bool schema_required(const json_t *names, const json_t *v)
{
	const json_t *name;
	size_t i;

	json_array_foreach(names, i, name)
		if (json_is_object(v) && !json_object_get(v, json_string_value(name)))
			return false;
	return true;
}

static inline bool schema_members(const json_t *schema, const json_t *v)
{
	const json_t *more = json_object_get(schema, "additionalProperties");
	const char *key;
	json_t *member;

	json_object_foreach((json_t *)v, key, member) {
		const json_t *p =
			json_object_get(json_object_get(schema, "properties"), key);

		if (p ? !schema_ok(p, member) : json_is_false(more))
			return false;
		if (!p && json_is_object(more) && !schema_ok(more, member))
			return false;
	}
	return true;
}

static inline bool schema_items(const json_t *items, const json_t *v)
{
	const json_t *item;
	size_t i;

	json_array_foreach(v, i, item)
		if (!schema_ok(items, item))
			return false;
	return true;
}

static inline bool schema_number(const char *key, const json_t *bound, const json_t *v)
{
	json_int_t b = json_integer_value(bound);

	if (strcmp(key, "minimum") == 0)
		return json_integer_value(v) >= b;
	if (strcmp(key, "maximum") == 0)
		return json_integer_value(v) <= b;
	if (strcmp(key, "minItems") == 0)
		return (json_int_t)json_array_size(v) >= b;
	if (strcmp(key, "maxItems") == 0)
		return (json_int_t)json_array_size(v) <= b;
	if (strcmp(key, "minLength") == 0)
		return (json_int_t)json_string_length(v) >= b;
	return strcmp(key, "maxLength") == 0; /* in characters: not counted here */
}

static inline bool schema_keyword(const char *key, const json_t *k, const json_t *schema,
				  const json_t *v)
{
	if (strcmp(key, "type") == 0)
		return schema_type(k, v);
	if (strcmp(key, "enum") == 0)
		return schema_any(k, v, false);
	if (strcmp(key, "anyOf") == 0)
		return schema_any(k, v, true);
	if (strcmp(key, "required") == 0)
		return schema_required(k, v);
	if (strcmp(key, "properties") == 0 || strcmp(key, "additionalProperties") == 0)
		return schema_members(schema, v);
	if (strcmp(key, "items") == 0)
		return schema_items(k, v);
	if (strcmp(key, "description") == 0 || strcmp(key, "default") == 0)
		return true;
	return schema_number(key, k, v);
}

static inline bool schema_ok(const json_t *schema, const json_t *v)
{
	const char *key;
	json_t *k;

	json_object_foreach((json_t *)schema, key, k)
		if (!schema_keyword(key, k, schema, v))
			return false;
	return true;
}

#endif
