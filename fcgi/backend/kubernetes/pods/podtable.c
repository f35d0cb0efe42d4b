/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/pods/podtable.h"

#include <string.h>

#include "base/mem.h"

static struct podentry **place(struct podtable *t, const char *key)
{
	uint32_t h = 2166136261U;
	const char *c;
	struct podentry **p;

	for (c = key; *c; c++)
		h = (h ^ (unsigned char)*c) * 16777619U;
	for (p = &t->buckets[h % PODTABLE_BUCKETS]; *p; p = &(*p)->next)
		if (strcmp((*p)->key, key) == 0)
			break;
	return p;
}

static void take_out(struct podtable *t, struct podentry **p)
{
	struct podentry *n = *p;

	*p = n->next;
	pod_release(&n->pod);
	free(n->key);
	free(n);
	t->n--;
}

void podtable_clear(struct podtable *t)
{
	size_t i;

	for (i = 0; i < PODTABLE_BUCKETS; i++)
		while (t->buckets[i])
			take_out(t, &t->buckets[i]);
}

struct podentry *podtable_find(struct podtable *t, const char *key)
{
	return *place(t, key);
}

struct podentry *podtable_put(struct podtable *t, const char *key, const struct pod *p)
{
	struct podentry **at = place(t, key);

	if (!*at) {
		*at = xcalloc(1, sizeof **at);
		(*at)->key = xstrdup(key);
		t->n++;
	}
	pod_release(&(*at)->pod);
	(*at)->pod = pod_copy(p);
	return *at;
}

void podtable_remove(struct podtable *t, const char *key)
{
	struct podentry **p = place(t, key);

	if (*p)
		take_out(t, p);
}

void podtable_mark_gone(struct podtable *t, struct podentry *n)
{
	if (n->is_gone)
		return;
	n->is_gone = true;
	n->gone_no = t->gone++;
}

void podtable_mark_older(struct podtable *t, uint64_t list)
{
	struct podentry *n;
	size_t i;

	for (i = 0; i < PODTABLE_BUCKETS; i++)
		for (n = t->buckets[i]; n; n = n->next)
			if (n->told_at < list)
				podtable_mark_gone(t, n);
}

void podtable_forget_gone(struct podtable *t)
{
	struct podentry **p;
	size_t i;

	for (i = 0; i < PODTABLE_BUCKETS; i++)
		for (p = &t->buckets[i]; *p;)
			if ((*p)->is_gone && (*p)->waiters == 0 &&
			    t->gone - (*p)->gone_no > PODTABLE_GONE_KEPT)
				take_out(t, p);
			else
				p = &(*p)->next;
}
