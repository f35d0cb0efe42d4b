/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_PODS_PODTABLE_H
#define BACKEND_KUBERNETES_PODS_PODTABLE_H

#include <stddef.h>
#include <stdint.h>

#include "backend/kubernetes/pods/podstate.h"

/*
 * Pods by a key, as they were told last, and for a while those that are gone. The
 * caller locks. Zero it to start.
 */
struct podentry {
	struct podentry *next;
	char *key;
	struct pod pod;
	uint64_t told_at; /* the list during which that was */
	bool is_gone;
	uint64_t gone_no; /* counts them */
	int waiters;
	int64_t silent_since; /* monotonic; 0: it was reached last */
};

enum { PODTABLE_BUCKETS = 1024, PODTABLE_GONE_KEPT = 64 };

struct podtable {
	struct podentry *buckets[PODTABLE_BUCKETS];
	size_t n;
	uint64_t gone; /* counts them */
};
void podtable_clear(struct podtable *t);

struct podentry *podtable_find(struct podtable *t, const char *key); /* NULL: none */

/* The one of that key, made when there is none, is p now, of which it takes a copy. */
struct podentry *podtable_put(struct podtable *t, const char *key, const struct pod *p);
void podtable_remove(struct podtable *t, const char *key);

/* Not removed yet: podtable_forget_gone(). */
void podtable_mark_gone(struct podtable *t, struct podentry *n);

/* What was told last before that list is gone. */
void podtable_mark_older(struct podtable *t, uint64_t list);

/*
 * An end is kept for those who wait for it, and the last few for those who are about
 * to: the answer that told them of the pod may be older.
 */
void podtable_forget_gone(struct podtable *t);

#endif
