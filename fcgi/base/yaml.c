/* SPDX-License-Identifier: MIT */
#include "base/yaml.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/json.h"
#include "base/mem.h"

enum { BYTES_MAX = 1 << 20, DEPTH_MAX = 64, VALUES_MAX = 100000 };

/* A mapping or sequence that is being filled; the document owns it. */
struct level {
	json_t *container;
	char *key; /* of a mapping: read, its value is to come */
};

struct reader {
	yaml_parser_t parser;
	struct level levels[DEPTH_MAX];
	size_t depth, values;
	json_t *root;
	struct err *e;
};

static int refuse(struct reader *r, const yaml_mark_t *at, const char *why)
{
	return err_set(r->e, ERR_INVALID, "not usable YAML: line %zu: %s", at->line + 1,
		       why);
}

/* ---- scalars */

static bool is_one_of(const char *s, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(s, *words) == 0)
			return true;
	return false;
}

static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
static const char *const trues[] = {"true", "True", "TRUE", NULL};
static const char *const falses[] = {"false", "False", "FALSE", NULL};

/* 10, -7, 0x1f, 0o17, 017: digits of one base and nothing else; base 0: none. */
static int base_of(const char **digits)
{
	const char *s = *digits;
	int base = 10;
	const char *allowed = "0123456789";

	if (s[0] == '0' && s[1] == 'x') {
		base = 16;
		allowed = "0123456789abcdefABCDEF";
		s += 2;
	} else if (s[0] == '0' && s[1]) {
		base = 8;
		allowed = "01234567";
		s += s[1] == 'o' ? 2 : 1;
	}
	*digits = s;
	return *s && strspn(s, allowed) == strlen(s) ? base : 0;
}

/* True: it is written as an integer. NULL in *ret: of more than 64 bits. */
static bool read_integer(const char *s, json_t **ret)
{
	bool minus = *s == '-';
	const char *digits = s + (*s == '-' || *s == '+');
	int base = base_of(&digits);
	long long v;

	if (base == 0)
		return false;
	errno = 0;
	v = strtoll(digits, NULL, base);
	*ret = errno ? NULL : json_must(json_integer(minus ? -v : v));
	return true;
}

/* 1.5, .5, -1e9: what JSON and YAML both call a number. */
static bool read_real(const char *s, json_t **ret)
{
	const char *p = s + (*s == '-' || *s == '+');
	size_t whole = strspn(p, "0123456789"), part = 0;
	char *end;
	double v;

	p += whole;
	if (*p == '.') {
		part = strspn(p + 1, "0123456789");
		p += 1 + part;
	}
	if (whole + part == 0)
		return false;
	if (*p == 'e' || *p == 'E') {
		p += 1 + (p[1] == '-' || p[1] == '+');
		if (!*p)
			return false;
		p += strspn(p, "0123456789");
	}
	if (*p)
		return false;
	v = strtod(s, &end);
	*ret = json_real(v); /* NULL: infinite */
	return true;
}

static int read_plain(struct reader *r, const yaml_event_t *ev, json_t **ret)
{
	const char *s = (const char *)ev->data.scalar.value;

	if (is_one_of(s, nulls))
		*ret = json_null();
	else if (is_one_of(s, trues))
		*ret = json_true();
	else if (is_one_of(s, falses))
		*ret = json_false();
	else if (!read_integer(s, ret) && !read_real(s, ret))
		*ret = json_must(json_string(s));
	return *ret ? 0 : refuse(r, &ev->start_mark, "a number that is too large");
}

static int read_scalar(struct reader *r, const yaml_event_t *ev, json_t **ret)
{
	const char *s = (const char *)ev->data.scalar.value;

	if (memchr(s, '\0', ev->data.scalar.length))
		return refuse(r, &ev->start_mark, "a NUL byte in a string");
	if (ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		return read_plain(r, ev, ret);
	*ret = json_must(json_string(s));
	return 0;
}

/* ---- the tree */

/* Takes v. */
static int attach(struct reader *r, const yaml_event_t *ev, json_t *v)
{
	struct level *l;

	if (++r->values > VALUES_MAX) {
		json_decref(v);
		return refuse(r, &ev->start_mark, "too many values");
	}
	if (r->depth == 0) {
		r->root = v;
		return 0;
	}
	l = &r->levels[r->depth - 1];
	if (json_is_array(l->container)) {
		if (json_array_append_new(l->container, v) < 0)
			abort();
		return 0;
	}
	json_put(l->container, l->key, v);
	free(l->key);
	l->key = NULL;
	return 0;
}

/* Scalars at the place of a key; the container is a mapping without one. */
static int take_key(struct reader *r, const yaml_event_t *ev)
{
	struct level *l = &r->levels[r->depth - 1];
	const char *s = (const char *)ev->data.scalar.value;

	if (memchr(s, '\0', ev->data.scalar.length) || strcmp(s, "<<") == 0)
		return refuse(r, &ev->start_mark, "a merge key or a NUL byte");
	if (json_object_get(l->container, s))
		return refuse(r, &ev->start_mark, "a key that was there already");
	l->key = xstrdup(s);
	return 0;
}

static bool wants_key(const struct reader *r)
{
	const struct level *l = r->depth ? &r->levels[r->depth - 1] : NULL;

	return l && json_is_object(l->container) && !l->key;
}

static int open_level(struct reader *r, const yaml_event_t *ev, json_t *container)
{
	if (wants_key(r) || r->depth == DEPTH_MAX) {
		json_decref(container);
		return refuse(r, &ev->start_mark,
			      r->depth == DEPTH_MAX ? "nested too deep"
						    : "a key that is no scalar");
	}
	if (attach(r, ev, container) < 0)
		return -1;
	r->levels[r->depth++] = (struct level){.container = container};
	return 0;
}

static int take_scalar(struct reader *r, const yaml_event_t *ev)
{
	json_t *v = NULL;

	if (ev->data.scalar.tag)
		return refuse(r, &ev->start_mark, "a tag");
	if (wants_key(r))
		return take_key(r, ev);
	return read_scalar(r, ev, &v) < 0 ? -1 : attach(r, ev, v);
}

static int take_event(struct reader *r, const yaml_event_t *ev)
{
	switch (ev->type) {
	case YAML_SCALAR_EVENT:
		return take_scalar(r, ev);
	case YAML_MAPPING_START_EVENT:
		if (ev->data.mapping_start.tag)
			return refuse(r, &ev->start_mark, "a tag");
		return open_level(r, ev, json_must(json_object()));
	case YAML_SEQUENCE_START_EVENT:
		if (ev->data.sequence_start.tag)
			return refuse(r, &ev->start_mark, "a tag");
		return open_level(r, ev, json_must(json_array()));
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		r->depth--;
		return 0;
	case YAML_ALIAS_EVENT:
		return refuse(r, &ev->start_mark,
			      "an alias (*name): write its value out");
	case YAML_DOCUMENT_START_EVENT:
		if (r->root)
			return refuse(r, &ev->start_mark, "a second document");
		return 0;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		return 0;
	}
	return 0;
}

static int read_all(struct reader *r)
{
	yaml_event_type_t type = YAML_NO_EVENT;
	yaml_event_t ev;
	int rc = 0;

	while (rc == 0 && type != YAML_STREAM_END_EVENT) {
		if (!yaml_parser_parse(&r->parser, &ev))
			return refuse(r, &r->parser.problem_mark,
				      r->parser.problem ? r->parser.problem
							: "it cannot be read");
		type = ev.type;
		rc = take_event(r, &ev);
		yaml_event_delete(&ev);
	}
	return rc;
}

int yaml_parse(const char *p, size_t n, json_t **ret, struct err *e)
{
	struct reader r = {.e = e};
	size_t i;
	int rc;

	if (n > BYTES_MAX)
		return err_set(e, ERR_LIMIT, "YAML of more than %d bytes", BYTES_MAX);
	if (!yaml_parser_initialize(&r.parser))
		abort();
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)p, n);
	rc = read_all(&r);
	yaml_parser_delete(&r.parser);
	for (i = 0; i < r.depth; i++)
		free(r.levels[i].key);
	if (rc < 0) {
		json_decref(r.root);
		return -1;
	}
	*ret = r.root ? r.root : json_null();
	return 0;
}
