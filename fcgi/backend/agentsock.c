/* SPDX-License-Identifier: MIT */
#include "backend/agentsock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/str.h"

enum { BACKLOG = 16 };

static int address_of(int fd, const char *name, struct sockaddr_un *ret, struct err *e)
{
	int n;

	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(ret->sun_path, sizeof ret->sun_path, "/proc/self/fd/%d%s%s", fd,
		     *name ? "/" : "", name);
	if (n < 0 || (size_t)n >= sizeof ret->sun_path)
		return err_set(e, ERR_INVALID, "the name of a sandbox is too long");
	return 0;
}

int agentsock_listen(int folder_fd, const char *name, int *ret_fd, struct err *e)
{
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un a;

	if (fd < 0)
		return err_sys(e, "make the agent's socket");
	if (address_of(folder_fd, name, &a, e) < 0)
		return -1;
	unlinkat(folder_fd, name, 0);
	if (bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, BACKLOG) < 0)
		return err_sys(e, "bind the agent's socket");
	*ret_fd = MOVE_FD(fd);
	return 0;
}

int agentsock_connect(int folder_fd, const char *name, int *ret_fd, struct err *e)
{
	AUTO_CLOSE int fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un a;

	if (fd < 0)
		return err_sys(e, "make a socket");
	if (address_of(folder_fd, name, &a, e) < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0) {
		if (errno == ENOENT || errno == ECONNREFUSED)
			return err_set(e, ERR_NOT_FOUND, "the sandbox does not run");
		if (errno == EAGAIN)
			return err_set(e, ERR_BACKEND, "the agent does not accept");
		return err_sys(e, "connect to the agent");
	}
	*ret_fd = MOVE_FD(fd);
	return 0;
}

/* The socket as a thing that was looked at, whatever takes its name afterwards. */
static int open_own(const struct agentsock_own *o, int *ret_fd, struct err *e)
{
	AUTO_CLOSE int dir =
		open(o->folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_CLOSE int fd = -1;
	struct stat st;

	if (dir >= 0)
		fd = openat(dir, o->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "the sandbox does not run");
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "look at the agent's socket");
	if (!S_ISSOCK(st.st_mode))
		return err_set(e, ERR_BACKEND,
			       "what the sandbox has put in the place of "
			       "its agent's socket is none");
	*ret_fd = MOVE_FD(fd);
	return 0;
}

/* "3:memory:/mcp-sandboxd-<instance>/<child>", "0::/system.slice/docker-<id>.scope" */
static bool names(struct str line, const char *group)
{
	static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789-_";
	const char *end = line.p + line.n, *at = line.p;
	size_t n = strlen(group);

	while ((at = memmem(at, (size_t)(end - at), group, n))) {
		at += n;
		if (at == end || !memchr(word, *at, sizeof word - 1))
			return true;
	}
	return false;
}

bool agentsock_names_group(const char *text, size_t n, const char *group)
{
	struct str rest = {text, n}, line;

	while (str_cut(&rest, '\n', &line))
		if (names(line, group))
			return true;
	return false;
}

bool agentsock_is_member(pid_t pid, const char *group)
{
	AUTO_FREE char *path = xasprintf("/proc/%d/cgroup", (int)pid);
	AUTO_BUF text = BUF_INIT(65536);
	struct err none = ERR_INIT;

	return pid > 0 && *group && io_read_file(path, &text, &none) == 0 &&
	       agentsock_names_group(text.p, text.len, group);
}

int agentsock_own_connect(const struct agentsock_own *o, int *ret_fd, struct err *e)
{
	AUTO_CLOSE int path_fd = -1, fd = -1;
	struct ucred peer;
	socklen_t n = sizeof peer;

	if (open_own(o, &path_fd, e) < 0 || agentsock_connect(path_fd, "", &fd, e) < 0)
		return -1;
	/* Who called listen(): the agent, or runsc's file server of this sandbox. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
		return err_sys(e, "ask who the agent is");
	if (!agentsock_is_member(peer.pid, o->group))
		return err_set(e, ERR_BACKEND,
			       "the agent's socket is not of this sandbox");
	*ret_fd = MOVE_FD(fd);
	return 0;
}

/* True when the name is there, which it is from the moment the agent listens. */
static int is_there(const struct agentsock_own *o, bool *ret, struct err *e)
{
	AUTO_CLOSE int fd = -1;

	*ret = open_own(o, &fd, e) == 0;
	if (*ret || e->kind != ERR_NOT_FOUND)
		return *ret ? 0 : -1;
	*e = (struct err)ERR_INIT;
	return 0;
}

int agentsock_own_wait(const struct agentsock_own *o, pid_t pid, int timeout_ms,
		       struct err *e)
{
	AUTO_CLOSE int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	AUTO_CLOSE int life = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p[] = {{.fd = watch, .events = POLLIN},
			     {.fd = life, .events = POLLIN}};
	int64_t left, end = clock_mono_ms() + timeout_ms;
	char events[4096];
	bool there;

	if (watch < 0 || life < 0 ||
	    inotify_add_watch(watch, o->folder,
			      IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW) < 0)
		return err_sys(e, "watch for the agent's socket");
	for (;;) {
		if (is_there(o, &there, e) < 0 || there)
			return there ? 0 : -1;
		left = end - clock_mono_ms();
		if (left <= 0)
			return err_set(e, ERR_TIMEOUT, "the agent does not listen");
		if (poll(p, 2, (int)left) < 0 && errno != EINTR)
			return err_sys(e, "wait for the agent");
		if (p[1].revents)
			return err_set(e, ERR_BACKEND, "the sandbox has ended at once");
		while (read(watch, events, sizeof events) > 0)
			continue;
	}
}
