/* SPDX-License-Identifier: MIT */
#ifndef BASE_YAML_H
#define BASE_YAML_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

/*
 * One YAML document as JSON: what kubeconfig files and pod templates are. Bounded
 * like json_parse(): at most 1 MiB, 64 levels, 100 000 values. Refused, with the
 * line: aliases (they multiply), tags, merge keys, two keys of one name, keys that
 * are no scalars, a second document.
 *
 * A plain scalar is null, a boolean, an integer (0x and 0o too; a leading 0 is
 * octal, as kubectl reads file modes) or a number; `yes` and `on` are strings, as in
 * YAML 1.2. Anything else, and whatever is quoted, is a string. An empty document
 * is null. libyaml inside. Any thread.
 */
int yaml_parse(const char *p, size_t n, json_t **ret, struct err *e);

#endif
