/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/fsreq.h"
#include "agent/path.h"
#include "base/auto.h"

enum { RENAME_EXCL = 1 }; /* RENAME_NOREPLACE, which not every libc names */

static void write_release(struct fs_request *r)
{
	if (r->fd >= 0)
		close(r->fd);
	if (r->dirfd >= 0) {
		if (r->temp[0])
			unlinkat(r->dirfd, r->temp, 0);
		close(r->dirfd);
	}
	r->fd = r->dirfd = -1;
}

static const struct fs_ops write_ops = {.next = NULL, .release = write_release};

bool fswrite_is(const struct fs_request *r)
{
	return r->ops == &write_ops;
}

/* A name beside the final one that nobody can have made before; 0 or errno. */
static int open_temp(struct fs_request *r)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return errno;
	snprintf(r->temp, sizeof(r->temp), ".mcp-%016llx", (unsigned long long)random);
	r->fd = openat(r->dirfd, r->temp,
		       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (r->fd < 0) {
		r->temp[0] = '\0';
		return errno;
	}
	return 0;
}

/* What is there already says mode and owner of what takes its place. */
static int look_at_old(struct fs_request *r)
{
	struct stat st;

	if (!r->keeps || fstatat(r->dirfd, r->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISLNK(st.st_mode))
		return ELOOP;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	if (!S_ISREG(st.st_mode))
		return EINVAL;
	r->mode = st.st_mode & 0777;
	if (r->owner != (uid_t)-1) {
		r->owner = st.st_uid;
		r->group = st.st_gid;
	}
	return 0;
}

static int open_place(struct fs_request *r, const struct ap_fs_write *m)
{
	struct path_make make = {.follow = m->flags & AP_WRITE_FOLLOW,
				 .make = m->flags & AP_WRITE_MKDIRS,
				 .uid = r->owner,
				 .gid = r->group};
	char root[AP_PATH_MAX + 1];
	AUTO_CLOSE int rootfd = -1;
	int error;

	fsreq_copy(root, m->root);
	fsreq_copy(r->path, m->path);
	rootfd = path_open_root(root, make.follow);
	if (rootfd >= 0)
		r->dirfd = path_open_parent(rootfd, r->path, make, &r->name);
	error = r->dirfd < 0 ? errno : look_at_old(r);
	return error ? error : open_temp(r);
}

void fswrite_start(struct fs_request *r, const struct ap_fs_write *m)
{
	bool as_owner = m->flags & AP_WRITE_AS_OWNER;
	int error;

	r->ops = &write_ops;
	r->is_excl = m->flags & AP_WRITE_EXCL;
	r->keeps = m->flags & AP_WRITE_KEEP;
	r->owner = as_owner ? (uid_t)-1 : m->uid;
	r->group = as_owner ? (gid_t)-1 : m->gid;
	r->mode = m->mode;
	fsreq_enter(r);
	error = open_place(r, m);
	fsreq_leave(r);
	if (!error && fchown(r->fd, r->owner, r->group) < 0)
		error = errno;
	if (!error && fchmod(r->fd, r->mode) < 0)
		error = errno;
	if (error)
		fsreq_fail(r, error);
}

void fswrite_data(struct fs_request *r, const struct ap_fs_data *m)
{
	size_t done = 0;
	ssize_t n;

	if (m->offset != r->end.count) {
		fsreq_fail(r, EINVAL);
		return;
	}
	while (done < m->bytes.n) {
		n = write(r->fd, m->bytes.p + done, m->bytes.n - done);
		if (n < 0 && errno != EINTR) {
			fsreq_fail(r, errno);
			return;
		}
		if (n > 0)
			done += (size_t)n;
	}
	r->end.count += done;
}

static int put_in_place(struct fs_request *r)
{
	if (r->is_excl)
		return (int)syscall(SYS_renameat2, r->dirfd, r->temp, r->dirfd, r->name,
				    RENAME_EXCL);
	return renameat(r->dirfd, r->temp, r->dirfd, r->name);
}

void fswrite_end(struct fs_request *r)
{
	struct stat st;
	int error = 0;

	fsreq_enter(r);
	if (put_in_place(r) < 0)
		error = errno;
	fsreq_leave(r);
	if (!error && fstat(r->fd, &st) < 0)
		error = errno;
	if (error) {
		fsreq_fail(r, error);
		return;
	}
	r->temp[0] = '\0';
	fsreq_describe(r, &st);
	r->is_over = true;
}
