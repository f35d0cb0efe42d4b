/* SPDX-License-Identifier: MIT */
#ifndef AGENT_PATH_H
#define AGENT_PATH_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Opening files in a tree that hostile programs change all the time: nothing
 * above root is reached, and no fifo or device makes us wait. No symlink is
 * followed on the way or at the end, unless the caller asks for it; the links of
 * /proc that stand for an open file never are. openat2(2) where the kernel has
 * it, else one component after the other, and then no link is followed at all.
 */

/* A folder, by absolute path. The descriptor, or -1 with errno. */
int path_open_root(const char *root, bool follow);
/* Relative to a folder from path_open_root(). ELOOP: a symlink. */
int path_open(int rootfd, const char *path, int flags, bool follow);
/* The folder that holds path's last component, and that component. With make,
 * missing folders are made, mode 0755, owned by uid and gid (-1: by nobody else). */
struct path_make {
	bool follow;
	bool make;
	uid_t uid;
	gid_t gid;
};
int path_open_parent(int rootfd, const char *path, struct path_make make,
		     const char **ret_name);
/* Only for tests: pretend that openat2(2) is not there. */
void path_without_openat2(void);

#endif
