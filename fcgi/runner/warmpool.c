/* SPDX-License-Identifier: MIT */
#include "runner/warmpool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/io.h"
#include "base/log.h"
#include "base/mem.h"
#include "runner/recovery.h"
#include "runner/sandboxall.h"
#include "runner/sandboxes.h"
#include "runner/sandboxrec.h"
#include "runner/turn.h"
#include "runner/warm.h"

enum {
	FILL_AT_ONCE = 2,
	/* The call that took one runs its command first. */
	QUIET_MS = 50,
	/* Under steady load one is made so often all the same. */
	PATIENCE_MS = 1000,
	BACKOFF_MS = 1000, /* doubled after each failure */
	BACKOFF_MAX_MS = 60000,
	/* Creates wait for a thread soon: none is left to the pool. */
	CONTROL_BUSY = CONTROL_THREADS / 2,
};

struct warmpool {
	struct runner *r;
	struct warm *all; /* the oldest first */
	uv_timer_t quiet;
	char *made_with;
	char host_boot[64];
	int64_t backoff_ms;
	int64_t due_mono;   /* after a failure: not before */
	int64_t began_mono; /* the last create */
};

/* ---- what is there */

static size_t count(const struct warmpool *p, enum warm_state from, enum warm_state to)
{
	size_t n = 0;

	for (const struct warm *w = p->all; w; w = w->next)
		n += w->state >= from && w->state <= to;
	return n;
}

/* Those that stand or soon will. */
static size_t standing(const struct warmpool *p)
{
	return count(p, WARM_FOUND, WARM_READY);
}

size_t warmpool_ready(const struct warmpool *p)
{
	return count(p, WARM_READY, WARM_READY);
}

/* What MAX_SANDBOXES leaves to the pool. */
static size_t room(const struct warmpool *p)
{
	size_t most = (size_t)p->r->conf->max_active_sandboxes;

	return most > p->r->nsandboxes ? most - p->r->nsandboxes : 0;
}

static size_t wanted(const struct warmpool *p)
{
	size_t size = (size_t)p->r->conf->warm_pool_size;

	return room(p) < size ? room(p) : size;
}

static struct warm *find(const struct warmpool *p, const char *name)
{
	struct warm *w = p->all;

	while (w && strcmp(w->is.name, name) != 0)
		w = w->next;
	return w;
}

bool warmpool_has(const struct warmpool *p, const char *name)
{
	return find(p, name) != NULL;
}

bool warmpool_busy(const struct warmpool *p)
{
	for (const struct warm *w = p->all; w; w = w->next)
		if (w->job)
			return true;
	return false;
}

static void enlist(struct warmpool *p, struct warm *w)
{
	struct warm **at = &p->all;

	while (*at)
		at = &(*at)->next;
	*at = w;
}

static void unlist(struct warmpool *p, struct warm *w)
{
	struct warm **at = &p->all;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
}

/* ---- filling */

static bool is_serving(const struct runner *r)
{
	return r->phase == PHASE_SERVING && r->backend && r->reconciled &&
	       !r->stop_by_mono;
}

static bool may_create(const struct warmpool *p)
{
	const struct runner *r = p->r;
	int64_t now = clock_mono_ms();

	if (!is_serving(r) || r->short_of_room || now < p->due_mono ||
	    control_pending(r->control) >= CONTROL_BUSY)
		return false;
	if (count(p, WARM_CREATING, WARM_GREETING) +
		    count(p, WARM_LEAVING, WARM_LEAVING) >=
	    FILL_AT_ONCE)
		return false;
	return !sandboxes_any_creating(r) || now - p->began_mono >= PATIENCE_MS;
}

static void create_one(struct warmpool *p)
{
	char name[64];
	struct warm *w;

	do
		backend_warm_name(name, sizeof(name));
	while (find(p, name) || sandbox_named(p->r, name) ||
	       recovery_is_removing(p->r, name));
	w = warm_new(p->r, name, WARM_CREATING);
	p->began_mono = clock_mono_ms();
	enlist(p, w);
	warm_create(w);
}

/* One that leaves needs its place until it is gone. */
static void fill(struct warmpool *p)
{
	while (standing(p) < wanted(p) && count(p, WARM_FOUND, WARM_LEAVING) < room(p) &&
	       may_create(p))
		create_one(p);
}

static void on_quiet(uv_timer_t *t)
{
	fill(t->data);
}

static void fill_when_quiet(struct warmpool *p)
{
	if (standing(p) < wanted(p))
		uv_timer_start(&p->quiet, on_quiet, QUIET_MS, 0);
}

/* It was made smaller, or creates that someone waited for took its room. */
static void trim(struct warmpool *p)
{
	size_t extra = standing(p) > wanted(p) ? standing(p) - wanted(p) : 0;

	for (struct warm *w = p->all; w && extra > 0; w = w->next)
		if (w->state == WARM_READY) {
			warm_discard(w);
			extra--;
		}
}

void warmpool_go_on(struct warmpool *p)
{
	fill_when_quiet(p);
}

void warmpool_tick(struct warmpool *p, int64_t mono_ms)
{
	for (struct warm *w = p->all; w; w = w->next)
		if (w->state == WARM_LEAVING && !w->job && mono_ms >= w->retry_mono &&
		    is_serving(p->r))
			warm_discard(w);
	trim(p);
	fill(p);
}

void warmpool_heartbeat(struct warmpool *p, int64_t mono_ms)
{
	for (struct warm *w = p->all; w; w = w->next)
		if (w->is.conn)
			agentconn_heartbeat(w->is.conn, mono_ms);
}

/* ---- what becomes of one */

void warm_is_made(struct warm *w)
{
	const struct warmpool *p = w->r->warm;
	const struct store_warm row = {.name = w->is.name,
				       .backend = w->r->conf->backend,
				       .container_id = w->is.container_id,
				       .image = w->is.image,
				       .policy_fingerprint = w->is.fingerprint,
				       .made_with = p->made_with,
				       .host_boot = p->host_boot,
				       .created_at = clock_now_ms()};
	struct err e = ERR_INIT;

	/* A store that fails is noticed by the commit. */
	if (store_warm_put(w->r->store, &row, &e) < 0)
		log_error("sandbox %s: %s", w->is.name, e.msg);
	turn_dirty(w->r);
}

void warm_is_ready(struct warm *w)
{
	struct warmpool *p = w->r->warm;

	p->backoff_ms = 0;
	trim(p);
	if (!uv_is_active((uv_handle_t *)&p->quiet))
		fill(p);
}

void warm_failed(struct warm *w, const char *why)
{
	struct warmpool *p = w->r->warm;

	log_warn("warm pool: sandbox %s: %s; it is removed", w->is.name, why);
	w->r->metrics.warm_failures++;
	p->backoff_ms = p->backoff_ms ? 2 * p->backoff_ms : BACKOFF_MS;
	if (p->backoff_ms > BACKOFF_MAX_MS)
		p->backoff_ms = BACKOFF_MAX_MS;
	p->due_mono = clock_mono_ms() + p->backoff_ms;
	warm_discard(w);
}

void warm_is_gone(struct warm *w)
{
	struct warmpool *p = w->r->warm;

	unlist(p, w);
	warm_free(w);
	fill_when_quiet(p);
}

/* ---- binding */

static struct warm *find_ready(const struct warmpool *p)
{
	struct warm *w = p->all;

	while (w && w->state != WARM_READY)
		w = w->next;
	return w;
}

bool warmpool_take(struct warmpool *p, struct warm_sandbox *ret)
{
	struct warm *w = is_serving(p->r) ? find_ready(p) : NULL;
	struct err e = ERR_INIT;

	if (!w)
		return false;
	if (store_warm_remove(p->r->store, w->is.name, &e) < 0)
		log_error("sandbox %s: %s", w->is.name, e.msg);
	turn_dirty(p->r);
	p->r->metrics.warm_hits++;
	*ret = w->is;
	w->is = (struct warm_sandbox){0};
	unlist(p, w);
	warm_free(w);
	fill_when_quiet(p);
	return true;
}

void warmpool_missed(struct warmpool *p)
{
	p->r->metrics.warm_misses += p->r->conf->warm_pool_size > 0;
}

/* ---- start and end */

static bool fits(const struct warmpool *p, const struct store_warm *row)
{
	return strcmp(row->backend, p->r->conf->backend) == 0 &&
	       strcmp(row->made_with, p->made_with) == 0 &&
	       strcmp(row->host_boot, p->host_boot) == 0;
}

static char *dup_or_null(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

static void load_one(struct warmpool *p, const struct store_warm *row)
{
	struct warm *w;

	if (strlen(row->name) >= sizeof(w->is.name) || sandbox_named(p->r, row->name)) {
		log_error("warm pool: the row %.80s is no sandbox's", row->name);
		return;
	}
	w = warm_new(p->r, row->name, WARM_FOUND);
	w->is.container_id = dup_or_null(row->container_id);
	w->is.image = dup_or_null(row->image);
	w->is.fingerprint = dup_or_null(row->policy_fingerprint);
	w->fits = fits(p, row);
	enlist(p, w);
}

void warmpool_load(struct warmpool *p)
{
	AUTO_STORE_WARMS rows = {0};
	struct err e = ERR_INIT;

	if (store_warm_all(p->r->store, &rows, &e) < 0)
		log_error("reading the warm pool: %s", e.msg);
	for (size_t i = 0; i < rows.n; i++)
		load_one(p, &rows.v[i]);
}

static const struct sandbox_info *info_of(const struct sandbox_list *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->v[i].name, name) == 0)
			return &l->v[i];
	return NULL;
}

static bool is_good(const struct warm *w, const struct sandbox_info *i)
{
	return i && i->running && !i->outdated && !i->old_image && w->fits;
}

void warmpool_reconcile(struct warmpool *p, const struct sandbox_list *l)
{
	size_t kept = 0;

	for (struct warm *w = p->all; w; w = w->next) {
		if (w->state != WARM_FOUND)
			continue;
		if (is_good(w, info_of(l, w->is.name)) && kept < wanted(p)) {
			kept++;
			warm_connect(w);
		} else {
			warm_discard(w);
		}
	}
	fill(p);
}

void warmpool_stop(struct warmpool *p)
{
	uv_timer_stop(&p->quiet);
	for (struct warm *w = p->all; w; w = w->next)
		if (w->state != WARM_LEAVING && p->r->backend)
			warm_discard(w);
}

void warmpool_drop_all(struct warmpool *p)
{
	struct warm *next;

	for (struct warm *w = MOVE(p->all); w; w = next) {
		next = w->next;
		agentconn_free(MOVE(w->is.conn));
		w->dropped = true;
		if (!w->job)
			warm_free(w);
	}
}

static void read_host_boot(char *dst, size_t n)
{
	AUTO_BUF text = BUF_INIT(256);
	struct err ignored = ERR_INIT;

	/* Not known: nothing of an earlier runner is used. */
	if (io_read_file("/proc/sys/kernel/random/boot_id", &text, &ignored) < 0)
		id_random_hex(dst, ID_HEX_LEN);
	else
		snprintf(dst, n, "%.*s", (int)strcspn(text.p, "\n"), text.p);
}

int warmpool_new(struct runner *r, struct warmpool **ret, struct err *e)
{
	const struct conf *c = r->conf;
	struct warmpool *p = xcalloc(1, sizeof(*p));

	if (uv_timer_init(&r->loop, &p->quiet) < 0) {
		free(p);
		return err_set(e, ERR_SYSTEM, "the warm pool's timer cannot be set up");
	}
	p->r = r;
	p->quiet.data = p;
	p->made_with = xasprintf("image %s, cpu %g, memory %" PRId64 " MB, pids %" PRId64,
				 c->image, c->default_cpu_cores, c->default_memory_mb,
				 c->default_pids);
	read_host_boot(p->host_boot, sizeof(p->host_boot));
	*ret = p;
	return 0;
}

void warmpool_close(struct warmpool *p)
{
	warmpool_drop_all(p);
	uv_close((uv_handle_t *)&p->quiet, NULL);
}

void warmpool_free(struct warmpool *p)
{
	if (!p)
		return;
	free(p->made_with);
	free(p);
}
