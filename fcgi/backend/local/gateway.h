/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_LOCAL_GATEWAY_H
#define BACKEND_LOCAL_GATEWAY_H

#include <stdbool.h>
#include <sys/types.h>

#include "backend/backend.h"

/*
 * The network of the sandboxes in mode `bridge`: one network namespace per
 * instance, kept by a bind mount in RUN_DIR/gateway. Every sandbox hangs on it
 * by a veth pair of its own (no shared segment, so nothing of another sandbox
 * can be seen, claimed or spoofed); one pasta process is the uplink, in user
 * space, so the host's own firewall, routes and forwarding stay untouched; and
 * nftables decides: the resolver's port 53 and public addresses pass; other
 * sandboxes, this host, private, link-local and metadata addresses do not.
 * IPv4 only. All calls are thread-safe; gateway_open() and _close() are not.
 */
struct gateway;

/*
 * Adopts the gateway of an earlier server that still runs, else makes a new one;
 * *ret_new tells which, as sandboxes that run must then be attached again.
 */
int gateway_open(const char *run_dir, backend_progress_fn *progress, void *arg,
		 struct gateway **ret, bool *ret_new, struct err *e);

/* Is the uplink alive? Starts it anew if it is not. */
int gateway_check(struct gateway *g, struct err *e);

/* A free slot (0 to GATEWAY_SLOTS-1), the sandbox's address; -1 and e: none left. */
enum { GATEWAY_SLOTS = 16384 };
int gateway_slot_take(struct gateway *g, int *ret_slot, struct err *e);
void gateway_slot_mark(struct gateway *g, int slot); /* known to be in use */
void gateway_slot_put(struct gateway *g, int slot);

/* Connects the network namespace of process pid. */
int gateway_attach(struct gateway *g, int slot, pid_t pid, struct err *e);

/* The text of /etc/resolv.conf for the sandboxes. */
const char *gateway_resolv_conf(void);

/* Removes the namespace and the uplink (`down`), or leaves them to a successor. */
void gateway_close(struct gateway *g, bool down);

#endif
