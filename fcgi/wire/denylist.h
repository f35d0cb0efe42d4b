/* SPDX-License-Identifier: MIT */
#ifndef WIRE_DENYLIST_H
#define WIRE_DENYLIST_H

#include "base/patterns.h"
#include "wire/runspec.h"

/*
 * ERR_DENIED, naming command and expression, when a command's shell text, or its
 * argv joined with blanks, matches one of the patterns. A courtesy to agents, no
 * boundary: any script can hide what it does. Pure; any thread.
 */
int denylist_check(const struct patterns *p, const struct run_spec *s, struct err *e);

#endif
