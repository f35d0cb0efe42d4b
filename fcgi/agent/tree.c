/* SPDX-License-Identifier: MIT */
#include "agent/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"

enum {
	PROCS_MAX = 8192, /* looked at in one go; what is beyond waits a round */
	FREEZE_ROUNDS = 16,
	MARK_TOP_SHIFT = 56,
};

struct proc {
	pid_t pid, parent, session;
	bool is_member, is_marked, is_stopped;
	uint64_t started; /* clock ticks since boot: with pid, unique */
	uid_t uid;
};

static struct proc procs[PROCS_MAX];

uint64_t tree_mark(const uint8_t boot_id[16], uint32_t serial)
{
	uint64_t mark = UINT64_C(0x5a) << MARK_TOP_SHIFT;

	for (int i = 0; i < 3; i++)
		mark |= (uint64_t)boot_id[i] << (32 + 8 * i);
	return mark | serial;
}

static bool is_any_mark(uint64_t v)
{
	return v >> MARK_TOP_SHIFT == 0x5a;
}

/* A /proc file's text with a NUL; the length, or -1. */
static ssize_t read_proc(int dirfd, const char *name, char *dst, size_t cap)
{
	AUTO_CLOSE int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, dst, cap - 1);
	dst[n > 0 ? n : 0] = '\0';
	return n;
}

/* pid (comm) state ppid pgrp session ...; comm may hold anything. */
static bool parse_stat(const char *text, struct proc *ret, char *ret_state)
{
	const char *p = strrchr(text, ')');
	char *end;
	unsigned long long v;

	if (!p || p[1] != ' ' || !p[2] || p[3] != ' ')
		return false;
	*ret_state = p[2];
	p += 4;
	for (int field = 4; field <= 22; field++) {
		v = strtoull(p, &end, 10);
		if (end == p || *end != ' ')
			return false;
		p = end + 1;
		if (field == 4)
			ret->parent = (pid_t)v;
		else if (field == 6)
			ret->session = (pid_t)v;
		else if (field == 22)
			ret->started = v;
	}
	return true;
}

/* "Max realtime timeout  soft  hard  us"; 0 when it is not a mark. */
static uint64_t parse_mark(const char *text)
{
	static const char name[] = "Max realtime timeout";
	const char *p = strstr(text, name);
	uint64_t hard;
	char *end;

	if (!p)
		return 0;
	p += sizeof(name) - 1;
	strtoull(p, &end, 10); /* soft: a process may lower it */
	if (end == p)
		return 0;
	hard = strtoull(end, NULL, 10);
	return is_any_mark(hard) ? hard : 0;
}

static int open_proc(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* False: gone, or a zombie. */
static bool look(pid_t pid, const struct tree *t, struct proc *ret)
{
	AUTO_CLOSE int dir = open_proc(pid);
	struct stat st;
	char text[2048], state;
	uint64_t mark = 0;

	*ret = (struct proc){.pid = pid};
	if (dir < 0 || read_proc(dir, "stat", text, sizeof(text)) <= 0 ||
	    !parse_stat(text, ret, &state))
		return false;
	if (state == 'Z' || state == 'X')
		return false;
	ret->is_stopped = state == 'T' || state == 't';
	ret->uid = fstat(dir, &st) == 0 ? st.st_uid : 0;
	if (read_proc(dir, "limits", text, sizeof(text)) > 0)
		mark = parse_mark(text);
	ret->is_marked = mark != 0;
	ret->is_member = mark ? mark == t->mark : ret->session == t->leader;
	return true;
}

static bool parent_is_member(const struct proc *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (procs[i].pid == p->parent)
			return procs[i].is_member;
	}
	return false;
}

/* Children of members are members, unless a mark says otherwise. */
static void spread(size_t n)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < n; i++) {
			struct proc *p = &procs[i];

			if (p->is_member || p->is_marked || !parent_is_member(p, n))
				continue;
			p->is_member = true;
			changed = true;
		}
	}
}

/* Fill procs with the members of the tree; their number. */
static size_t scan(const struct tree *t)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	size_t n = 0, members = 0;
	char *end;
	long pid;

	if (!d)
		return 0;
	while (n < PROCS_MAX && (e = readdir(d))) {
		pid = strtol(e->d_name, &end, 10);
		if (end == e->d_name || *end || pid <= 1 || pid == (long)getpid())
			continue;
		if (look((pid_t)pid, t, &procs[n]))
			n++;
	}
	closedir(d);
	spread(n);
	for (size_t i = 0; i < n; i++) {
		if (procs[i].is_member)
			procs[members++] = procs[i];
	}
	return members;
}

size_t tree_count(const struct tree *t)
{
	return scan(t);
}

static int pidfd_signal(int fd, int sig)
{
	return (int)syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
}

/*
 * Root without CAP_KILL may signal only its own uid: take theirs on for the
 * call. Real and saved uid stay 0, so they cannot signal us meanwhile, and it
 * needs no new process, which a fork bomb would not leave room for.
 */
static int signal_as(uid_t uid, int fd, int sig)
{
	int rc;

	if (syscall(SYS_setresuid, -1, uid, -1) < 0)
		return -1;
	rc = pidfd_signal(fd, sig);
	if (syscall(SYS_setresuid, -1, 0, -1) < 0)
		abort(); /* cannot happen with saved uid 0; not to go on as another */
	return rc;
}

/* The pid may be someone else's by now: hold it first, then look again. */
static void signal_proc(const struct tree *t, const struct proc *p, int sig)
{
	AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	struct proc again;

	if (fd < 0 && errno == ENOSYS) {
		kill(p->pid, sig);
		return;
	}
	if (fd < 0 || !look(p->pid, t, &again) || again.started != p->started)
		return;
	if (pidfd_signal(fd, sig) == 0 || errno != EPERM || geteuid() != 0)
		return;
	if (signal_as(p->uid, fd, sig) < 0 && p->uid != t->uid)
		signal_as(t->uid, fd, sig);
}

size_t tree_signal(const struct tree *t, int sig)
{
	size_t n = scan(t);

	for (size_t i = 0; i < n; i++)
		signal_proc(t, &procs[i], sig);
	return n;
}

/* How many members still ran, now stopped. */
static size_t freeze(const struct tree *t)
{
	size_t n = scan(t), running = 0;

	for (size_t i = 0; i < n; i++) {
		if (procs[i].is_stopped)
			continue;
		signal_proc(t, &procs[i], SIGSTOP);
		running++;
	}
	return running;
}

void tree_kill(const struct tree *t)
{
	for (int i = 0; i < FREEZE_ROUNDS && freeze(t) > 0; i++)
		;
	tree_signal(t, SIGKILL);
}

/* Our children's pids as text; its length, -1: not to be had, or too many. */
static ssize_t read_children(char *dst, size_t cap)
{
	static int fd = -1; /* opened once: this is asked at the end of each command */
	char path[64];
	ssize_t n;

	if (fd < 0) {
		snprintf(path, sizeof(path), "/proc/self/task/%d/children",
			 (int)getpid());
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	n = fd < 0 ? -1 : pread(fd, dst, cap - 1, 0);
	if (n < 0 || n == (ssize_t)cap - 1)
		return -1;
	dst[n] = '\0';
	return n;
}

bool tree_has_orphan(const struct tree *t)
{
	char text[8192];
	const char *p = text;
	struct proc one;
	char *end;
	long pid;

	if (read_children(text, sizeof(text)) < 0)
		return true; /* have them counted */
	for (;;) {
		pid = strtol(p, &end, 10);
		if (end == p)
			return false;
		p = end;
		if (look((pid_t)pid, t, &one) && one.is_member && one.pid != t->leader)
			return true;
	}
}
