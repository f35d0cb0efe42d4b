/* SPDX-License-Identifier: MIT */
#include "agent/users.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"

struct text {
	const char *p;
	size_t n;
};

/* Cut the part before sep off the front of *t; false when nothing is left. */
static bool text_cut(struct text *t, char sep, struct text *ret)
{
	const char *at;

	if (!t->p)
		return false;
	at = t->n ? memchr(t->p, sep, t->n) : NULL;
	*ret = (struct text){t->p, at ? (size_t)(at - t->p) : t->n};
	if (at)
		*t = (struct text){at + 1, t->n - ret->n - 1};
	else
		*t = (struct text){NULL, 0};
	return true;
}

static bool text_number(struct text t, uint32_t *ret)
{
	uint64_t v = 0;

	if (t.n == 0 || t.n > 10)
		return false;
	for (size_t i = 0; i < t.n; i++) {
		if (t.p[i] < '0' || t.p[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(t.p[i] - '0');
	}
	if (v >= UINT32_MAX)
		return false;
	*ret = (uint32_t)v;
	return true;
}

/* False when it is too long or holds a NUL. */
static bool text_copy(struct text t, char dst[USERS_FIELD_MAX])
{
	if (t.n >= USERS_FIELD_MAX || (t.n && memchr(t.p, '\0', t.n)))
		return false;
	memcpy(dst, t.p, t.n);
	dst[t.n] = '\0';
	return true;
}

/* name:password:uid:gid:comment:home:shell */
static bool passwd_line(struct text line, uid_t uid, struct user *ret)
{
	struct text f[7];
	struct user u = {.uid = uid};
	uint32_t found;

	for (size_t i = 0; i < 7; i++) {
		if (!text_cut(&line, ':', &f[i]))
			return false;
	}
	if (!text_number(f[2], &found) || found != uid || !text_number(f[3], &u.gid))
		return false;
	if (f[0].n == 0 || !text_copy(f[0], u.name) || !text_copy(f[5], u.home) ||
	    !text_copy(f[6], u.shell))
		return false;
	*ret = u;
	return true;
}

static bool has_member(struct text list, const char *name)
{
	struct text one;

	while (text_cut(&list, ',', &one)) {
		if (one.n == strlen(name) && memcmp(one.p, name, one.n) == 0)
			return true;
	}
	return false;
}

/* name:password:gid:member,member */
static void group_line(struct text line, struct user *u)
{
	struct text f[4];
	uint32_t gid;

	for (size_t i = 0; i < 4; i++) {
		if (!text_cut(&line, ':', &f[i]))
			return;
	}
	if (!text_number(f[2], &gid) || gid == u->gid || !has_member(f[3], u->name))
		return;
	if (u->ngroups < USERS_GROUPS_MAX)
		u->groups[u->ngroups++] = gid;
}

/* The file's head in a mapping of its own; NULL with errno. */
static char *read_file(const char *path, size_t *ret_n)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t used = 0;
	ssize_t n = 1;
	char *p;

	if (fd < 0)
		return NULL;
	p = mmap(NULL, USERS_FILE_MAX, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	while (n > 0 && used < USERS_FILE_MAX) {
		n = read(fd, p + used, USERS_FILE_MAX - used);
		if (n > 0)
			used += (size_t)n;
	}
	*ret_n = used;
	return p;
}

static int find_passwd(uid_t uid, const char *path, struct user *ret)
{
	static const struct user root = {
		.name = "root", .home = "/root", .shell = "/bin/sh"};
	static const struct user stranger = {
		.name = "sandbox", .home = "/workspace", .shell = "/bin/sh"};
	struct text all = {NULL, 0}, line;
	bool found = false;
	char *p = read_file(path, &all.n);

	if (p) {
		all.p = p;
		while (!found && text_cut(&all, '\n', &line))
			found = passwd_line(line, uid, ret);
		munmap(p, USERS_FILE_MAX);
	} else if (errno != ENOENT) {
		return -1;
	}
	if (!found)
		*ret = uid == 0 ? root : stranger;
	if (!found)
		ret->uid = ret->gid = uid;
	return 0;
}

static int look_up(uid_t uid, const char *passwd_path, const char *group_path,
		   struct user *ret)
{
	struct text all = {NULL, 0}, line;
	struct user u;
	char *p;

	if (find_passwd(uid, passwd_path, &u) < 0)
		return -1;
	u.groups[u.ngroups++] = u.gid;
	p = read_file(group_path, &all.n);
	if (p) {
		all.p = p;
		while (text_cut(&all, '\n', &line))
			group_line(line, &u);
		munmap(p, USERS_FILE_MAX);
	}
	*ret = u;
	return 0;
}

/* A file as it was when it was read. */
struct stamp {
	bool is_there;
	struct stat st;
};

static struct stamp stamp_of(const char *path)
{
	struct stamp s = {0};

	s.is_there = stat(path, &s.st) == 0;
	return s;
}

static bool is_same(const struct stamp *a, const struct stamp *b)
{
	return a->is_there == b->is_there &&
	       (!a->is_there ||
		(a->st.st_dev == b->st.st_dev && a->st.st_ino == b->st.st_ino &&
		 a->st.st_size == b->st.st_size &&
		 a->st.st_ctim.tv_sec == b->st.st_ctim.tv_sec &&
		 a->st.st_ctim.tv_nsec == b->st.st_ctim.tv_nsec));
}

/* A change within the clock tick of the last one would not show: wait it out. */
static bool is_settled(const struct stamp *s)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return !s->is_there || now.tv_sec - s->st.st_ctim.tv_sec > 1;
}

int users_find(uid_t uid, const char *passwd_path, const char *group_path,
	       struct user *ret)
{
	static struct known {
		bool is_known;
		struct stamp passwd, group;
		struct user user;
	} known[2]; /* root, and the one that runs the commands */
	struct known *k = &known[uid != 0];
	struct stamp passwd = stamp_of(passwd_path), group = stamp_of(group_path);

	if (k->is_known && k->user.uid == uid && is_same(&k->passwd, &passwd) &&
	    is_same(&k->group, &group)) {
		*ret = k->user;
		return 0;
	}
	k->is_known = false;
	if (look_up(uid, passwd_path, group_path, &k->user) < 0)
		return -1;
	k->passwd = passwd; /* from before the reading: a change since then shows */
	k->group = group;
	k->is_known = is_settled(&passwd) && is_settled(&group);
	*ret = k->user;
	return 0;
}
