/* SPDX-License-Identifier: MIT */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/id.h"
#include "base/mem.h"

int io_write_all(int fd, const void *p, size_t n, struct err *e)
{
	const char *at = p;
	ssize_t done;

	while (n > 0) {
		done = write(fd, at, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return err_sys(e, "write");
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

int io_pwrite_all(int fd, const void *p, size_t n, off_t at, struct err *e)
{
	const char *from = p;
	ssize_t done;

	while (n > 0) {
		done = pwrite(fd, from, n, at);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return err_sys(e, "write");
		from += done;
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

int io_read_all(int fd, struct buf *b, struct err *e)
{
	char part[8192];
	ssize_t got;

	for (;;) {
		got = read(fd, part, sizeof part);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, "read");
		if (got == 0)
			return 0;
		buf_add(b, part, (size_t)got);
		if (!buf_ok(b))
			return err_set(e, ERR_LIMIT, "larger than %zu bytes", b->max);
	}
}

int io_read_file(const char *path, struct buf *b, struct err *e)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return err_set(e, ERR_NOT_FOUND, "%s does not exist", path);
	if (fd < 0)
		return err_sys(e, "open %s", path);
	if (io_read_all(fd, b, e) < 0)
		return err_wrap(e, "%s", path);
	return 0;
}

static int write_synced(const char *path, const void *p, size_t n, mode_t mode,
			struct err *e)
{
	AUTO_CLOSE int fd =
		open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return err_sys(e, "create %s", path);
	if (io_write_all(fd, p, n, e) < 0)
		return err_wrap(e, "%s", path);
	if (fchmod(fd, mode) < 0 || fsync(fd) < 0)
		return err_sys(e, "finish %s", path);
	return 0;
}

int io_write_file_atomic(const char *path, const void *p, size_t n, mode_t mode,
			 struct err *e)
{
	char tag[9];
	AUTO_FREE char *tmp = NULL;

	id_random_hex(tag, 8);
	tmp = xasprintf("%s.%s.tmp", path, tag);
	if (write_synced(tmp, p, n, mode, e) < 0 ||
	    (rename(tmp, path) < 0 && err_sys(e, "rename to %s", path) < 0)) {
		unlink(tmp);
		return -1;
	}
	return 0;
}

static int make_dir(const char *path, mode_t mode, struct err *e)
{
	struct stat st;

	if (mkdir(path, 0700) == 0) {
		/* Not by umask: the mode asked for is the mode made. */
		return chmod(path, mode) < 0 ? err_sys(e, "set mode of %s", path) : 0;
	}
	if (errno != EEXIST)
		return err_sys(e, "make folder %s", path);
	if (stat(path, &st) < 0)
		return err_sys(e, "look at %s", path);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ERR_CONFLICT, "%s is there and is not a folder", path);
	return 0;
}

int io_mkdirs(const char *path, mode_t mode, struct err *e)
{
	AUTO_FREE char *part = xstrdup(path);
	char *slash;

	for (slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (make_dir(part, 0755, e) < 0)
			return -1;
		*slash = '/';
	}
	return make_dir(part, mode, e);
}

int io_mkdirs_owned(const char *path, mode_t mode, uid_t uid, gid_t gid, struct err *e)
{
	AUTO_CLOSE int fd = -1;

	if (io_mkdirs(path, mode, e) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_sys(e, "open %s", path);
	/* chown clears set-id bits, so the mode comes after it. */
	if (fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0)
		return err_sys(e, "set owner and mode of %s", path);
	return 0;
}

int io_set_cloexec(int fd, bool on, struct err *e)
{
	return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? err_sys(e, "fcntl") : 0;
}

int io_set_nonblock(int fd, bool on, struct err *e)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return err_sys(e, "fcntl");
	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) < 0 ? err_sys(e, "fcntl") : 0;
}

bool io_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

void io_close_from(int first)
{
	/* Linux 5.9 and glibc 2.34; fails only on a bad range. */
	close_range((unsigned)first, UINT_MAX, 0);
}
