/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_WARMPOOL_H
#define RUNNER_WARMPOOL_H

#include "runner/state.h"

/*
 * The warm pool: WARM_POOL_SIZE sandboxes that stand ready before anyone has asked,
 * their agents connected, so that the first call of an identifier needs no create:
 * one of them becomes the identifier's, under the name it has.
 *
 * Nobody's code has run in one. It has heard HELLO and RESUME, nothing else; it
 * leaves the pool in the same commit in which the identifier's row appears, before
 * a word of the caller reaches its agent, and never comes back. One in doubt is
 * removed, not used: its connection broke, its agent knows of a command or says
 * something unasked, it was made with another policy, image or limits, or before the
 * last boot of the server's host (a commit may have been lost with the machine).
 *
 * It is filled in the background, FILL_AT_ONCE at a time, when nobody waits for a
 * create and none was taken for a moment; under steady load one a second. After a
 * failure it waits, longer each time. None is made above MAX_SANDBOXES, counted
 * together with the sandboxes of identifiers. A create that someone waits for is not
 * held up by those that are in the making: then there are up to FILL_AT_ONCE too many
 * until these are ready, and removed. The next runner takes over what stands; a stop
 * removes it.
 *
 * A row of warm_sandboxes is one that was created and is not being removed: what the
 * backend has besides is nobody's and removed at the next start. Loop only.
 */
struct warmpool;

int warmpool_new(struct runner *r, struct warmpool **ret, struct err *e);
/* Its timer; the loop must run once more before warmpool_free(). */
void warmpool_close(struct warmpool *p);
void warmpool_free(struct warmpool *p); /* NULL is fine */

/* One that was taken. Strings and connection are the taker's. */
struct warm_sandbox {
	char name[64];
	char *container_id, *image, *fingerprint;
	struct agentconn *conn; /* RESUME is said; its events still are the pool's */
	uint8_t boot_id[16];
};

/* False: none is ready. Nothing may be said to its agent before the next commit. */
bool warmpool_take(struct warmpool *p, struct warm_sandbox *ret);

/* A create that one of the pool would have saved was begun. */
void warmpool_missed(struct warmpool *p);
/* A create that someone waited for is over: it may be filled. */
void warmpool_go_on(struct warmpool *p);
/* Once a second. */
void warmpool_tick(struct warmpool *p, int64_t mono_ms);
void warmpool_heartbeat(struct warmpool *p, int64_t mono_ms);

/* ---- start and end (recovery.c, runner.c) */

/* What the store knows of an earlier runner's. */
void warmpool_load(struct warmpool *p);
/* And what of it runs: that is connected to, the rest removed. */
void warmpool_reconcile(struct warmpool *p, const struct sandbox_list *l);
/* Is one of that name here? Then nobody else may touch it. */
bool warmpool_has(const struct warmpool *p, const char *name);
/* Is a control thread at one? */
bool warmpool_busy(const struct warmpool *p);
/* Remove all. */
void warmpool_stop(struct warmpool *p);
/* Forget all, as sandboxes_drop_all(). */
void warmpool_drop_all(struct warmpool *p);

size_t warmpool_ready(const struct warmpool *p);

#endif
