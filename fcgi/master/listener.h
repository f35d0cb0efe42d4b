/* SPDX-License-Identifier: MIT */
#ifndef MASTER_LISTENER_H
#define MASTER_LISTENER_H

#include <sys/types.h>

#include "base/err.h"

/*
 * The FastCGI socket: <run_dir>/fcgi.sock, root:<edge group> 0660, listening,
 * non-blocking. A stale one of an earlier server is replaced; the caller holds
 * the data folder's lock, so it cannot be a living one's.
 */
int listener_open(const char *run_dir, gid_t gid, int *ret_fd, struct err *e);

/*
 * The same for control.sock: packets, as on an edge's pair, for who speaks MCP on
 * standard input and output. Whoever is in the group may do what an edge may.
 */
int listener_open_control(const char *run_dir, gid_t gid, int *ret_fd, struct err *e);

#endif
