/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/io.h"

/*
 * The tree may be as deep as whoever filled it wanted, so this does not recurse:
 * a folder that is not empty is moved up to the top under a name of its own and
 * emptied from there. Three descriptors are in use, whatever the depth.
 */
struct sweep {
	const char *path; /* of the top, for messages */
	int top;
	dev_t dev;
	unsigned long moved;
};

static void auto_closedir(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* The folder at dir/name as a stream; NULL with e set. */
static DIR *open_dir(const struct sweep *s, int dir, const char *name, struct err *e)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	DIR *d;

	if (fd < 0 || fstat(fd, &st) < 0) {
		err_sys(e, "open a folder in %s", s->path);
	} else if (st.st_dev != s->dev) {
		err_set(e, ERR_CONFLICT, "something is mounted in %s", s->path);
	} else {
		d = fdopendir(fd);
		if (d)
			return d;
		err_sys(e, "read a folder in %s", s->path);
	}
	if (fd >= 0)
		close(fd);
	return NULL;
}

/* Moves dir/name to a fresh name in the top folder. */
static int move_up(struct sweep *s, int dir, const char *name, struct err *e)
{
	char to[32];

	for (;;) {
		snprintf(to, sizeof to, ".rmtree.%lu", s->moved++);
		if (renameat2(dir, name, s->top, to, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != EEXIST)
			return err_sys(e, "move a folder in %s", s->path);
	}
}

/* 1: removed; 0: a folder that is not empty; -1: error. */
static int remove_entry(const struct sweep *s, int dir, const char *name, struct err *e)
{
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 1;
	if (errno != EISDIR && errno != EPERM)
		return err_sys(e, "remove a file in %s", s->path);
	if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 1;
	if (errno == ENOTEMPTY || errno == EEXIST)
		return 0;
	return err_sys(e, "remove a folder in %s", s->path);
}

/* Empties the folder top/name but for sub-folders, which it moves up. */
static int empty_dir(struct sweep *s, const char *name, struct err *e)
{
	__attribute__((cleanup(auto_closedir))) DIR *d = open_dir(s, s->top, name, e);
	struct dirent *de;
	int done;

	if (!d)
		return -1;
	while ((de = readdir(d)) != NULL) {
		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		done = remove_entry(s, dirfd(d), de->d_name, e);
		if (done < 0 || (!done && move_up(s, dirfd(d), de->d_name, e) < 0))
			return -1;
	}
	return 0;
}

/* One pass over the top; *ret_left tells if folders may be there still. */
static int pass(struct sweep *s, bool *ret_left, struct err *e)
{
	__attribute__((cleanup(auto_closedir))) DIR *d = open_dir(s, s->top, ".", e);
	struct dirent *de;
	int done;

	*ret_left = false;
	if (!d)
		return -1;
	while ((de = readdir(d)) != NULL) {
		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		done = remove_entry(s, s->top, de->d_name, e);
		if (done < 0)
			return -1;
		if (done)
			continue;
		*ret_left = true;
		if (empty_dir(s, de->d_name, e) < 0)
			return -1;
	}
	return 0;
}

int io_rmtree(const char *path, struct err *e)
{
	AUTO_CLOSE int top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct sweep s = {.path = path, .top = top};
	struct stat st;
	bool left = true;

	if (top < 0 && errno == ENOENT)
		return 0;
	if (top < 0 && (errno == ENOTDIR || errno == ELOOP))
		return unlink(path) < 0 ? err_sys(e, "remove %s", path) : 0;
	if (top < 0 || fstat(top, &st) < 0)
		return err_sys(e, "open %s", path);
	s.dev = st.st_dev;
	while (left)
		if (pass(&s, &left, e) < 0)
			return -1;
	return rmdir(path) < 0 ? err_sys(e, "remove %s", path) : 0;
}
