/* SPDX-License-Identifier: MIT */
#include "runner/sandboxall.h"

#include "runner/agentconn.h"
#include "runner/filejob.h"
#include "runner/sandboxes.h"
#include "runner/sandboxrec.h"
#include "runner/sandboxstep.h"
#include "runner/strangers.h"
#include "runner/waiters.h"

static void sandboxes_each(struct runner *r, void (*fn)(struct sandbox *sb))
{
	struct sandbox *next;

	for (size_t i = 0; i < HASH_SIZE; i++)
		for (struct sandbox *sb = r->sandboxes[i]; sb; sb = next) {
			next = sb->hash_next;
			fn(sb);
		}
}

void sandboxes_kick_all(struct runner *r)
{
	sandboxes_each(r, sandbox_kick);
}

void sandboxes_stop_all(struct runner *r)
{
	sandboxes_each(r, sandbox_stop);
}

bool sandboxes_busy(const struct runner *r)
{
	for (size_t i = 0; i < HASH_SIZE; i++)
		for (const struct sandbox *sb = r->sandboxes[i]; sb; sb = sb->hash_next)
			if (sb->job)
				return true;
	return false;
}

bool sandboxes_any_creating(const struct runner *r)
{
	for (size_t i = 0; i < HASH_SIZE; i++)
		for (const struct sandbox *sb = r->sandboxes[i]; sb; sb = sb->hash_next)
			if (sb->state == SANDBOX_CREATING)
				return true;
	return false;
}

void sandboxes_heartbeat(struct runner *r, int64_t mono_ms)
{
	struct sandbox *next;

	for (size_t i = 0; i < HASH_SIZE; i++)
		for (struct sandbox *sb = r->sandboxes[i]; sb; sb = next) {
			next = sb->hash_next;
			if (sb->conn)
				filejobs_guard(sb, mono_ms);
			if (sb->conn)
				strangers_end(sb, mono_ms);
			if (sb->conn)
				agentconn_heartbeat(sb->conn, mono_ms);
		}
}

static void drop_one(struct sandbox *sb)
{
	sandbox_unlist(sb);
	sandbox_link_drop(sb);
	sb->dropped = true;
	if (!sb->job)
		sandbox_free(sb);
}

void sandboxes_drop_all(struct runner *r)
{
	struct err why = ERR_INIT;

	err_set(&why, ERR_STORE, "the database cannot be written; try again later");
	for (size_t i = 0; i < HASH_SIZE; i++)
		for (struct sandbox *sb = r->sandboxes[i]; sb; sb = sb->hash_next) {
			waiters_answer(sb, true, false, &why);
			waiters_answer(sb, false, false, &why);
			filejobs_fail(sb, &why);
		}
	sandboxes_each(r, drop_one);
}
