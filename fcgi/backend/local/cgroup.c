/* SPDX-License-Identifier: MIT */
#include "backend/local/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "backend/oomfile.h"
#include "base/auto.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

static const struct {
	const char *controller, *what;
	const char *file[2], *value[2]; /* of version 1, 2: a limit to try */
} limits[CGROUP_LIMIT_COUNT] = {
	[CGROUP_CPU] = {"cpu",
			"CPU time",
			{"cpu.cfs_quota_us", "cpu.max"},
			{"50000", "50000 100000"}},
	[CGROUP_MEMORY] = {"memory",
			   "memory",
			   {"memory.limit_in_bytes", "memory.max"},
			   {"67108864", "67108864"}},
	[CGROUP_PIDS] = {"pids",
			 "the number of processes",
			 {"pids.max", "pids.max"},
			 {"64", "64"}},
};
static const char *const swap_file[2] = {"memory.memsw.limit_in_bytes",
					 "memory.swap.max"};
static const char *const swap_value[2] = {"67108864", "0"};

/* /proc escapes blanks in paths as \040; such a mount of cgroups is not ours. */
struct mount {
	struct str point, type, options;
};

/* One line of mountinfo: proc_pid_mountinfo(5). */
static bool mount_parse(struct str line, struct mount *ret)
{
	struct str field, rest = line;
	int i;

	for (i = 0; str_cut(&rest, ' ', &field); i++) {
		if (i == 4)
			ret->point = field;
		if (str_eq(field, "-"))
			return i >= 6 && str_cut(&rest, ' ', &ret->type) &&
			       str_cut(&rest, ' ', &field) &&
			       str_cut(&rest, ' ', &ret->options);
	}
	return false;
}

static void mount_add(struct cgroups *c, const struct mount *m)
{
	char *point = xstrndup(m->point.p, m->point.n);
	AUTO_FREE char *options = xstrndup(m->options.p, m->options.n);
	size_t n = strv_len(c->mounts), i;

	c->mounts = xreallocarray(c->mounts, n + 2, sizeof *c->mounts);
	c->mounts[n] = point;
	c->mounts[n + 1] = NULL;
	for (i = 0; !c->v2 && i < CGROUP_LIMIT_COUNT; i++)
		if (!c->dir[i] && str_list_has(options, limits[i].controller))
			c->dir[i] = xasprintf("%s%s", point, c->parent);
}

/* Version 2 alone: the root's own list says which controllers there are. */
static void find_v2(struct cgroups *c)
{
	AUTO_FREE char *path = xasprintf("%s/cgroup.controllers", c->mounts[0]);
	AUTO_BUF text = BUF_INIT(4096);
	struct err e = ERR_INIT;
	struct str rest, word;
	int i;

	c->v2 = true;
	if (io_read_file(path, &text, &e) < 0)
		return;
	rest = str_trim((struct str){text.p, text.len});
	while (str_cut(&rest, ' ', &word))
		for (i = 0; i < CGROUP_LIMIT_COUNT; i++)
			if (str_eq(word, limits[i].controller) && !c->dir[i])
				c->dir[i] = xasprintf("%s%s", c->mounts[0], c->parent);
}

/* A container without privileges sees them, but no group can be made. */
static int check_writable(const struct cgroups *c, struct err *e)
{
	struct statvfs s;

	for (size_t i = 0; c->mounts[i]; i++)
		if (statvfs(c->mounts[i], &s) < 0 || !(s.f_flag & ST_RDONLY))
			return 0;
	return err_set(e, ERR_BACKEND,
		       "%s is mounted read-only, but each sandbox needs a control group: "
		       "in a container, run it privileged (docker run --privileged), or "
		       "set SANDBOX_BACKEND=docker or kubernetes",
		       c->mounts[0]);
}

static int find_mounts(struct cgroups *c, struct err *e)
{
	AUTO_BUF text = BUF_INIT(8 << 20);
	struct str rest, line;
	struct mount m;
	bool v1 = false;

	if (io_read_file("/proc/self/mountinfo", &text, e) < 0)
		return -1;
	rest = (struct str){text.p, text.len};
	while (str_cut(&rest, '\n', &line)) {
		if (!mount_parse(line, &m))
			continue;
		if (!str_eq(m.type, "cgroup") && !str_eq(m.type, "cgroup2"))
			continue;
		v1 = v1 || str_eq(m.type, "cgroup");
		mount_add(c, &m);
	}
	if (!c->mounts)
		return err_set(e, ERR_BACKEND,
			       "no control groups are mounted on /sys/fs/cgroup: limits "
			       "and a safe stop of sandboxes need them");
	if (!v1)
		find_v2(c);
	return check_writable(c, e);
}

static int write_file(const char *dir, const char *file, const char *value)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, file);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
	size_t n = strlen(value);

	return fd >= 0 && write(fd, value, n) == (ssize_t)n ? 0 : -1;
}

/* Hands the controllers down to the groups of the sandboxes (version 2). */
static void enable_v2(const struct cgroups *c)
{
	AUTO_FREE char *ours = xasprintf("%s%s", c->mounts[0], c->parent);
	char word[32];
	int i;

	mkdir(ours, 0755);
	for (i = 0; i < CGROUP_LIMIT_COUNT; i++) {
		snprintf(word, sizeof word, "+%s", limits[i].controller);
		if (c->dir[i] &&
		    (write_file(c->mounts[0], "cgroup.subtree_control", word) < 0 ||
		     write_file(ours, "cgroup.subtree_control", word) < 0))
			continue; /* the try that follows finds out */
	}
}

/* Sets a limit in a group made for it. */
static bool try_limit(const struct cgroups *c, int i, const char *file, const char *value)
{
	AUTO_FREE char *group = xasprintf("%s/probe", c->dir[i]);
	bool good;

	mkdir(c->dir[i], 0755);
	if (mkdir(group, 0755) < 0 && errno != EEXIST)
		return false;
	/* memory + swap must not be below memory */
	if (strcmp(file, swap_file[0]) == 0)
		write_file(group, limits[i].file[0], limits[i].value[0]);
	good = write_file(group, file, value) == 0;
	rmdir(group);
	return good;
}

static void try_all(struct cgroups *c, backend_progress_fn *progress, void *arg)
{
	char line[256];
	int i;

	for (i = 0; i < CGROUP_LIMIT_COUNT; i++) {
		c->enforced[i] = c->dir[i] && try_limit(c, i, limits[i].file[c->v2],
							limits[i].value[c->v2]);
		if (c->enforced[i])
			continue;
		snprintf(line, sizeof line,
			 "warning: the limit of %s cannot be enforced here (cgroup "
			 "controller '%s' is missing or not delegated)",
			 limits[i].what, limits[i].controller);
		progress(arg, BACKEND_NOBODY, line);
	}
	c->swap = c->enforced[CGROUP_MEMORY] &&
		  try_limit(c, CGROUP_MEMORY, swap_file[c->v2], swap_value[c->v2]);
	if (c->enforced[CGROUP_MEMORY] && !c->swap)
		progress(arg, BACKEND_NOBODY,
			 "warning: swap of sandboxes cannot be limited here (the "
			 "kernel does not count it): with swap on, they may use "
			 "more than their memory limit");
}

int cgroups_open(const char *parent, backend_progress_fn *progress, void *arg,
		 struct cgroups *ret, struct err *e)
{
	struct cgroups c = {.parent = xstrdup(parent)};

	if (find_mounts(&c, e) < 0) {
		cgroups_release(&c);
		return -1;
	}
	if (c.v2)
		enable_v2(&c);
	try_all(&c, progress, arg);
	*ret = c;
	return 0;
}

int cgroups_oom_kills(const struct cgroups *c, const char *child, uint64_t *ret,
		      struct err *e)
{
	AUTO_FREE char *path = NULL;

	if (!c->dir[CGROUP_MEMORY])
		return err_set(e, ERR_NOT_FOUND, "no memory controller");
	path = xasprintf("%s/%s/%s", c->dir[CGROUP_MEMORY], child,
			 oomfile_name(c->v2 ? 2 : 1));
	return oomfile_read(path, ret, e);
}

/* Sends KILL to the members; false: there are none. */
static bool kill_members(const char *group)
{
	AUTO_FREE char *path = xasprintf("%s/cgroup.procs", group);
	AUTO_BUF text = BUF_INIT(1 << 20);
	struct err e = ERR_INIT;
	struct str rest, line;
	bool any = false;
	int64_t pid;

	if (io_read_file(path, &text, &e) < 0)
		return false;
	rest = (struct str){text.p, text.len};
	while (str_cut(&rest, '\n', &line)) {
		AUTO_FREE char *digits = xstrndup(line.p, line.n);

		if (num_parse(digits, 1, INT32_MAX, &pid, &e) < 0)
			continue;
		any = true;
		kill((pid_t)pid, SIGKILL);
	}
	return any;
}

/*
 * The end of a killed process cannot be waited for through a group of version 1
 * (it has no event), so this looks again in small steps, a short while.
 */
static int end_group(const char *group, struct err *e)
{
	enum { TRIES = 500, STEP_NS = 10 * 1000 * 1000 };
	struct timespec step = {.tv_nsec = STEP_NS};
	int i;

	for (i = 0; i < TRIES; i++) {
		if (!kill_members(group) && (rmdir(group) == 0 || errno == ENOENT))
			return 0;
		nanosleep(&step, NULL);
	}
	return err_set(e, ERR_TIMEOUT, "processes in %s do not end", group);
}

int cgroups_end(const struct cgroups *c, const char *child, struct err *e)
{
	size_t i;

	for (i = 0; c->mounts[i]; i++) {
		AUTO_FREE char *group =
			xasprintf("%s%s/%s", c->mounts[i], c->parent, child);

		if (io_exists(group) && end_group(group, e) < 0)
			return -1;
	}
	return 0;
}

void cgroups_remove_parent(const struct cgroups *c)
{
	size_t i;

	for (i = 0; c->mounts && c->mounts[i]; i++) {
		AUTO_FREE char *dir = xasprintf("%s%s", c->mounts[i], c->parent);

		rmdir(dir); /* refused while a sandbox is in it: as it should */
	}
}

void cgroups_release(struct cgroups *c)
{
	int i;

	for (i = 0; i < CGROUP_LIMIT_COUNT; i++)
		free(c->dir[i]);
	free(c->parent);
	strv_free(c->mounts);
	*c = (struct cgroups){0};
}
