/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_AUDIT_H
#define RUNNER_AUDIT_H

#include "runner/state.h"

/* Over the network; by an edit of the database; by itself. */
enum audit_actor { AUDIT_CLIENT, AUDIT_ADMIN, AUDIT_SERVER };

/* Who did what to what, in the transaction of this turn. */
struct audit_event {
	enum audit_actor actor;
	const char *tenant, *action, *subject;
};

void audit(struct runner *r, const struct audit_event *event);

#endif
