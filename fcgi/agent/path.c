/* SPDX-License-Identifier: MIT */
#include "agent/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"
#include "wire/agentproto.h"

/* As in linux/openat2.h, which a musl tool chain does not bring. */
enum { NO_MAGICLINKS = 2, NO_SYMLINKS = 4, BENEATH = 8, IN_ROOT = 16 };
struct how {
	uint64_t flags, mode, resolve;
};

enum { ALWAYS = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY };

static bool no_openat2;

void path_without_openat2(void)
{
	no_openat2 = true;
}

static const struct path_make no_make = {.make = false};

/* One folder down; made first when it is missing and that is wanted. */
static int step(int dirfd, const char *name, struct path_make make)
{
	int fd = openat(dirfd, name, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd >= 0 || errno != ENOENT || !make.make) {
		/* O_PATH|O_DIRECTORY on a symlink says ENOTDIR; tell it apart. */
		if (fd < 0 && errno == ENOTDIR &&
		    fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			errno = S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR;
		return fd;
	}
	if (mkdirat(dirfd, name, 0755) < 0 && errno != EEXIST)
		return -1;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && fchown(fd, make.uid, make.gid) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static int parent_by_steps(int rootfd, const char *path, struct path_make make,
			   const char **ret_name)
{
	char name[AP_PATH_MAX + 1];
	int dir = fcntl(rootfd, F_DUPFD_CLOEXEC, 0), next;
	const char *slash;

	while (dir >= 0 && (slash = strchr(path, '/'))) {
		size_t n = (size_t)(slash - path);

		if (n > AP_PATH_MAX) {
			close(dir);
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(name, path, n);
		name[n] = '\0';
		next = step(dir, name, make);
		close(dir);
		dir = next;
		path = slash + 1;
	}
	*ret_name = path;
	return dir;
}

static int open_by_steps(int rootfd, const char *path, int flags)
{
	const char *name;
	AUTO_CLOSE int dir = parent_by_steps(rootfd, path, no_make, &name);
	struct stat st;

	if (dir < 0)
		return -1;
	/* O_PATH would open a symlink itself. */
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode)) {
		errno = ELOOP;
		return -1;
	}
	return openat(dir, name, flags | ALWAYS);
}

int path_open(int rootfd, const char *path, int flags, bool follow)
{
	struct how how = {.flags = (uint64_t)(unsigned)(flags | ALWAYS),
			  .resolve = BENEATH | NO_SYMLINKS | NO_MAGICLINKS};
	long fd = -1;

	if (flags & O_PATH) /* openat2() takes nothing beside it that cannot matter */
		how.flags &= ~(uint64_t)(O_NONBLOCK | O_NOCTTY);
	if (follow) {
		how.flags &= ~(uint64_t)O_NOFOLLOW;
		how.resolve = IN_ROOT | NO_MAGICLINKS;
	}
	errno = ENOSYS;
	if (!no_openat2)
		fd = syscall(SYS_openat2, rootfd, path, &how, sizeof(how));
	/*
	 * A seccomp profile that is older than the call says EPERM; ENOTDIR may
	 * mean a symlink, the long way tells.
	 */
	if (fd < 0 &&
	    (errno == ENOSYS || errno == EPERM || (errno == ENOTDIR && !follow)))
		return open_by_steps(rootfd, path, flags);
	return (int)fd;
}

/* The first n bytes of path, a folder that is there or is made now. */
static int open_prefix(int rootfd, int dir, const char *path, size_t n,
		       struct path_make make)
{
	char prefix[AP_PATH_MAX + 1];
	const char *name;
	int fd;

	memcpy(prefix, path, n);
	prefix[n] = '\0';
	fd = path_open(rootfd, prefix, O_PATH | O_DIRECTORY, true);
	if (fd >= 0 || errno != ENOENT || !make.make)
		return fd;
	name = strrchr(prefix, '/');
	name = name ? name + 1 : prefix;
	if (mkdirat(dir, name, 0755) < 0)
		return -1; /* EEXIST: a symlink that leads nowhere */
	if (fchownat(dir, name, make.uid, make.gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	return path_open(rootfd, prefix, O_PATH | O_DIRECTORY, true);
}

/* Each prefix anew from the root, because an absolute link begins there. */
static int parent_following(int rootfd, const char *path, struct path_make make,
			    const char **ret_name)
{
	int dir = fcntl(rootfd, F_DUPFD_CLOEXEC, 0), next;
	const char *slash, *from = path;

	while (dir >= 0 && (slash = strchr(from, '/'))) {
		if (slash - path > AP_PATH_MAX) {
			close(dir);
			errno = ENAMETOOLONG;
			return -1;
		}
		next = open_prefix(rootfd, dir, path, (size_t)(slash - path), make);
		close(dir);
		dir = next;
		from = slash + 1;
	}
	*ret_name = from;
	return dir;
}

int path_open_parent(int rootfd, const char *path, struct path_make make,
		     const char **ret_name)
{
	return make.follow && !no_openat2 ? parent_following(rootfd, path, make, ret_name)
					  : parent_by_steps(rootfd, path, make, ret_name);
}

int path_open_root(const char *root, bool follow)
{
	AUTO_CLOSE int top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char path[AP_PATH_MAX + 1];
	size_t n;

	while (*root == '/')
		root++;
	n = strlen(root);
	while (n > 0 && root[n - 1] == '/')
		n--;
	if (n > AP_PATH_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (n == 0)
		return top < 0 ? -1 : open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	memcpy(path, root, n);
	path[n] = '\0';
	return path_open(top, path, O_RDONLY | O_DIRECTORY, follow);
}
