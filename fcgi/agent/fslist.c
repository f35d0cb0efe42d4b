/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/fs.h"
#include "agent/fsreq.h"
#include "agent/path.h"

enum {
	ENTRY_ROOM = AP_PATH_MAX + 128, /* any entry fits */
	LOOKS_MAX = 512,                /* entries in one frame, for the loop's sake */
};

static void list_release(struct fs_request *r)
{
	while (r->depth > 0)
		closedir(r->levels[--r->depth].dir);
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

/* Take over fd as the next level; 0 or errno. */
static int push(struct fs_request *r, int fd, size_t path_n)
{
	DIR *d = fdopendir(fd);
	int error = errno;

	if (!d) {
		close(fd);
		return error;
	}
	r->levels[r->depth++] = (struct fs_level){d, path_n};
	return 0;
}

/* Into a folder that has just been found; 0 or errno. */
static int descend(struct fs_request *r, int dirfd, const char *name, size_t path_n)
{
	int fd;

	if (r->depth == r->depth_max && r->depth_max < AP_LIST_DEPTH_MAX)
		return 0; /* not asked for */
	/* Names are at most 255 bytes: all that is in it must have a path. */
	if (r->depth == AP_LIST_DEPTH_MAX || path_n + 1 + 255 > AP_PATH_MAX)
		return ENAMETOOLONG;
	fd = openat(dirfd, name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? errno : push(r, fd, path_n);
}

static uint8_t file_type(mode_t mode)
{
	static const struct {
		mode_t mode;
		uint8_t type;
	} table[] = {
		{S_IFREG, AP_FILE_REGULAR}, {S_IFDIR, AP_FILE_DIRECTORY},
		{S_IFLNK, AP_FILE_SYMLINK}, {S_IFIFO, AP_FILE_FIFO},
		{S_IFSOCK, AP_FILE_SOCKET}, {S_IFBLK, AP_FILE_DEVICE},
		{S_IFCHR, AP_FILE_DEVICE},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if ((mode & S_IFMT) == table[i].mode)
			return table[i].type;
	}
	return AP_FILE_OTHER;
}

static struct ap_entry make_entry(const struct stat *st)
{
	return (struct ap_entry){
		.type = file_type(st->st_mode),
		.mode = st->st_mode & 07777,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.nlink = (uint32_t)st->st_nlink,
		.size = (uint64_t)st->st_size,
		.mtime_ns =
			(int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
		.ctime_ns =
			(int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec,
		.dev = st->st_dev,
		.ino = st->st_ino,
	};
}

/* The path of name in the folder on top; its length. */
static size_t join(struct fs_request *r, const char *name)
{
	size_t n = r->levels[r->depth - 1].path_n, len = strlen(name);

	if (n > 0)
		r->path[n++] = '/';
	if (n + len > AP_PATH_MAX)
		return 0;
	memcpy(r->path + n, name, len + 1);
	return n + len;
}

static size_t put_name(struct fs_request *r, const char *name, uint8_t *dst, size_t cap)
{
	int folder = dirfd(r->levels[r->depth - 1].dir);
	size_t path_n = join(r, name);
	struct ap_entry e;
	struct stat st;

	if (path_n == 0)
		return 0;
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		e = make_entry(&st);
		if (e.type == AP_FILE_DIRECTORY)
			e.error = (uint32_t)descend(r, folder, name, path_n);
	} else {
		if (errno == ENOENT)
			return 0; /* removed meanwhile */
		e = (struct ap_entry){.type = AP_FILE_OTHER, .error = (uint32_t)errno};
	}
	e.path = (struct ap_bytes){(const uint8_t *)r->path, path_n};
	r->end.count++;
	return ap_entry_put(dst, cap, &e);
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static size_t put_entries(struct fs_request *r, uint8_t *dst, size_t cap)
{
	size_t used = 0;
	struct dirent *d;

	for (int i = 0; i < LOOKS_MAX && r->depth > 0 && cap - used >= ENTRY_ROOM; i++) {
		d = readdir(r->levels[r->depth - 1].dir);
		if (!d)
			closedir(r->levels[--r->depth].dir);
		else if (!is_dots(d->d_name))
			used += put_name(r, d->d_name, dst + used, cap - used);
	}
	return used;
}

static void list_next(struct fs_request *r, struct out *o)
{
	static uint8_t entries[AP_CHUNK_MAX];
	struct ap_msg m = {.type = AP_FS_ENTRIES, .u.fs_entries = {.req = r->end.req}};
	size_t n;

	fsreq_enter(r);
	n = put_entries(r, entries, sizeof(entries));
	fsreq_leave(r);
	r->credit -= (int64_t)n;
	m.u.fs_entries.entries = (struct ap_bytes){entries, n};
	if (n > 0)
		out_put(o, &m);
	r->is_over = r->depth == 0;
}

static const struct fs_ops list_ops = {.next = list_next, .release = list_release};

void fslist_start(struct fs_request *r, const struct ap_fs_list *m)
{
	struct stat st;
	int fd, error;

	r->ops = &list_ops;
	r->credit = m->credit;
	r->depth_max = m->depth ? m->depth : AP_LIST_DEPTH_MAX;
	fsreq_copy(r->path, m->root);
	fsreq_enter(r);
	fd = path_open_root(r->path, m->flags & AP_FS_FOLLOW);
	error = fd < 0 ? errno : 0;
	fsreq_leave(r);
	if (fd < 0) {
		fsreq_fail(r, error);
		return;
	}
	if (fstat(fd, &st) == 0)
		fsreq_describe(r, &st);
	error = push(r, fd, 0);
	if (error)
		fsreq_fail(r, error);
}

bool fs_is_empty(const char *root)
{
	int fd = path_open_root(root, false);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;

	if (!dir) {
		bool is_missing = fd < 0 && errno == ENOENT;

		if (fd >= 0)
			close(fd);
		return is_missing;
	}
	do {
		errno = 0;
		d = readdir(dir);
	} while (d && is_dots(d->d_name));
	bool is_empty = !d && errno == 0;
	closedir(dir);
	return is_empty;
}
