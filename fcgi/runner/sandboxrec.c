/* SPDX-License-Identifier: MIT */
#include "runner/sandboxrec.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "runner/hash.h"
#include "runner/runs.h"
#include "runner/sandboxes.h"
#include "runner/turn.h"
#include "runner/waiters.h"

enum { BOOT_HEX = 2 * sizeof(((struct sandbox *)NULL)->boot_id) };

static size_t slot_of(const char *tenant, const char *identifier)
{
	return (hash_string(identifier) ^ hash_string(tenant)) & (HASH_SIZE - 1);
}

struct sandbox *sandbox_find(struct runner *r, const char *tenant, const char *identifier)
{
	struct sandbox *sb = r->sandboxes[slot_of(tenant, identifier)];

	while (sb && (strcmp(sb->identifier, identifier) != 0 ||
		      strcmp(sb->tenant, tenant) != 0))
		sb = sb->hash_next;
	return sb;
}

struct sandbox *sandbox_named(const struct runner *r, const char *name)
{
	for (size_t i = 0; i < HASH_SIZE; i++)
		for (struct sandbox *sb = r->sandboxes[i]; sb; sb = sb->hash_next)
			if (strcmp(sb->name, name) == 0)
				return sb;
	return NULL;
}

void sandbox_set_name(struct sandbox *sb, const char *name)
{
	snprintf(sb->name, sizeof(sb->name), "%s", name);
}

static struct sandbox *sandbox_new(struct runner *r, const char *tenant,
				   const char *identifier)
{
	struct sandbox *sb = xcalloc(1, sizeof(*sb));
	struct sandbox **slot = &r->sandboxes[slot_of(tenant, identifier)];

	sb->r = r;
	sb->tenant = xstrdup(tenant);
	sb->identifier = xstrdup(identifier);
	sb->runs_tail = &sb->runs;
	backend_sandbox_name(sb->own_name, sizeof(sb->own_name), r->args->instance_id,
			     tenant, identifier);
	sandbox_set_name(sb, sb->own_name);
	sb->hash_next = *slot;
	*slot = sb;
	r->nsandboxes++;
	return sb;
}

/* Names hold 32 bits of a hash: two identifiers must never share one sandbox. */
static int check_name_free(const struct runner *r, const char *tenant,
			   const char *identifier, struct err *e)
{
	char name[sizeof(((struct sandbox *)NULL)->own_name)];

	backend_sandbox_name(name, sizeof(name), r->args->instance_id, tenant,
			     identifier);
	for (size_t i = 0; i < HASH_SIZE; i++)
		for (const struct sandbox *sb = r->sandboxes[i]; sb; sb = sb->hash_next)
			if (strcmp(sb->own_name, name) == 0)
				return err_set(e, ERR_CONFLICT,
					       "the sandbox name of this identifier "
					       "(%s) is taken by another identifier; "
					       "choose another one",
					       name);
	return 0;
}

int sandbox_get(struct runner *r, const char *tenant, const char *identifier,
		struct sandbox **ret, struct err *e)
{
	struct sandbox *sb = sandbox_find(r, tenant, identifier);

	if (!sb && (int64_t)r->nsandboxes >= r->conf->max_active_sandboxes)
		return err_set(
			e, ERR_LIMIT,
			"there are as many sandboxes as MAX_SANDBOXES allows (%zu); "
			"delete one that is not needed (delete_sandbox), or wait "
			"until one expires",
			r->nsandboxes);
	if (!sb && check_name_free(r, tenant, identifier, e) < 0)
		return -1;
	*ret = sb ? sb : sandbox_new(r, tenant, identifier);
	return 0;
}

struct sandbox *sandbox_from_row(struct runner *r, const struct store_sandbox *row)
{
	struct sandbox *sb = sandbox_new(r, row->tenant, row->identifier);

	sb->has_row = true;
	if (strlen(row->name) < sizeof(sb->name))
		sandbox_set_name(sb, row->name);
	sb->container_id = xstrdup(row->container_id ? row->container_id : "");
	sb->image = xstrdup(row->image ? row->image : "");
	sb->fingerprint = xstrdup(row->policy_fingerprint ? row->policy_fingerprint : "");
	sb->created_at = row->created_at;
	sb->expires_at = row->expires_at;
	sb->ttl_s = row->ttl_s;
	sb->has_boot = row->agent_boot && id_is_hex(row->agent_boot, BOOT_HEX);
	sb->boot_restored = sb->has_boot;
	if (sb->has_boot)
		id_hex_decode(row->agent_boot, sizeof(sb->boot_id), sb->boot_id);
	return sb;
}

void sandbox_acknowledge_later(struct sandbox *sb)
{
	if (sb->ack_listed)
		return;
	sb->ack_listed = true;
	sb->ack_next = sb->r->to_ack;
	sb->r->to_ack = sb;
}

static void acknowledge_never(struct sandbox *sb)
{
	struct sandbox **p = &sb->r->to_ack;

	if (!sb->ack_listed)
		return;
	while (*p != sb)
		p = &(*p)->ack_next;
	*p = sb->ack_next;
	sb->ack_listed = false;
}

void sandboxes_acknowledge(struct runner *r)
{
	struct sandbox *sb;

	while ((sb = r->to_ack)) {
		r->to_ack = sb->ack_next;
		sb->ack_listed = false;
		if (sb->conn)
			runs_acknowledge(sb);
		if (sb->bound)
			sandbox_is_bound(sb);
	}
}

static void on_timer_closed(uv_handle_t *h)
{
	free(h);
}

void sandbox_free(struct sandbox *sb)
{
	agentconn_free(MOVE(sb->conn));
	acknowledge_never(sb);
	if (sb->retry)
		uv_close((uv_handle_t *)sb->retry, on_timer_closed);
	waiters_free(sb);
	free(sb->forget);
	free(sb->strangers);
	free(sb->tenant);
	free(sb->identifier);
	free(sb->container_id);
	free(sb->image);
	free(sb->fingerprint);
	free(sb);
}

void sandbox_unlist(struct sandbox *sb)
{
	struct sandbox **p = &sb->r->sandboxes[slot_of(sb->tenant, sb->identifier)];

	while (*p != sb)
		p = &(*p)->hash_next;
	*p = sb->hash_next;
	sb->r->nsandboxes--;
}

/* Nothing is left of it anywhere: the record goes. */
bool sandbox_free_if_nothing(struct sandbox *sb)
{
	if (sb->state != SANDBOX_ABSENT || sb->has_row || sb->runs || sb->waiters ||
	    sb->files || sb->job)
		return false;
	sandbox_unlist(sb);
	sandbox_free(sb);
	return true;
}

void sandbox_store(struct sandbox *sb, enum store_sandbox_state state, const char *error)
{
	struct err e = ERR_INIT;
	char boot[BOOT_HEX + 1];
	const struct store_sandbox row = {
		.tenant = sb->tenant,
		.identifier = sb->identifier,
		.name = sb->name,
		.backend = sb->r->conf->backend,
		.container_id = sb->container_id,
		.image = sb->image,
		.policy_fingerprint = sb->fingerprint,
		.state = state,
		.created_at = sb->created_at,
		.expires_at = sb->expires_at,
		.last_used_at = clock_now_ms(),
		.ttl_s = sb->ttl_s,
		.error = error,
		.agent_boot = sb->has_boot ? boot : NULL,
	};

	id_hex_encode(sb->boot_id, sizeof(sb->boot_id), boot);
	/* A store that fails is noticed by the commit. */
	if (store_sandbox_put(sb->r->store, &row, &e) < 0)
		log_error("sandbox %s: %s", sb->name, e.msg);
	sb->has_row = true;
	turn_dirty(sb->r);
}

/*
 * A lease that was written a moment ago is as good as a new one: busy sandboxes
 * would write theirs twice per run. A moment is a second, or less for a short TTL.
 */
static bool is_leased(const struct sandbox *sb, int64_t now, int64_t ttl_s)
{
	int64_t moment = ttl_s >= 20 ? 1000 : ttl_s * 50;

	return ttl_s == sb->ttl_s && now >= sb->leased_at && now - sb->leased_at < moment;
}

void sandbox_extend(struct sandbox *sb, int64_t now, int64_t ttl_s)
{
	struct err e = ERR_INIT;
	int64_t until = now + ttl_s * 1000;

	if (sb->has_row && is_leased(sb, now, ttl_s))
		return;
	sb->ttl_s = ttl_s;
	sb->leased_at = now;
	if (!sb->has_row) {
		sb->expires_at = sb->expires_at > until ? sb->expires_at : until;
		return;
	}
	if (store_sandbox_extend(sb->r->store,
				 &(struct store_lease){.tenant = sb->tenant,
						       .identifier = sb->identifier,
						       .expires_at = until,
						       .used_at = now},
				 &sb->expires_at, &e) < 0)
		log_error("sandbox %s: %s", sb->name, e.msg);
	turn_dirty(sb->r);
}

void sandbox_forget_command(struct sandbox *sb, const struct ap_id *id)
{
	if (sb->nforget == sb->forget_cap) {
		sb->forget_cap = sb->forget_cap ? sb->forget_cap * 2 : 8;
		sb->forget = xreallocarray(sb->forget, sb->forget_cap, sizeof(*id));
	}
	sb->forget[sb->nforget++] = *id;
	sandbox_acknowledge_later(sb);
	turn_dirty(sb->r);
}
