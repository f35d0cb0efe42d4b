/* SPDX-License-Identifier: MIT */
#ifndef EDGE_SUBS_H
#define EDGE_SUBS_H

#include <jansson.h>

#include "edge/core.h"

/*
 * What one stream wants to hear of: resources by their uri, tasks by their run. Each
 * that has changed is told at most once per SUBS_PACE_MS, however often it changed;
 * so what a stream costs is bounded by how many it has, and a client that is late
 * reads the newest state all the same. A run that has ended changes no more and is
 * not watched; when it had ended before it was asked for, that is told once. Loop only.
 */
struct subs;

enum { SUBS_PACE_MS = 1000 };

/*
 * The resource at uri, or the task of that run, is not what it was. False: not now,
 * the stream is not read; it is told later. May call subs_free().
 */
struct subs_events {
	bool (*updated)(void *arg, const char *uri);
	bool (*task_changed)(void *arg, const char *run_id);
};

struct subs *subs_new(struct edge *edge, const struct subs_events *events, void *arg);
/* NULL is fine. */
void subs_free(struct subs *s);

/*
 * These from now on (arrays of strings, NULL: none); what is there already stays as
 * it is. What is no uri of ours is passed over. tell: of all of them at once, because
 * something may have been missed.
 */
struct subs_wanted {
	const json_t *uris, *tasks;
	bool tell;
};
void subs_set(struct subs *s, const struct subs_wanted *w);

#endif
