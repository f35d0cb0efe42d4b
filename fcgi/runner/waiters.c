/* SPDX-License-Identifier: MIT */
#include "runner/waiters.h"

#include <stdlib.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"
#include "runner/turn.h"

static json_t *sandbox_json(const struct sandbox *sb)
{
	char created[CLOCK_RFC3339_SIZE], expires[CLOCK_RFC3339_SIZE];

	return json_pack(
		"{s:{s:s,s:s,s:s,s:s,s:s,s:s}}", "sandbox", "identifier", sb->identifier,
		"container_id", sb->container_id, "name", sb->name, "created_at",
		clock_format_rfc3339(sb->created_at, created), "expires_at",
		clock_format_rfc3339(sb->expires_at, expires), "image", sb->image);
}

void waiters_answer(struct sandbox *sb, bool restart, bool existed, const struct err *why)
{
	struct waiter **p = &sb->waiters;

	while (*p) {
		struct waiter *w = *p;

		if (w->restart != restart) {
			p = &w->next;
			continue;
		}
		*p = w->next;
		if (why)
			edges_err(sb->r->edges, w->to, why);
		else if (restart)
			turn_answer(sb->r, w->to, sandbox_json(sb));
		else
			turn_answer(sb->r, w->to,
				    json_pack("{s:b,s:s}", "deleted", existed,
					      "identifier", sb->identifier));
		free(w);
	}
}

bool waiters_want_restart(const struct sandbox *sb)
{
	for (const struct waiter *w = sb->waiters; w; w = w->next)
		if (w->restart)
			return true;
	return sb->create_again;
}

void waiters_add(struct sandbox *sb, const struct replyto *to, bool restart)
{
	struct waiter *w = xcalloc(1, sizeof(*w));

	*w = (struct waiter){.next = sb->waiters, .to = *to, .restart = restart};
	sb->waiters = w;
}

void waiters_free(struct sandbox *sb)
{
	struct waiter *next;

	for (struct waiter *w = MOVE(sb->waiters); w; w = next) {
		next = w->next;
		free(w);
	}
}
