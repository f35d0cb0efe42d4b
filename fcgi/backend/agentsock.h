/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_AGENTSOCK_H
#define BACKEND_AGENTSOCK_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * The socket of a sandbox's agent, in one of two ways.
 *
 * Ours: we make it, in a folder that is root's alone, and hand the descriptor to
 * the runtime. No sandbox can put something else in its place.
 *
 * The agent's own, where no descriptor can be handed over (runsc, an engine's
 * containers): the agent makes a socket in a folder of the sandbox that this host
 * can look into. The sandbox's root may put anything there, a link to the socket of
 * some engine of this host included. So only a socket that lies in that folder
 * itself is connected to, by the descriptor that was looked at; and who listens
 * must be in the sandbox's control group.
 */

/* Addresses go through the folder's descriptor: RUN_DIR may be longer than sun_path. */
int agentsock_listen(int folder_fd, const char *name, int *ret_fd, struct err *e);
/* Non-blocking. ERR_NOT_FOUND: nobody listens. ERR_BACKEND: try again. */
int agentsock_connect(int folder_fd, const char *name, int *ret_fd, struct err *e);

struct agentsock_own {
	const char *folder, *name; /* of the socket */
	const char *group;         /* what the path of its control group has in it */
};
/* ERR_NOT_FOUND: there is none. */
int agentsock_own_connect(const struct agentsock_own *o, int *ret_fd, struct err *e);
/* Waits until the agent listens, or the sandbox (process pid) ends. */
int agentsock_own_wait(const struct agentsock_own *o, pid_t pid, int timeout_ms,
		       struct err *e);

/* Is that process in a group whose path has these whole words in it? */
bool agentsock_is_member(pid_t pid, const char *group);
/* The same for the text of a /proc/<pid>/cgroup. Pure. */
bool agentsock_names_group(const char *text, size_t n, const char *group);

#endif
