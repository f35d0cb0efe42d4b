/* SPDX-License-Identifier: MIT */
#ifndef AGENT_USERS_H
#define AGENT_USERS_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Who a command runs as, from the image's /etc/passwd and /etc/group. Both are
 * read by hand: a static libc has no NSS, and the files belong to the sandbox,
 * so they may say anything. Only the first USERS_FILE_MAX bytes count. What was found
 * is used again until one of the files has changed.
 */
enum { USERS_FILE_MAX = 256 * 1024, USERS_GROUPS_MAX = 64, USERS_FIELD_MAX = 256 };

struct user {
	uid_t uid;
	gid_t gid;
	char name[USERS_FIELD_MAX];
	char home[USERS_FIELD_MAX];
	char shell[USERS_FIELD_MAX];
	gid_t groups[USERS_GROUPS_MAX]; /* supplementary, gid included */
	size_t ngroups;
};

/*
 * 0, or -1 with errno. A uid that passwd does not name is taken as a number, as Docker
 * does: an image needs no user for our sake. It is `sandbox` then, at home in
 * /workspace, in the group of the same number.
 */
int users_find(uid_t uid, const char *passwd_path, const char *group_path,
	       struct user *ret);

#endif
