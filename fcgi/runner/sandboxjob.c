/* SPDX-License-Identifier: MIT */
#include "runner/sandboxjob.h"

#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"
#include "runner/waitwords.h"

static int job_open(struct sandboxjob *j)
{
	if (j->b->ops->create(j->b, &j->order.spec, &j->info, &j->e) < 0)
		return -1;
	return j->b->ops->connect(j->b, j->name, &j->fd, &j->e);
}

/* Only the backend's own word counts: a list that fails proves nothing. */
static bool is_dead(struct sandboxjob *j)
{
	struct sandbox_list l = {0};
	struct err ignored = ERR_INIT;
	bool running = false;

	if (j->e.kind == ERR_CONFLICT)
		return true;
	if (j->e.kind == ERR_BUSY)
		return false;
	if (j->b->ops->list(j->b, &l, &ignored) < 0)
		return false;
	for (size_t i = 0; i < l.n; i++)
		running |= l.v[i].running && strcmp(l.v[i].name, j->name) == 0;
	sandbox_list_release(&l);
	return !running;
}

static int job_connect(struct sandboxjob *j)
{
	if (j->b->ops->connect(j->b, j->name, &j->fd, &j->e) == 0)
		return 0;
	j->dead = is_dead(j);
	return -1;
}

static int job_remove(struct sandboxjob *j)
{
	return j->b->ops->remove(j->b, j->name, &j->existed, &j->e);
}

static int job_stop(struct sandboxjob *j)
{
	return j->b->ops->stop(j->b, j->name, &j->e);
}

static int (*const calls[])(struct sandboxjob *) = {
	[SANDBOXJOB_OPEN] = job_open,
	[SANDBOXJOB_CONNECT] = job_connect,
	[SANDBOXJOB_REMOVE] = job_remove,
	[SANDBOXJOB_STOP] = job_stop,
};

static void work(struct control_job *cj)
{
	struct sandboxjob *j = (struct sandboxjob *)cj;
	int64_t began = clock_mono_us();

	j->rc = calls[j->order.what](j);
	j->took_us = clock_mono_us() - began;
}

static void done(struct control_job *cj)
{
	struct sandboxjob *j = (struct sandboxjob *)cj;

	waitwords_tell(j->words);
	j->order.done(j->order.owner, j);
	if (j->fd >= 0)
		close(j->fd);
	sandbox_info_release(&j->info);
	free(j->name);
	free(j->identifier);
	free(j->tenant);
	free(j);
}

void sandboxjob_submit(struct runner *r, const struct sandboxjob_order *o)
{
	struct sandboxjob *j = xcalloc(1, sizeof(*j));
	struct sandbox_spec *spec = &j->order.spec;

	j->job = (struct control_job){.work = work, .done = done};
	j->b = r->backend;
	j->words = r->words;
	j->order = *o;
	j->fd = -1;
	spec->name = j->name = xstrdup(o->spec.name);
	spec->identifier = j->identifier = xstrdup(o->spec.identifier);
	spec->tenant = j->tenant = xstrdup(o->spec.tenant);
	spec->cpu_cores = r->conf->default_cpu_cores;
	spec->memory_mb = r->conf->default_memory_mb;
	spec->pids = r->conf->default_pids;
	control_submit(r->control, &j->job);
}
