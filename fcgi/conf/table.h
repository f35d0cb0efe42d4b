/* SPDX-License-Identifier: MIT */
#ifndef CONF_TABLE_H
#define CONF_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * The one table of configuration variables; private to fcgi/conf. A row's value
 * goes to `offset` in struct conf: char * (text, choice, path), bool, int64_t or
 * double by its kind.
 */
enum conf_kind {
	CONF_TEXT,   /* check() says what is allowed; empty is a value */
	CONF_CHOICE, /* one of the words in `words` */
	CONF_PATH,   /* made absolute, from the working folder; empty stays empty */
	CONF_INT,
	CONF_DECIMAL,
	CONF_BOOL,
};

struct conf_row {
	const char *name;
	enum conf_kind kind;
	size_t offset;
	const char *def; /* as it would be written in .env */
	int64_t min, max;
	const char *words;                              /* CONF_CHOICE: "a|b" */
	int (*check)(const char *value, struct err *e); /* NULL: none */
	const char *values; /* CONF_TEXT: the allowed values in words, for the docs */
	const char *doc;
};

struct conf_section {
	const char *title;
	const struct conf_row *rows;
	size_t n;
};

extern const struct conf_section conf_sections[];
extern const size_t conf_nsections;

/* Row i of all sections in order; NULL after the last. */
const struct conf_row *conf_row_at(size_t i);

#endif
