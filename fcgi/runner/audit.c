/* SPDX-License-Identifier: MIT */
#include "runner/audit.h"

#include "base/clock.h"
#include "base/log.h"
#include "runner/turn.h"

static const char *const actors[] = {
	[AUDIT_CLIENT] = "client",
	[AUDIT_ADMIN] = "admin",
	[AUDIT_SERVER] = "server",
};

void audit(struct runner *r, const struct audit_event *event)
{
	struct err e = ERR_INIT;
	const struct store_audit_row row = {.at = clock_now_ms(),
					    .tenant = event->tenant,
					    .actor = actors[event->actor],
					    .action = event->action,
					    .subject = event->subject};

	if (store_audit(r->store, &row, &e) < 0)
		log_error("audit: %s", e.msg);
	turn_dirty(r);
}
