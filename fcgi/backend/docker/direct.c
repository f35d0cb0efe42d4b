/* SPDX-License-Identifier: MIT */
#include "backend/docker/direct.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "backend/agentsock.h"
#include "base/auto.h"
#include "base/mem.h"

enum { LISTEN_MS = 2000, HELLO_MS = 2000 };

/* An agent of another user namespace takes us for nobody and hangs up. */
static int await_hello(int fd, struct err *e)
{
	struct pollfd p = {.fd = fd, .events = POLLIN | POLLRDHUP};
	int n;

	do
		n = poll(&p, 1, HELLO_MS);
	while (n < 0 && errno == EINTR);
	if (n == 1 && (p.revents & POLLIN) && !(p.revents & POLLRDHUP))
		return 0;
	return err_set(e, ERR_BACKEND, "the agent does not speak to this user");
}

int direct_agent(const struct docker *d, const struct container *c, int *ret_fd,
		 struct err *e)
{
	AUTO_FREE char *folder = xasprintf("/proc/%d/root" DOCKER_AGENT_DIR, c->pid);
	const struct agentsock_own own = {folder, DOCKER_SOCKET_NAME, c->id};
	AUTO_CLOSE int fd = -1;

	/* The pid is the engine's word; its group has the container's name, or it is
	 * another machine's or another container's. */
	if (!d->engine.socket || !agentsock_is_member(c->pid, c->id))
		return err_set(e, ERR_NOT_FOUND, "the container is not of this machine");
	if (agentsock_own_wait(&own, c->pid, LISTEN_MS, e) < 0 ||
	    agentsock_own_connect(&own, &fd, e) < 0 || await_hello(fd, e) < 0)
		return -1;
	*ret_fd = fd;
	fd = -1;
	return 0;
}
