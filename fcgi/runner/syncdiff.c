/* SPDX-License-Identifier: MIT */
#include "runner/syncdiff.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
	SHARE_FILES_MIN = 256, /* fewer are linked in no time */
	SHARE_PART = 8,        /* at most one of so many is in the folder itself */
};

static int by_path(const void *path, const void *artifact)
{
	return strcmp(path, ((const struct store_artifact *)artifact)->path);
}

/* Of the previous run's files; NULL: it had none of that name. The rows are sorted. */
static const struct store_artifact *find(const struct syncplan *p, const char *path)
{
	const struct store_run *run = &p->previous;
	const struct store_artifact *a = NULL;

	if (run->nartifacts > 0)
		a = bsearch(path, run->artifacts, run->nartifacts,
			    sizeof(*run->artifacts), by_path);
	return a && !a->skipped_reason ? a : NULL;
}

static bool is_same(const struct plan_entry *entry, const struct store_artifact *a)
{
	return a->ctime_ns != 0 && a->ctime_ns == entry->ctime_ns &&
	       (uint64_t)a->size == entry->size;
}

/* Where a file of the previous run lies, seen from the base that it gives on. */
static enum store_in_base place(const struct syncplan *p, const struct store_artifact *a)
{
	return p->is_previous_base ? STORE_BASE_SAME : a->in_base;
}

void plan_compare(struct syncplan *p)
{
	p->seen = xcalloc(p->previous.nartifacts + 1, sizeof(*p->seen));
	for (size_t i = 0; i < p->n; i++) {
		struct plan_entry *entry = &p->v[i];
		const struct store_artifact *a =
			entry->fate == PLAN_FETCH ? find(p, entry->path) : NULL;

		if (!a)
			continue;
		p->seen[a - p->previous.artifacts] = true;
		entry->in_base = place(p, a);
		if (is_same(entry, a))
			entry->fate = PLAN_SAME;
		else if (entry->in_base == STORE_BASE_SAME)
			entry->in_base = STORE_BASE_OTHER;
	}
}

static bool shows_through(const struct syncplan *p)
{
	for (size_t i = 0; i < p->previous.nartifacts; i++) {
		const struct store_artifact *a = &p->previous.artifacts[i];

		if (!p->seen[i] && !a->skipped_reason && place(p, a) != STORE_BASE_NONE)
			return true;
	}
	return false;
}

bool plan_share(struct syncplan *p)
{
	uint64_t shared = 0;

	for (size_t i = 0; i < p->n; i++)
		shared += p->v[i].fate == PLAN_SAME && p->v[i].in_base == STORE_BASE_SAME;
	return p->files >= SHARE_FILES_MIN &&
	       (p->files - shared) * SHARE_PART <= p->files && !shows_through(p);
}
