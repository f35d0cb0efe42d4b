/* SPDX-License-Identifier: MIT */
#include "agent/relay.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"

enum { SOON_MS = 5000 };

struct pipe_half {
	int from, to;
	char buf[64 * 1024];
	size_t start, end;
};

/* One read or write, whichever is due; false at the end. */
static bool move(struct pipe_half *h)
{
	ssize_t n;

	if (h->start < h->end) {
		n = write(h->to, h->buf + h->start, h->end - h->start);
		if (n > 0)
			h->start += (size_t)n;
		return n >= 0 || errno == EINTR || errno == EAGAIN;
	}
	n = read(h->from, h->buf, sizeof(h->buf));
	if (n > 0) {
		h->start = 0;
		h->end = (size_t)n;
	}
	return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

static struct pollfd wish(const struct pipe_half *h)
{
	if (h->start < h->end)
		return (struct pollfd){.fd = h->to, .events = POLLOUT};
	return (struct pollfd){.fd = h->from, .events = POLLIN};
}

int relay_connect(const char *socket_path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(socket_path) >= sizeof(a.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(a.sun_path, socket_path, strlen(socket_path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A watch on the folder of path; -1: there is none. */
static int watch_folder(const char *path)
{
	int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1,
		 slash ? path : ".");
	if (watch >= 0 && inotify_add_watch(watch, folder, IN_MOVED_TO) >= 0)
		return watch;
	close(watch);
	return -1;
}

/*
 * An agent that has been started this moment brings its socket to its name when it
 * listens; under gVisor that takes longer than our own start.
 */
static int connect_soon(const char *path)
{
	AUTO_CLOSE int watch = watch_folder(path);
	struct pollfd p = {.fd = watch, .events = POLLIN};
	int64_t left, end = now_ms() + SOON_MS;
	char events[4096];
	int fd;

	for (;;) {
		fd = relay_connect(path);
		if (fd >= 0 || (errno != ENOENT && errno != ECONNREFUSED) || watch < 0)
			return fd;
		left = end - now_ms();
		if (left <= 0 || (poll(&p, 1, (int)left) < 0 && errno != EINTR)) {
			errno = ENOENT;
			return -1;
		}
		while (read(watch, events, sizeof(events)) > 0)
			continue;
	}
}

int relay(const char *socket_path)
{
	static struct pipe_half in, out;
	AUTO_CLOSE int fd = connect_soon(socket_path);
	struct pollfd p[2];

	if (fd < 0) {
		perror("mcp-sandboxd-agent: connect");
		return 1;
	}
	in.from = STDIN_FILENO;
	in.to = out.from = fd;
	out.to = STDOUT_FILENO;
	for (;;) {
		p[0] = wish(&in);
		p[1] = wish(&out);
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return 1;
		if ((p[0].revents && !move(&in)) || (p[1].revents && !move(&out)))
			return 0;
	}
}
