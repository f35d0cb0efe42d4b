/* SPDX-License-Identifier: MIT */
#include "backend/docker/oomfiles.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backend/oomfile.h"
#include "base/auto.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/str.h"

struct entry {
	struct entry *next;
	char *name, *path;
};

struct oomfiles {
	pthread_mutex_t lock;
	struct entry *all; /* as many as sandboxes */
};

struct oomfiles *oomfiles_new(void)
{
	struct oomfiles *o = xcalloc(1, sizeof *o);

	pthread_mutex_init(&o->lock, NULL);
	return o;
}

static void entry_free(struct entry *n)
{
	free(n->name);
	free(n->path);
	free(n);
}

void oomfiles_free(struct oomfiles *o)
{
	struct entry *n;

	if (!o)
		return;
	while ((n = o->all)) {
		o->all = n->next;
		entry_free(n);
	}
	pthread_mutex_destroy(&o->lock);
	free(o);
}

/* "memory" among the comma list of a v1 line; the empty list is v2's. */
static int version_of(struct str controllers)
{
	struct str word;

	if (controllers.n == 0)
		return 2;
	while (str_cut(&controllers, ',', &word))
		if (str_eq(word, "memory"))
			return 1;
	return 0;
}

char *oomfiles_path(const char *cgroup_text, const char *id)
{
	struct str rest = str_of(cgroup_text), line, part;

	while (str_cut(&rest, '\n', &line)) {
		int version;

		str_cut(&line, ':', &part); /* the hierarchy's number */
		if (!str_cut(&line, ':', &part) || !line.p)
			continue;
		version = version_of(part);
		if (version == 0 || line.n == 0 || line.p[0] != '/' ||
		    !memmem(line.p, line.n, id, strlen(id)) ||
		    memmem(line.p, line.n, "..", 2))
			continue;
		return xasprintf("/sys/fs/cgroup%s%.*s/%s", version == 1 ? "/memory" : "",
				 (int)line.n, line.p, oomfile_name(version));
	}
	return NULL;
}

static struct entry **find(struct oomfiles *o, const char *name)
{
	struct entry **p = &o->all;

	while (*p && strcmp((*p)->name, name) != 0)
		p = &(*p)->next;
	return p;
}

void oomfiles_forget(struct oomfiles *o, const char *name)
{
	struct entry **p, *n;

	pthread_mutex_lock(&o->lock);
	p = find(o, name);
	n = *p;
	if (n)
		*p = n->next;
	pthread_mutex_unlock(&o->lock);
	if (n)
		entry_free(n);
}

void oomfiles_learn(struct oomfiles *o, const char *name, int pid, const char *id)
{
	AUTO_FREE char *from = xasprintf("/proc/%d/cgroup", pid);
	AUTO_BUF text = BUF_INIT(65536);
	struct err ignored = ERR_INIT;
	struct entry *n;
	char *path;

	oomfiles_forget(o, name);
	if (pid <= 0 || io_read_file(from, &text, &ignored) < 0)
		return;
	path = oomfiles_path(text.p, id);
	if (!path)
		return;
	n = xcalloc(1, sizeof *n);
	n->name = xstrdup(name);
	n->path = path;
	pthread_mutex_lock(&o->lock);
	n->next = o->all;
	o->all = n;
	pthread_mutex_unlock(&o->lock);
}

int oomfiles_read(struct oomfiles *o, const char *name, uint64_t *ret, struct err *e)
{
	AUTO_FREE char *path = NULL;
	struct entry *n;

	pthread_mutex_lock(&o->lock);
	n = *find(o, name);
	if (n)
		path = xstrdup(n->path);
	pthread_mutex_unlock(&o->lock);
	if (!path)
		return err_set(e, ERR_NOT_FOUND, "the count is not known");
	return oomfile_read(path, ret, e);
}
