/* SPDX-License-Identifier: MIT */
#include "runner/sandboxstep.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"
#include "runner/agentlink.h"
#include "runner/filejob.h"
#include "runner/runs.h"
#include "runner/sandboxjob.h"
#include "runner/sandboxrec.h"
#include "runner/sandboxreport.h"
#include "runner/strangers.h"
#include "runner/warmpool.h"

static const bool transitions[SANDBOX_STATE_COUNT][SANDBOX_STATE_COUNT] = {
	[SANDBOX_ABSENT] = {[SANDBOX_CREATING] = true,
			    [SANDBOX_CONNECTING] = true,
			    [SANDBOX_DELETING] = true},
	[SANDBOX_CREATING] = {[SANDBOX_CONNECTING] = true, [SANDBOX_ABSENT] = true},
	[SANDBOX_CONNECTING] = {[SANDBOX_READY] = true,
				[SANDBOX_ABSENT] = true,
				[SANDBOX_DELETING] = true},
	[SANDBOX_READY] = {[SANDBOX_CONNECTING] = true, [SANDBOX_DELETING] = true},
	[SANDBOX_DELETING] = {[SANDBOX_ABSENT] = true},
};

void sandbox_set_state(struct sandbox *sb, enum sandbox_state to)
{
	assert(transitions[sb->state][to]);
	sb->state = to;
}

void sandbox_link_drop(struct sandbox *sb)
{
	strangers_release(sb);
	agentconn_free(MOVE(sb->conn));
}

static void submit(struct sandbox *sb, enum sandboxjob_kind what)
{
	sb->job = true;
	sandboxjob_submit(sb->r, &(struct sandboxjob_order){
					 .what = what,
					 .spec = {.name = sb->name,
						  .identifier = sb->identifier,
						  .tenant = sb->tenant,
						  .created_at_ms = sb->created_at,
						  .expires_at_ms = sb->expires_at,
						  .fresh = sb->wipe},
					 .done = sandbox_job_done,
					 .owner = sb});
}

static void begin_life(struct sandbox *sb)
{
	sb->created_at = clock_now_ms();
	if (sb->expires_at <= sb->created_at)
		sb->expires_at =
			sb->created_at +
			(sb->ttl_s ? sb->ttl_s : sb->r->conf->default_ttl_s) * 1000;
	sb->create_again = false;
}

void sandbox_begin_create(struct sandbox *sb)
{
	if (!sb->has_row)
		warmpool_missed(sb->r->warm);
	sandbox_set_state(sb, SANDBOX_CREATING);
	begin_life(sb);
	sb->has_boot = false;
	sandbox_store(sb, STORE_SANDBOX_CREATING, NULL);
	submit(sb, SANDBOXJOB_OPEN);
}

void sandbox_take_words(struct sandbox *sb, char **id, char **image, char **fingerprint)
{
	free(sb->container_id);
	free(sb->image);
	free(sb->fingerprint);
	sb->container_id = *id ? MOVE(*id) : xstrdup(sb->name);
	sb->image = *image ? MOVE(*image) : xstrdup(sb->r->conf->image);
	sb->fingerprint = MOVE(*fingerprint);
}

bool sandbox_bind_warm(struct sandbox *sb)
{
	struct warm_sandbox w;

	if (sb->has_row || !warmpool_take(sb->r->warm, &w))
		return false;
	sandbox_set_state(sb, SANDBOX_CONNECTING);
	begin_life(sb);
	sandbox_set_name(sb, w.name);
	sandbox_take_words(sb, &w.container_id, &w.image, &w.fingerprint);
	memcpy(sb->boot_id, w.boot_id, sizeof(sb->boot_id));
	sb->has_boot = true;
	sb->wipe = false;
	sb->fresh = true;
	sb->stale = sb->again = NULL;
	sb->strikes = 0;
	sb->lost_since_mono = clock_mono_ms();
	agentlink_take(sb, w.conn);
	sandbox_store(sb, STORE_SANDBOX_CREATING, NULL);
	sb->bound = true;
	sandbox_acknowledge_later(sb);
	return true;
}

void sandbox_begin_connect(struct sandbox *sb)
{
	if (sb->state != SANDBOX_CONNECTING)
		sandbox_set_state(sb, SANDBOX_CONNECTING);
	submit(sb, SANDBOXJOB_CONNECT);
}

void sandbox_begin_remove(struct sandbox *sb)
{
	sandbox_link_drop(sb);
	sandbox_set_state(sb, SANDBOX_DELETING);
	sb->remove_next = false;
	sb->removing = true;
	sb->stale = NULL;
	sb->has_boot = false;
	if (sb->has_row)
		sandbox_store(sb, STORE_SANDBOX_DELETING, NULL);
	submit(sb, SANDBOXJOB_REMOVE);
}

void sandbox_begin_stop(struct sandbox *sb, const char *again)
{
	sandbox_link_drop(sb);
	runs_link_lost(sb);
	filejobs_link_lost(sb);
	sandbox_set_state(sb, SANDBOX_DELETING);
	sb->again = again;
	submit(sb, SANDBOXJOB_STOP);
}
