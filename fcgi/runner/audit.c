/* SPDX-License-Identifier: MIT */
#include "runner/audit.h"

#include "base/clock.h"
#include "base/log.h"
#include "runner/turn.h"

void audit(struct runner *r, const char *tenant, const char *action, const char *subject)
{
	struct err e = ERR_INIT;
	const struct store_audit_row row = {.at = clock_now_ms(),
					    .tenant = tenant,
					    .actor = "client",
					    .action = action,
					    .subject = subject};

	if (store_audit(r->store, &row, &e) < 0)
		log_error("audit: %s", e.msg);
	turn_dirty(r);
}
