/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_AUDIT_H
#define RUNNER_AUDIT_H

#include "runner/state.h"

/* Who did what to what, in the transaction of this turn. */
void audit(struct runner *r, const char *tenant, const char *action, const char *subject);

#endif
