/* SPDX-License-Identifier: MIT */
#include "store/types.h"

#include <stdlib.h>

#include "store/arena.h"

void store_session_release(struct store_session *s)
{
	arena_free(s->mem);
	*s = (struct store_session){0};
}

void store_run_release(struct store_run *r)
{
	free(r->commands);
	free(r->artifacts);
	arena_free(r->mem);
	*r = (struct store_run){0};
}

void store_runs_release(struct store_runs *l)
{
	/* The runs of a list share its memory and have none of their own. */
	for (size_t i = 0; i < l->n; i++) {
		l->v[i].mem = NULL;
		store_run_release(&l->v[i]);
	}
	free(l->v);
	arena_free(l->mem);
	*l = (struct store_runs){0};
}

void store_sandboxes_release(struct store_sandboxes *l)
{
	free(l->v);
	arena_free(l->mem);
	*l = (struct store_sandboxes){0};
}

void store_warms_release(struct store_warms *l)
{
	free(l->v);
	arena_free(l->mem);
	*l = (struct store_warms){0};
}

void store_events_release(struct store_events *l)
{
	free(l->v);
	arena_free(l->mem);
	*l = (struct store_events){0};
}
