/* SPDX-License-Identifier: MIT */
#include "backend/local/cglimits.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/num.h"

enum { PERIOD_US = 100000, TEXT_MAX = 64 };
/* Version 1 says "no limit" with a number of about 2^63. */
static const int64_t no_memory_limit = INT64_C(1) << 60;

/* One file of one group. */
struct knob {
	const char *dir, *child, *file;
};

static char *path_of(const struct knob *k)
{
	return xasprintf("%s/%s/%s", k->dir, k->child, k->file);
}

/* Its first line into text. */
static int get(const struct knob *k, char text[static TEXT_MAX], struct err *e)
{
	AUTO_FREE char *path = path_of(k);
	AUTO_BUF b = BUF_INIT(4096);

	if (io_read_file(path, &b, e) < 0)
		return -1;
	snprintf(text, TEXT_MAX, "%.*s", (int)strcspn(b.p, "\n"), b.p);
	return 0;
}

static int put(const struct knob *k, const char *value, struct err *e)
{
	AUTO_FREE char *path = path_of(k);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		return err_sys(e, "write %s to %s", value, path);
	return 0;
}

static int put_other(const struct knob *k, const char *value, struct err *e)
{
	char now[TEXT_MAX];

	if (get(k, now, e) < 0)
		return -1;
	return strcmp(now, value) == 0 ? 0 : put(k, value, e);
}

static int fit_cpu(const struct cgroups *c, const char *child,
		   const struct cglimits *want, struct err *e)
{
	const struct knob k = {c->dir[CGROUP_CPU], child,
			       c->v2 ? "cpu.max" : "cpu.cfs_quota_us"};
	int64_t quota = (int64_t)(want->cpu_cores * PERIOD_US);
	char value[TEXT_MAX];

	if (quota <= 0)
		snprintf(value, sizeof(value), c->v2 ? "max %d" : "-1", PERIOD_US);
	else if (c->v2)
		snprintf(value, sizeof(value), "%" PRId64 " %d", quota, PERIOD_US);
	else
		snprintf(value, sizeof(value), "%" PRId64, quota);
	return put_other(&k, value, e);
}

static int fit_pids(const struct cgroups *c, const char *child,
		    const struct cglimits *want, struct err *e)
{
	const struct knob k = {c->dir[CGROUP_PIDS], child, "pids.max"};
	char value[TEXT_MAX] = "max";

	if (want->pids > 0)
		snprintf(value, sizeof(value), "%" PRId64, want->pids);
	return put_other(&k, value, e);
}

/* Bytes; "max", and what version 1 says in its place, as 0. */
static int bytes_of(const struct knob *k, int64_t *ret, struct err *e)
{
	char text[TEXT_MAX];

	if (get(k, text, e) < 0)
		return -1;
	*ret = 0;
	if (strcmp(text, "max") == 0)
		return 0;
	if (num_parse(text, 0, INT64_MAX, ret, e) < 0)
		return -1;
	if (*ret >= no_memory_limit)
		*ret = 0;
	return 0;
}

static int check_usage(const struct cgroups *c, const char *child, int64_t bytes,
		       struct err *e)
{
	const struct knob k = {c->dir[CGROUP_MEMORY], child,
			       c->v2 ? "memory.current" : "memory.usage_in_bytes"};
	int64_t used = 0;

	if (bytes_of(&k, &used, e) < 0)
		return -1;
	if (used < bytes)
		return 0;
	return err_set(e, ERR_LIMIT,
		       "%" PRId64 " MB of memory are in use, more than its limit is now",
		       used >> 20);
}

/* Memory alone may never be above memory with swap: which goes first depends. */
static int put_memory(const struct cgroups *c, const struct knob *k, const char *value,
		      bool up, struct err *e)
{
	const struct knob swap = {k->dir, k->child, "memory.memsw.limit_in_bytes"};

	if (c->v2 || !c->swap)
		return put(k, value, e);
	if (put(up ? &swap : k, value, e) < 0)
		return -1;
	return put(up ? k : &swap, value, e);
}

static int fit_memory(const struct cgroups *c, const char *child,
		      const struct cglimits *want, struct err *e)
{
	const struct knob k = {c->dir[CGROUP_MEMORY], child,
			       c->v2 ? "memory.max" : "memory.limit_in_bytes"};
	int64_t bytes = want->memory_mb << 20, now = 0;
	char value[TEXT_MAX];
	bool up;

	if (bytes_of(&k, &now, e) < 0)
		return -1;
	if (now == bytes)
		return 0;
	up = bytes == 0 || (now > 0 && bytes > now);
	if (!up && check_usage(c, child, bytes, e) < 0)
		return -1;
	if (bytes == 0)
		snprintf(value, sizeof(value), "%s", c->v2 ? "max" : "-1");
	else
		snprintf(value, sizeof(value), "%" PRId64, bytes);
	return put_memory(c, &k, value, up, e);
}

int cglimits_fit(const struct cgroups *c, const char *child, const struct cglimits *want,
		 struct err *e)
{
	static int (*const fits[CGROUP_LIMIT_COUNT])(const struct cgroups *, const char *,
						     const struct cglimits *,
						     struct err *) = {
		[CGROUP_CPU] = fit_cpu,
		[CGROUP_MEMORY] = fit_memory,
		[CGROUP_PIDS] = fit_pids,
	};
	int rc = 0;

	/* The first report wins, the others are tried all the same. */
	for (int i = 0; i < CGROUP_LIMIT_COUNT; i++)
		if (c->enforced[i] && fits[i](c, child, want, e) < 0)
			rc = -1;
	return rc;
}
