/* SPDX-License-Identifier: MIT */
#include "mcp/session.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/mem.h"
#include "mcp/ask.h"
#include "mcp/logmsg.h"
#include "wire/idenc.h"

/*
 * A set-associative cache: ids are random, so their first digits are the hash
 * and a full set loses its oldest entry. A stranger cannot aim at a set: only
 * ids that we made get in.
 */
enum { SETS = 1024, WAYS = 4, BELIEVE_MS = 1000, TENANT_SIZE = 65 };

struct entry {
	char id[ID_HEX_LEN + 1]; /* "" = free */
	char tenant[TENANT_SIZE];
	struct session_info info;
	int64_t checked_ms;
	int64_t used_ms;
	bool touched;
};

struct sessions {
	pthread_mutex_t lock;
	struct entry set[SETS][WAYS];
};

struct sessions *sessions_new(void)
{
	struct sessions *s = xcalloc(1, sizeof(*s));

	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void sessions_free(struct sessions *s)
{
	if (!s)
		return;
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static struct entry *set_of(struct sessions *s, const char *id)
{
	unsigned hash = 0;
	size_t i;

	for (i = 0; i < 4; i++) /* 16 bits of lower-case hex */
		hash = hash << 4 |
		       (unsigned)(id[i] <= '9' ? id[i] - '0' : id[i] - 'a' + 10);
	return s->set[hash % SETS];
}

static struct entry *find(struct sessions *s, const char *id)
{
	struct entry *set = set_of(s, id);
	size_t i;

	for (i = 0; i < WAYS; i++)
		if (strcmp(set[i].id, id) == 0)
			return &set[i];
	return NULL;
}

/* The entry of id, or the place that it may take. */
static struct entry *place_for(struct sessions *s, const char *id)
{
	struct entry *set = set_of(s, id);
	struct entry *oldest = &set[0];
	struct entry *e = find(s, id);
	size_t i;

	if (e)
		return e;
	for (i = 1; i < WAYS; i++)
		if (set[i].used_ms < oldest->used_ms)
			oldest = &set[i];
	return oldest;
}

void sessions_add(struct sessions *s, const char *tenant, const char *id,
		  const struct session_info *info)
{
	int64_t now = clock_mono_ms();
	struct entry *e;

	if (!idenc_is_session_id(id) || strlen(tenant) >= TENANT_SIZE)
		return;
	pthread_mutex_lock(&s->lock);
	e = place_for(s, id);
	*e = (struct entry){
		.info = *info, .checked_ms = now, .used_ms = now, .touched = true};
	snprintf(e->id, sizeof(e->id), "%s", id);
	snprintf(e->tenant, sizeof(e->tenant), "%s", tenant);
	pthread_mutex_unlock(&s->lock);
}

/* Does this to the session's entry, if there is one. */
static void change(struct sessions *s, const char *id, void (*how)(struct entry *e))
{
	struct entry *e;

	if (!idenc_is_session_id(id))
		return;
	pthread_mutex_lock(&s->lock);
	e = find(s, id);
	if (e)
		how(e);
	pthread_mutex_unlock(&s->lock);
}

static void forget(struct entry *e)
{
	*e = (struct entry){.id = ""};
}

void sessions_forget(struct sessions *s, const char *id)
{
	change(s, id, forget);
}

static void doubt(struct entry *e)
{
	e->checked_ms = INT64_MIN / 2;
}

void sessions_doubt(struct sessions *s, const char *id)
{
	change(s, id, doubt);
}

/* True if the cache knows it well enough; it is then marked as used. */
static bool check_cached(struct sessions *s, const char *tenant, const char *id,
			 struct session_info *ret)
{
	int64_t now = clock_mono_ms();
	struct entry *e;
	bool good;

	pthread_mutex_lock(&s->lock);
	e = find(s, id);
	good = e && now - e->checked_ms < BELIEVE_MS && strcmp(e->tenant, tenant) == 0;
	if (good) {
		e->used_ms = now;
		e->touched = true;
		*ret = e->info;
	}
	pthread_mutex_unlock(&s->lock);
	return good;
}

int sessions_check(struct sessions *s, const struct mcp_reads *r, const char *tenant,
		   const char *id, struct session_info *ret, struct err *e)
{
	const struct mcp_version *v;
	struct mcp_session row = {0};
	int rc;

	if (!idenc_is_session_id(id))
		return 0;
	if (check_cached(s, tenant, id, ret))
		return 1;
	rc = r->session(r->arg, tenant, id, &row, e);
	if (rc == 0)
		sessions_forget(s, id);
	if (rc <= 0)
		return rc;
	v = mcp_version_find(row.version);
	*ret = (struct session_info){
		.version = v && v->era == MCP_LEGACY ? v : mcp_version_newest(MCP_LEGACY),
		.can = ask_kinds_of(row.client_can),
		.log_level = logmsg_level(row.log_level)};
	sessions_add(s, tenant, id, ret);
	return 1;
}

json_t *sessions_drain(struct sessions *s)
{
	struct entry *e = &s->set[0][0];
	json_t *ids = NULL;
	size_t i;

	pthread_mutex_lock(&s->lock);
	for (i = 0; i < (size_t)SETS * WAYS; i++, e++) {
		if (!e->touched)
			continue;
		e->touched = false;
		if (!ids)
			ids = json_array();
		json_array_append_new(ids, json_string(e->id));
	}
	pthread_mutex_unlock(&s->lock);
	return ids;
}
