/* SPDX-License-Identifier: MIT */
#include "agent/relay.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/auto.h"

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

int relay(const char *socket_path)
{
	static struct pipe_half in, out;
	AUTO_CLOSE int fd = relay_connect(socket_path);
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
