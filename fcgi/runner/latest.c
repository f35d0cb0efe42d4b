/* SPDX-License-Identifier: MIT */
#include "runner/latest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/id.h"
#include "base/io.h"
#include "base/mem.h"
#include "wire/idenc.h"

static const char link_name[] = "latest", new_name[] = ".latest";

int latest_lock(int root, struct err *e)
{
	while (flock(root, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_sys(e, "lock the artifacts");
	return 0;
}

int latest_point(int folder, const char *run_id, struct err *e)
{
	unlinkat(folder, new_name, 0); /* of a runner that died */
	if (symlinkat(run_id, folder, new_name) < 0 ||
	    renameat(folder, new_name, folder, link_name) < 0)
		return err_sys(e, "point latest to the run");
	return 0;
}

static bool is_newer(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec > b->tv_sec ||
	       (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

/* ret: "" when no run is left. */
static int find_newest(int folder, char ret[static ID_RUN_LEN + 1], struct err *e)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct timespec newest = {0};
	const struct dirent *de;
	struct stat st;

	ret[0] = '\0';
	if (!d) {
		int rc = err_sys(e, "read a folder of artifacts");

		if (fd >= 0)
			close(fd);
		return rc;
	}
	while ((de = readdir(d)))
		if (idenc_is_run_id(de->d_name) &&
		    fstatat(folder, de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    (!ret[0] || is_newer(&st.st_mtim, &newest))) {
			memcpy(ret, de->d_name, ID_RUN_LEN + 1);
			newest = st.st_mtim;
		}
	closedir(d);
	return 0;
}

static bool is_dangling(int folder)
{
	struct stat st;

	return fstatat(folder, link_name, &st, 0) < 0 && errno == ENOENT;
}

int latest_settle(const char *root, const char *tenant, const char *folder, struct err *e)
{
	AUTO_FREE char *path = xasprintf("%s/%s/%s", root, tenant, folder);
	AUTO_CLOSE int root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int fd = -1;
	char newest[ID_RUN_LEN + 1];

	if (root_fd < 0)
		return err_sys(e, "open %s", root);
	if (latest_lock(root_fd, e) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open %s", path);
	if (!is_dangling(fd))
		return 0;
	if (find_newest(fd, newest, e) < 0)
		return -1;
	if (newest[0])
		return latest_point(fd, newest, e);
	unlinkat(fd, new_name, 0);
	unlinkat(fd, link_name, 0);
	/* What an administrator has put there stays, and so the folder. */
	if (rmdir(path) < 0 && errno != ENOTEMPTY && errno != EEXIST)
		return err_sys(e, "remove %s", path);
	return 0;
}
