/* SPDX-License-Identifier: MIT */
#include "runner/syncplan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "runner/latest.h"

enum {
	LISTING_MAX = 200000, /* entries read at all */
	LISTING_BYTES_MAX = 32 * 1024 * 1024,
	SKIPS_LISTED = 500, /* one by one; the rest as a number */
	NAME_BYTES_MAX = 255,
	DIR_MODE = 02750,
	FILE_MODE = 0640,
};
static const char staging_name[] = ".staging";

struct syncplan *plan_new(void)
{
	struct syncplan *p = xcalloc(1, sizeof(*p));

	p->staging_fd = -1;
	return p;
}

void plan_free(struct syncplan *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++) {
		free(p->v[i].path);
		free(p->v[i].reason);
	}
	if (p->staging_fd >= 0)
		close(p->staging_fd);
	free(p->v);
	free(p->root);
	free(p->tenant);
	free(p->folder);
	free(p->run_id);
	free(p->previous_run_id);
	free(p);
}

/* ---- what the agent said */

static const char *component_problem(const char *p, size_t n)
{
	if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
		return "its name is no path below /artifacts";
	if (n > NAME_BYTES_MAX)
		return "its name is longer than 255 bytes";
	return NULL;
}

const char *plan_name_problem(const struct ap_bytes *path)
{
	const char *p = (const char *)path->p, *end = p + path->n;
	const char *problem = NULL;

	if (path->n > AP_PATH_MAX)
		return "its path is longer than 4095 bytes";
	if (!utf8_is_valid(p, path->n))
		return "its name is not valid UTF-8, so no url can be given for it";
	while (!problem && p <= end) {
		const char *slash = memchr(p, '/', (size_t)(end - p));
		size_t n = (size_t)((slash ? slash : end) - p);

		problem = component_problem(p, n);
		p += n + 1;
	}
	return problem;
}

static const char *const type_problem[AP_FILE_TYPE_COUNT] = {
	[AP_FILE_SYMLINK] = "it is a symbolic link; copy the file instead",
	[AP_FILE_FIFO] = "it is a named pipe",
	[AP_FILE_SOCKET] = "it is a socket",
	[AP_FILE_DEVICE] = "it is a device",
	[AP_FILE_OTHER] = "it is neither a file nor a folder",
};

/* Into buf when it has to be made. */
static const char *limit_problem(const struct syncplan *p, const struct ap_entry *x,
				 char *buf, size_t size)
{
	const struct plan_limits *l = &p->limits;
	bool is_file = x->type == AP_FILE_REGULAR;

	if (is_file && x->size > AP_OFFSET_MAX)
		snprintf(buf, size, "it is larger than can be copied");
	else if (is_file && l->max_file_bytes && x->size > l->max_file_bytes)
		snprintf(buf, size, "it is larger than the limit of %" PRIu64 " bytes",
			 l->max_file_bytes);
	else if (l->max_files && p->files + p->folders >= l->max_files)
		snprintf(buf, size, "there are more files than the limit of %" PRIu64,
			 l->max_files);
	else if (is_file && l->max_bytes &&
		 (x->size > l->max_bytes || p->bytes > l->max_bytes - x->size))
		snprintf(buf, size,
			 "all together would pass the limit of %" PRIu64 " bytes",
			 l->max_bytes);
	else
		return NULL;
	return buf;
}

static const char *entry_problem(const struct syncplan *p, const struct ap_entry *x,
				 char *buf, size_t size)
{
	char words[128];
	const char *problem = plan_name_problem(&x->path);

	if (problem)
		return problem;
	if (type_problem[x->type])
		return type_problem[x->type];
	if (x->error) {
		snprintf(buf, size, "it could not be read (%s)",
			 strerror_r((int)(x->error % 4096), words, sizeof(words)));
		return buf;
	}
	return limit_problem(p, x, buf, size);
}

static char *shown_path(const struct ap_bytes *path)
{
	AUTO_BUF b = BUF_INIT(4 * AP_PATH_MAX);
	char *p;

	utf8_add_repaired(&b, (const char *)path->p, path->n);
	p = xstrdup(b.p);
	return p;
}

static struct plan_entry *new_entry(struct syncplan *p)
{
	if (p->n == p->cap) {
		p->cap = p->cap ? p->cap * 2 : 16;
		p->v = xreallocarray(p->v, p->cap, sizeof(*p->v));
	}
	p->v[p->n] = (struct plan_entry){0};
	return &p->v[p->n++];
}

void plan_skip(struct syncplan *p, struct plan_entry *entry, const char *reason)
{
	if (entry->fate == PLAN_FETCH || entry->fate == PLAN_LINKED) {
		p->files--;
		p->bytes -= entry->size;
	}
	entry->fate = PLAN_SKIPPED;
	entry->reason = xstrdup(reason);
	p->skipped++;
}

static void add_skipped(struct syncplan *p, const struct ap_entry *x, const char *problem)
{
	struct plan_entry *entry;

	if (p->skipped >= SKIPS_LISTED) {
		p->skipped++;
		return;
	}
	entry = new_entry(p);
	entry->path = shown_path(&x->path);
	entry->size = x->size;
	entry->fate = PLAN_SKIPPED;
	entry->reason = xstrdup(problem);
	p->skipped++;
}

int plan_add(struct syncplan *p, const struct ap_entry *x, struct err *e)
{
	char buf[160];
	const char *problem = entry_problem(p, x, buf, sizeof(buf));
	struct plan_entry *entry;

	p->listing_bytes += x->path.n;
	if (p->n + p->skipped >= LISTING_MAX || p->listing_bytes > LISTING_BYTES_MAX)
		return err_set(e, ERR_LIMIT,
			       "/artifacts has more than %d entries, or names of more "
			       "than %d bytes together",
			       LISTING_MAX, LISTING_BYTES_MAX);
	if (problem) {
		add_skipped(p, x, problem);
		return 0;
	}
	entry = new_entry(p);
	entry->path = xstrndup((const char *)x->path.p, x->path.n);
	entry->mtime_ns = x->mtime_ns;
	entry->ctime_ns = x->ctime_ns;
	entry->size = x->size;
	entry->fate = x->type == AP_FILE_DIRECTORY ? PLAN_FOLDER : PLAN_FETCH;
	if (entry->fate == PLAN_FOLDER) {
		p->folders++;
	} else {
		p->files++;
		p->bytes += x->size;
	}
	return 0;
}

/* ---- the folders */

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

/* The folder of the identifier's previous artifacts; -1: there is none. */
static int open_previous(const struct syncplan *p)
{
	AUTO_FREE char *path = NULL;

	if (!p->previous_run_id)
		return -1;
	path = xasprintf("%s/%s/%s/%s", p->root, p->tenant, p->folder,
			 p->previous_run_id);
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool same_file(int previous, const struct plan_entry *entry)
{
	struct stat st;

	return fstatat(previous, entry->path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode) && (uint64_t)st.st_size == entry->size &&
	       st.st_mtim.tv_sec == entry->ctime_ns / 1000000000 &&
	       st.st_mtim.tv_nsec == entry->ctime_ns % 1000000000;
}

static int stage_entry(struct syncplan *p, struct plan_entry *entry, int previous,
		       struct err *e)
{
	if (entry->fate == PLAN_FOLDER) {
		if (mkdirat(p->staging_fd, entry->path, 0750) < 0 && errno != EEXIST)
			return err_sys(e, "make folder %.200s", entry->path);
		return 0;
	}
	if (entry->fate == PLAN_FETCH && previous >= 0 && same_file(previous, entry) &&
	    linkat(previous, entry->path, p->staging_fd, entry->path, 0) == 0)
		entry->fate = PLAN_LINKED;
	return 0;
}

int plan_stage(struct syncplan *p, struct err *e)
{
	AUTO_CLOSE int previous = open_previous(p);

	if (open_staging(p, e) < 0)
		return err_wrap(e, "the folder for artifacts");
	for (size_t i = 0; i < p->n; i++)
		if (stage_entry(p, &p->v[i], previous, e) < 0)
			return -1;
	return 0;
}

int plan_open(const struct syncplan *p, const struct plan_entry *entry, int *ret_fd,
	      struct err *e)
{
	int fd = openat(p->staging_fd, entry->path,
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

int plan_publish(struct syncplan *p, struct err *e)
{
	AUTO_CLOSE int root = -1;
	AUTO_CLOSE int tenant = -1;
	AUTO_CLOSE int folder = -1;
	AUTO_CLOSE int staging = -1;

	if (open_root(p, &root, e) < 0 || latest_lock(root, e) < 0 ||
	    make_dir_at(root, p->tenant, DIR_MODE, p->gid, &tenant, e) < 0 ||
	    make_dir_at(tenant, p->folder, DIR_MODE, p->gid, &folder, e) < 0 ||
	    open_dir_at(root, staging_name, &staging, e) < 0)
		return -1;
	remove_published(p);
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
