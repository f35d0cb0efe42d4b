/* SPDX-License-Identifier: MIT */
#ifndef WIRE_ARGS_H
#define WIRE_ARGS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Typed reading of a tool's arguments. Every failure is ERR_INVALID and says
 * which argument (commands[2].cwd), which rule, and what to send instead; fit to
 * be shown to a model. null is the same as absent. Pure.
 */
struct arg {
	const json_t *obj; /* borrowed; an object */
	const char *path;  /* of obj: "" at the top, or "options" */
	const char *key;
};

/* The value, or NULL when absent or null. */
const json_t *arg_value(struct arg a);

/* "options.ttl_seconds" of a, shortened to fit; for messages. */
enum { ARG_NAME_SIZE = 160 };
const char *arg_name(struct arg a, char out[static ARG_NAME_SIZE]);

/* These leave *io as it is when the argument is absent. */
int arg_int(struct arg a, int64_t min, int64_t max, int64_t *io, struct err *e);
int arg_bool(struct arg a, bool *io, struct err *e);

/* The text without NUL bytes, borrowed; *ret is NULL when absent. */
int arg_string(struct arg a, const char **ret, struct err *e);

/* An object; *ret is NULL when absent. */
int arg_object(struct arg a, const json_t **ret, struct err *e);

/* The text of v, or a failure that says what v is instead. */
int arg_text(const json_t *v, const char *name, const char **ret, struct err *e);

/* Is it one of the NULL-terminated list of names? */
bool arg_is_one_of(const char *key, const char *const *names);

/* The first member of obj that is none of the names, borrowed; NULL: all are. */
const char *arg_unknown(const json_t *obj, const char *const *names);

/* Refuses a member that is none of the names. */
int arg_only(const json_t *obj, const char *path, const char *const *names,
	     struct err *e);

/* "a string", "a number", … for a message. */
const char *arg_type_name(const json_t *v);

#endif
