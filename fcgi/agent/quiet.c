/* SPDX-License-Identifier: MIT */
#include "agent/quiet.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/relay.h"
#include "base/auto.h"
#include "wire/agentproto.h"

enum { HELLO_MS = 3000, STEP_MS = 20, GRACE_STEPS = 50, KILL_STEPS = 100 };

/* Signals to everybody are bounded by the namespace of which the agent is PID 1. */
static bool is_pid_1(int fd)
{
	struct ucred c;
	socklen_t n = sizeof(c);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) == 0 && c.uid == 0 &&
	       c.pid == 1 && getpid() != 1;
}

static bool says_hello(int fd)
{
	static const char magic[] = AP_MAGIC;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char head[AP_HEADER + sizeof(magic) - 1];
	size_t n = 0;
	ssize_t r;

	while (n < sizeof(head)) {
		if (poll(&p, 1, HELLO_MS) <= 0)
			return false;
		r = read(fd, head + n, sizeof(head) - n);
		if (r <= 0)
			return false;
		n += (size_t)r;
	}
	return memcmp(head + AP_HEADER, magic, sizeof(magic) - 1) == 0;
}

/*
 * TERM and a second; then KILL until nobody is left, the ended ones reaped by the
 * agent. No event tells of that.
 */
static bool end_everybody(void)
{
	int i;

	kill(-1, SIGTERM);
	kill(-1, SIGCONT);
	for (i = 0; i < GRACE_STEPS + KILL_STEPS; i++) {
		if (kill(-1, 0) < 0 && errno == ESRCH)
			return true;
		if (i >= GRACE_STEPS)
			kill(-1, SIGKILL);
		poll(NULL, 0, STEP_MS);
	}
	return false;
}

static int refuse(const char *why)
{
	fprintf(stderr, "mcp-sandboxd-agent: quiet: %s\n", why);
	return 1;
}

int quiet(const char *socket_path)
{
	AUTO_CLOSE int fd = relay_connect(socket_path);

	if (fd < 0)
		return refuse("the agent does not listen");
	if (!is_pid_1(fd))
		return refuse("the agent is not PID 1 here");
	if (!says_hello(fd))
		return refuse("the agent does not answer");
	if (!end_everybody())
		return refuse("some processes do not end");
	return puts("ok") < 0 || fflush(stdout) != 0;
}
