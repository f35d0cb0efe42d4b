/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_CAPS_H
#define BACKEND_CAPS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/*
 * A set of Linux capabilities, bit n = capability n. Pure. The set of a sandbox
 * is SANDBOX_CAP_DROP taken from, then SANDBOX_CAP_ADD put to, the usual
 * container set, and always KILL: without it the agent, root in its own pid
 * namespace, could not end a command of user 1000.
 */
struct caps {
	uint64_t bits;
};

int caps_parse(const char *drop, const char *add, struct caps *ret, struct err *e);
bool caps_has(const struct caps *c, const char *name); /* with CAP_ */

/* An array of "CAP_…" strings; the caller's. */
json_t *caps_to_json(const struct caps *c);

#endif
