/* SPDX-License-Identifier: MIT */
#include "runner/syncstage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/io.h"
#include "base/mem.h"
#include "runner/latest.h"
#include "runner/oldfiles.h"
#include "runner/syncdiff.h"
#include "wire/idenc.h"

enum { DIR_MODE = 02750, FILE_MODE = 0640 };
static const char staging_name[] = ".staging";

static int open_dir_at(int at, const char *name, int *ret, struct err *e)
{
	*ret = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret < 0 ? err_sys(e, "open %s", name) : 0;
}

/* A folder of ours below `at`, with the edges' group. */
static int make_dir_at(int at, const char *name, mode_t mode, gid_t gid, int *ret,
		       struct err *e)
{
	if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "make %s", name);
	if (open_dir_at(at, name, ret, e) < 0)
		return -1;
	if ((gid != (gid_t)-1 && fchown(*ret, (uid_t)-1, gid) < 0) ||
	    fchmod(*ret, mode) < 0)
		return err_sys(e, "the group of %s", name);
	return 0;
}

static int open_root(const struct syncplan *p, int *ret, struct err *e)
{
	*ret = open(p->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret < 0 ? err_sys(e, "open %s", p->root) : 0;
}

static void remove_staging(const struct syncplan *p)
{
	AUTO_FREE char *path = xasprintf("%s/%s/%s", p->root, staging_name, p->run_id);
	struct err ignored = ERR_INIT;

	io_rmtree(path, &ignored);
}

static int open_staging(struct syncplan *p, struct err *e)
{
	AUTO_CLOSE int root = -1;
	AUTO_CLOSE int staging = -1;

	remove_staging(p); /* of a runner that died */
	if (open_root(p, &root, e) < 0 ||
	    make_dir_at(root, staging_name, 0700, (gid_t)-1, &staging, e) < 0)
		return -1;
	return make_dir_at(staging, p->run_id, DIR_MODE, p->gid, &p->staging_fd, e);
}

/* ---- the run before */

static int open_below(const char *path, const char *name)
{
	AUTO_FREE char *whole = xasprintf("%s/%s", path, name);

	return open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* False: its files cannot be had, or its folder is not as the rows say. */
static bool open_base(struct syncplan *p, const char *path, int previous)
{
	char base[OLDFILES_TARGET_SIZE];

	p->is_previous_base = oldfiles_base_of(previous, base) < 0;
	p->base_run_id = xstrdup(p->is_previous_base ? p->previous.run_id : base);
	p->base_fd = open_below(path, p->is_previous_base ? "." : IDENC_UNCHANGED);
	if (p->base_fd < 0)
		return false;
	for (size_t i = 0; p->is_previous_base && i < p->previous.nartifacts; i++)
		if (p->previous.artifacts[i].in_base != STORE_BASE_NONE)
			return false;
	return true;
}

/* The folder of the identifier's previous artifacts; -1: there is none. */
static int open_previous(struct syncplan *p)
{
	AUTO_FREE char *path = NULL;
	AUTO_CLOSE int fd = -1;

	if (!p->previous.run_id)
		return -1;
	path = xasprintf("%s/%s/%s/%s", p->root, p->tenant, p->folder,
			 p->previous.run_id);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && open_base(p, path, fd) ? MOVE_FD(fd) : -1;
}

/* ---- what is unchanged */

static int make_folder(const struct syncplan *p, const char *path, struct err *e)
{
	if (mkdirat(p->staging_fd, path, 0750) < 0 && errno != EEXIST)
		return err_sys(e, "make folder %.200s", path);
	return 0;
}

/* A folder that shares has only the folders that it needs. */
static int make_parents(const struct syncplan *p, const char *path, struct err *e)
{
	char part[AP_PATH_MAX + 1];

	for (const char *slash = strchr(path, '/'); p->shares && slash;
	     slash = strchr(slash + 1, '/')) {
		size_t n = (size_t)(slash - path);

		memcpy(part, path, n);
		part[n] = '\0';
		if (make_folder(p, part, e) < 0)
			return -1;
	}
	return 0;
}

static int make_folders(const struct syncplan *p, struct err *e)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].fate == PLAN_FOLDER && make_folder(p, p->v[i].path, e) < 0)
			return -1;
	return 0;
}

/* What cannot be linked (65000 links are many) is fetched. */
static int keep_file(struct syncplan *p, struct plan_entry *entry, int previous,
		     struct err *e)
{
	bool is_in_base = entry->in_base == STORE_BASE_SAME;

	if (entry->fate != PLAN_SAME || (p->shares && is_in_base))
		return 0;
	if (make_parents(p, entry->path, e) < 0)
		return -1;
	if (linkat(is_in_base ? p->base_fd : previous, entry->path, p->staging_fd,
		   entry->path, 0) < 0)
		entry->fate = PLAN_FETCH;
	return 0;
}

static void forget_base(struct syncplan *p)
{
	p->shares = p->must_fill = false;
	for (size_t i = 0; i < p->n; i++)
		p->v[i].in_base = STORE_BASE_NONE;
}

int plan_stage(struct syncplan *p, struct err *e)
{
	AUTO_CLOSE int previous = open_previous(p);

	if (open_staging(p, e) < 0)
		return err_wrap(e, "the folder for artifacts");
	if (previous >= 0)
		plan_compare(p);
	p->shares = previous >= 0 && plan_share(p);
	if (!p->shares && make_folders(p, e) < 0)
		return -1;
	for (size_t i = 0; i < p->n; i++)
		if (keep_file(p, &p->v[i], previous, e) < 0)
			return -1;
	if (!p->shares)
		forget_base(p);
	return 0;
}

/* ---- what is fetched */

int plan_open(const struct syncplan *p, const struct plan_entry *entry, int *ret_fd,
	      struct err *e)
{
	int fd;

	if (make_parents(p, entry->path, e) < 0)
		return -1;
	fd = openat(p->staging_fd, entry->path,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
	if (fd < 0)
		return err_sys(e, "make %.200s", entry->path);
	*ret_fd = fd;
	return 0;
}

int plan_close(const struct plan_entry *entry, int fd, struct err *e)
{
	const struct timespec t[2] = {
		{.tv_nsec = UTIME_OMIT},
		{.tv_sec = entry->ctime_ns / 1000000000,
		 .tv_nsec = entry->ctime_ns % 1000000000},
	};

	if (futimens(fd, t) < 0) {
		int rc = err_sys(e, "the time of %.200s", entry->path);

		close(fd);
		return rc;
	}
	return close(fd) < 0 ? err_sys(e, "write %.200s", entry->path) : 0;
}

void plan_remove(const struct syncplan *p, const struct plan_entry *entry)
{
	unlinkat(p->staging_fd, entry->path, 0);
}

/* ---- in its place */

/* Of a runner that published and died before it could say so. */
static void remove_published(const struct syncplan *p)
{
	AUTO_FREE char *path =
		xasprintf("%s/%s/%s/%s", p->root, p->tenant, p->folder, p->run_id);
	struct err ignored = ERR_INIT;

	if (io_exists(path))
		io_rmtree(path, &ignored);
}

/* The base shows a file that is no artifact any more: be whole without it. */
static int fill(struct syncplan *p, struct err *e)
{
	if (make_folders(p, e) < 0)
		return -1;
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].fate == PLAN_SAME && p->v[i].in_base == STORE_BASE_SAME &&
		    linkat(p->base_fd, p->v[i].path, p->staging_fd, p->v[i].path, 0) < 0)
			return err_sys(e, "keep %.200s", p->v[i].path);
	forget_base(p);
	return 0;
}

int plan_publish(struct syncplan *p, struct err *e)
{
	AUTO_CLOSE int root = -1;
	AUTO_CLOSE int tenant = -1;
	AUTO_CLOSE int folder = -1;
	AUTO_CLOSE int staging = -1;

	if (p->must_fill && fill(p, e) < 0)
		return -1;
	if (open_root(p, &root, e) < 0 || latest_lock(root, e) < 0 ||
	    make_dir_at(root, p->tenant, DIR_MODE, p->gid, &tenant, e) < 0 ||
	    make_dir_at(tenant, p->folder, DIR_MODE, p->gid, &folder, e) < 0 ||
	    open_dir_at(root, staging_name, &staging, e) < 0)
		return -1;
	remove_published(p);
	if (p->shares &&
	    oldfiles_link(p->staging_fd, folder, p->base_run_id, p->gid, e) < 0)
		return -1;
	if (renameat(staging, p->run_id, folder, p->run_id) < 0)
		return err_sys(e, "publish the artifacts");
	return latest_point(folder, p->run_id, e);
}

void plan_discard(struct syncplan *p)
{
	if (p->staging_fd < 0)
		return;
	close(p->staging_fd);
	p->staging_fd = -1;
	remove_staging(p);
}
