/* SPDX-License-Identifier: MIT */
#include "runner/requests.h"

#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "runner/audit.h"
#include "runner/filejob.h"
#include "runner/recovery.h"
#include "runner/runrows.h"
#include "runner/runs.h"
#include "runner/sandboxes.h"
#include "runner/sandboxrec.h"
#include "runner/turn.h"
#include "runner/warmpool.h"
#include "wire/idenc.h"

enum {
	SESSION_TEXT_MAX = 256,
	REASON_MAX = 500,
	TOUCH_MAX = 10000,
	METRICS_MAX = 64 * 1024,
	LEVEL_MAX = 16,
	URI_MAX = 8192,
};

/* A string of the message; "" when it is not there or no string. */
static const char *text_of(const json_t *body, const char *key)
{
	const char *s = json_string_value(json_object_get(body, key));

	return s ? s : "";
}

static int tenant_of(const json_t *body, const char **ret, struct err *e)
{
	*ret = text_of(body, "tenant");
	return idenc_is_tenant(*ret) ? 0 : err_set(e, ERR_INVALID, "bad tenant");
}

static int run_id_of(const json_t *body, const char **ret, struct err *e)
{
	*ret = text_of(body, "run_id");
	return idenc_is_run_id(*ret) ? 0 : err_set(e, ERR_INVALID, "bad run_id");
}

static int on_run(struct runner *r, struct replyto to, const json_t *body, struct err *e)
{
	struct run_request q = {.args = json_object_get(body, "args"), .to = to};

	if (tenant_of(body, &q.tenant, e) < 0 || run_id_of(body, &q.run_id, e) < 0)
		return -1;
	return runs_accept(r, &q, e);
}

/* It is kept and told with the run for ever, so it is a sentence and no more. */
static char *cut_reason(const char *reason)
{
	size_t n = strnlen(reason, REASON_MAX);

	return xstrndup(reason, n - utf8_incomplete_tail(reason, n));
}

static int on_cancel(struct runner *r, struct replyto to, const json_t *body,
		     struct err *e)
{
	const char *tenant, *run_id, *reason = text_of(body, "reason");
	struct run *run;
	bool there;

	if (tenant_of(body, &tenant, e) < 0 || run_id_of(body, &run_id, e) < 0)
		return -1;
	run = runs_find(r, run_id);
	there = run && strcmp(run->tenant, tenant) == 0;
	if (there) {
		AUTO_FREE char *cut = cut_reason(reason);

		audit(r,
		      &(struct audit_event){AUDIT_CLIENT, tenant, "cancel_run", run_id});
		run_cancel(run, *cut ? cut : "the client asked for it");
	}
	turn_answer(r, to, json_pack("{s:b}", "canceled", there));
	return 0;
}

static int parse_ref(struct runner *r, const json_t *body, bool with_ttl,
		     struct sandbox_ref *ref, struct err *e)
{
	struct runspec_limits lim = runspec_limits_of(r->conf);

	return sandboxref_parse(json_object_get(body, "args"), with_ttl, &lim, ref, e);
}

static int backend_is_there(const struct runner *r, struct err *e)
{
	if (r->backend && r->reconciled)
		return 0;
	return err_set(e, r->backend_failed ? ERR_BACKEND : ERR_BUSY, "%s",
		       r->backend_words);
}

/* The user agreed to the end of one sandbox, not of the next one of that identifier. */
static int check_only(const json_t *body, int64_t created_at, struct err *e)
{
	const json_t *only = json_object_get(body, "only");

	if (!only || created_at == 0 || json_integer_value(only) == created_at)
		return 0;
	return err_set(e, ERR_DENIED,
		       "nothing was done: this sandbox is another one than the user was "
		       "asked about, or was started anew since; call the tool anew, and "
		       "the user is asked about this one");
}

static int64_t made_at(const struct sandbox *sb)
{
	return sb && sb->has_row ? sb->created_at : 0;
}

/* While the store cannot be written there are no records; it can still be read. */
static int check_only_stored(struct runner *r, const json_t *body, const char *tenant,
			     const char *identifier, struct err *e)
{
	AUTO_FREE char *name = NULL;
	int64_t created_at;

	if (store_sandbox_name(r->store, tenant, identifier, &name, &created_at, e) < 0)
		return -1;
	return check_only(body, created_at, e);
}

static int on_delete(struct runner *r, struct replyto to, const json_t *body,
		     struct err *e)
{
	__attribute__((cleanup(sandboxref_release))) struct sandbox_ref ref = {0};
	const char *tenant;
	struct sandbox *sb;

	if (tenant_of(body, &tenant, e) < 0 || parse_ref(r, body, false, &ref, e) < 0)
		return -1;
	if (r->phase == PHASE_STORE_FAILED && r->backend) {
		/* A job of a dropped record may be at it. */
		if (control_pending(r->control) > 0)
			return err_set(e, ERR_BUSY,
				       "the server is at work on its sandboxes; try "
				       "again in a moment");
		if (check_only_stored(r, body, tenant, ref.identifier, e) < 0)
			return -1;
		return recovery_remove_unwritten(r, tenant, ref.identifier, to, e);
	}
	sb = sandbox_find(r, tenant, ref.identifier);
	if (backend_is_there(r, e) < 0 || check_only(body, made_at(sb), e) < 0)
		return -1;
	audit(r, &(struct audit_event){AUDIT_CLIENT, tenant, "delete_sandbox",
				       ref.identifier});
	if (sb)
		sandbox_remove(sb, "the sandbox was deleted (delete_sandbox)", &to,
			       false);
	else
		turn_answer(r, to,
			    json_pack("{s:b,s:s}", "deleted", false, "identifier",
				      ref.identifier));
	return 0;
}

static int on_restart(struct runner *r, struct replyto to, const json_t *body,
		      struct err *e)
{
	__attribute__((cleanup(sandboxref_release))) struct sandbox_ref ref = {0};
	const char *tenant;
	struct sandbox *sb;

	if (tenant_of(body, &tenant, e) < 0 || parse_ref(r, body, true, &ref, e) < 0 ||
	    backend_is_there(r, e) < 0 ||
	    check_only(body, made_at(sandbox_find(r, tenant, ref.identifier)), e) < 0 ||
	    sandbox_get(r, tenant, ref.identifier, &sb, e) < 0)
		return -1;
	audit(r, &(struct audit_event){AUDIT_CLIENT, tenant, "restart_sandbox",
				       ref.identifier});
	sandbox_remove(sb, "the sandbox was restarted (restart_sandbox)", &to, true);
	sb->ttl_s = ref.ttl_s;
	sb->expires_at = clock_now_ms() + ref.ttl_s * 1000;
	return 0;
}

static int on_session_open(struct runner *r, struct replyto to, const json_t *body,
			   struct err *e)
{
	struct store_session row = {
		.id = text_of(body, "session_id"),
		.protocol_version = text_of(body, "protocol_version"),
		.client_name = text_of(body, "client_name"),
		.client_version = text_of(body, "client_version"),
		.created_at = clock_now_ms(),
	};

	row.last_seen_at = row.created_at;
	row.client_can = text_of(body, "client_can");
	if (tenant_of(body, &row.tenant, e) < 0)
		return -1;
	if (!idenc_is_session_id(row.id))
		return err_set(e, ERR_INVALID, "bad session_id");
	if (strlen(row.client_name) > SESSION_TEXT_MAX ||
	    strlen(row.client_version) > SESSION_TEXT_MAX ||
	    strlen(row.client_can) > SESSION_TEXT_MAX ||
	    strlen(row.protocol_version) > SESSION_TEXT_MAX)
		return err_set(e, ERR_INVALID, "clientInfo is longer than 256 bytes");
	if (store_session_open(r->store, &row, e) < 0)
		return -1;
	turn_answer(r, to, json_object());
	return 0;
}

static int on_session_close(struct runner *r, struct replyto to, const json_t *body,
			    struct err *e)
{
	const char *tenant, *id = text_of(body, "session_id");
	bool closed = false;

	if (tenant_of(body, &tenant, e) < 0)
		return -1;
	if (!idenc_is_session_id(id))
		return err_set(e, ERR_INVALID, "bad session_id");
	if (store_session_close(r->store, tenant, id, &closed, e) < 0)
		return -1;
	turn_answer(r, to, json_pack("{s:b}", "closed", closed));
	return 0;
}

static int on_session_touch(struct runner *r, struct replyto to, const json_t *body,
			    struct err *e)
{
	const json_t *list = json_object_get(body, "session_ids");
	size_t n = json_array_size(list), count = 0;
	AUTO_FREE const char **ids = NULL;

	if (n > TOUCH_MAX)
		return err_set(e, ERR_INVALID, "too many session_ids");
	ids = xcalloc(n + 1, sizeof(*ids));
	for (size_t i = 0; i < n; i++) {
		const char *id = json_string_value(json_array_get(list, i));

		if (id && idenc_is_session_id(id))
			ids[count++] = id;
	}
	if (store_sessions_touch(r->store, ids, count, clock_now_ms(), e) < 0)
		return -1;
	turn_answer(r, to, json_object());
	return 0;
}

static int on_session_level(struct runner *r, struct replyto to, const json_t *body,
			    struct err *e)
{
	const char *tenant, *id = text_of(body, "session_id");
	const char *level = text_of(body, "level");

	if (tenant_of(body, &tenant, e) < 0)
		return -1;
	if (!idenc_is_session_id(id) || !*level || strlen(level) > LEVEL_MAX)
		return err_set(e, ERR_INVALID, "bad session_id or level");
	if (store_session_log_level(r->store, tenant, id, level, e) < 0)
		return -1;
	turn_answer(r, to, json_object());
	return 0;
}

static int on_subscribe(struct runner *r, struct replyto to, const json_t *body,
			struct err *e)
{
	struct store_subscription v = {.session_id = text_of(body, "session_id"),
				       .uri = text_of(body, "uri")};
	bool on = json_is_true(json_object_get(body, "on"));

	if (tenant_of(body, &v.tenant, e) < 0)
		return -1;
	if (!idenc_is_session_id(v.session_id) || !*v.uri || strlen(v.uri) > URI_MAX)
		return err_set(e, ERR_INVALID, "bad session_id or uri");
	if ((on ? store_subscribe(r->store, &v, EDGEMSG_SUBSCRIPTIONS_MAX, e)
		: store_unsubscribe(r->store, &v, e)) < 0)
		return -1;
	turn_answer(r, to, json_object());
	return 0;
}

/* Nothing of it concerns us but that it is bounded and names a session. */
static int on_relay(struct runner *r, struct replyto to, const json_t *body,
		    struct err *e)
{
	if (!idenc_is_session_id(text_of(body, "session_id")))
		return err_set(e, ERR_INVALID, "bad session_id");
	edges_relay(r->edges, (json_t *)body);
	edges_ok(r->edges, to, json_object());
	return 0;
}

static int on_file_read(struct runner *r, struct replyto to, const json_t *body,
			struct err *e)
{
	return filejob_accept(r, to, body, FILE_READ, e);
}

static int on_file_write(struct runner *r, struct replyto to, const json_t *body,
			 struct err *e)
{
	return filejob_accept(r, to, body, FILE_WRITE, e);
}

static int on_file_list(struct runner *r, struct replyto to, const json_t *body,
			struct err *e)
{
	return filejob_accept(r, to, body, FILE_LIST, e);
}

static void read_gauges(struct runner *r, struct metrics_gauges *g)
{
	struct store_stats stats = {0};

	store_stats(r->store, &stats);
	g->warm_size = (uint64_t)r->conf->warm_pool_size;
	g->warm_ready = warmpool_ready(r->warm);
	g->wal_bytes = (uint64_t)stats.wal_bytes;
	g->active_runs = runs_count(r, NULL, STORE_RUN_RUNNING);
	g->queued_runs = runs_count(r, NULL, STORE_RUN_QUEUED);
	for (size_t i = 0; i < HASH_SIZE; i++)
		for (struct sandbox *sb = r->sandboxes[i]; sb; sb = sb->hash_next)
			g->active_sandboxes += sb->state != SANDBOX_ABSENT;
}

static const char *store_state(const struct runner *r)
{
	if (r->store_words[0])
		return r->store_words;
	return r->short_of_room ? "the disk is full; nothing new is begun" : "ready";
}

static int on_status(struct runner *r, struct replyto to, const json_t *body,
		     struct err *e)
{
	AUTO_BUF text = BUF_INIT(METRICS_MAX);
	struct metrics_gauges g = {0};
	bool up = r->backend && r->reconciled;
	bool waits = r->backend && r->phase == PHASE_STORE_FAILED;

	(void)body;
	(void)e;
	read_gauges(r, &g);
	metrics_text(&r->metrics, &g, &text);
	edges_ok(r->edges, to,
		 json_pack("{s:{s:b,s:s},s:{s:b,s:s},s:s}", "backend", "ok", up,
			   "message",
			   up      ? "ready"
			   : waits ? "waits for the database"
				   : r->backend_words,
			   "store", "ok",
			   r->phase != PHASE_STORE_FAILED && !r->short_of_room, "message",
			   store_state(r), "metrics", text.p));
	return 0;
}

struct handler {
	int (*fn)(struct runner *, struct replyto, const json_t *, struct err *);
	bool writes;
	bool fills;  /* not while the disk is full */
	bool always; /* also while the store fails, if the backend is there */
};
static const struct handler handlers[MSG_TYPE_COUNT] = {
	[MSG_RUN] = {on_run, true, true},
	[MSG_CANCEL] = {on_cancel, true},
	[MSG_DELETE] = {on_delete, true, .always = true},
	[MSG_RESTART] = {on_restart, true},
	[MSG_SESSION_OPEN] = {on_session_open, true},
	[MSG_SESSION_CLOSE] = {on_session_close, true},
	[MSG_SESSION_TOUCH] = {on_session_touch, true},
	[MSG_SESSION_LEVEL] = {on_session_level, true},
	[MSG_SUBSCRIBE] = {on_subscribe, true, true},
	[MSG_STATUS] = {on_status, false},
	[MSG_RELAY] = {on_relay, false},
	/* They need the sandboxes, which are forgotten while the store fails. */
	[MSG_FILE_READ] = {on_file_read, true},
	[MSG_FILE_WRITE] = {on_file_write, true, true},
	[MSG_FILE_LIST] = {on_file_list, true},
};

static int may(const struct runner *r, const struct handler *h, struct err *e)
{
	if (!h->fn)
		return err_set(e, ERR_INVALID, "no such request");
	if (h->writes && r->phase == PHASE_STORE_FAILED && !(h->always && r->backend))
		return err_set(e, ERR_BUSY,
			       "the database cannot be written (%s); try again later",
			       r->store_words);
	if (h->fills && r->short_of_room)
		return err_set(e, ERR_BUSY,
			       "the server's disk is full; delete_sandbox frees what a "
			       "sandbox holds");
	if (h->writes && r->phase == PHASE_STOPPING)
		return err_set(e, ERR_BUSY, "the server is stopping; try again later");
	return 0;
}

void requests_handle(struct runner *r, struct replyto to, const struct edgemsg *m)
{
	const struct handler *h = &handlers[m->type < MSG_TYPE_COUNT ? m->type : 0];
	struct err e = ERR_INIT;

	if (may(r, h, &e) == 0 && h->fn(r, to, m->body, &e) == 0)
		return;
	/*
	 * What it has begun must not stay open, it holds the write lock; and of a
	 * transaction that is lost the commit finds out, and recovers.
	 */
	if ((h->writes && r->phase == PHASE_SERVING) || e.kind == ERR_STORE)
		turn_dirty(r);
	edges_err(r->edges, to, &e);
}
