/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_LOCAL_NETLINK_H
#define BACKEND_LOCAL_NETLINK_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdint.h>

#include "base/err.h"

/*
 * The few route-netlink requests the gateway needs, without a program per
 * request. A socket belongs to the network namespace of the thread that opened
 * it, whoever uses it later; one user at a time. Each call waits for the
 * kernel's answer.
 */
int nl_open(int *ret_fd, struct err *e); /* CLOEXEC */

/*
 * A veth pair: `name` in the socket's namespace, `peer` in the one behind
 * peer_netns_fd; both down (an end can come up only when the other exists), with
 * the hardware addresses given.
 */
struct nl_veth {
	const char *name, *peer;
	int index, peer_index; /* interface numbers, chosen by us */
	int peer_netns_fd;
	uint8_t mac[6], peer_mac[6];
};
int nl_add_veth(int fd, const struct nl_veth *v, struct err *e);
int nl_del_link(int fd, int index, struct err *e); /* absent: fine */

/* Brings an interface up (loopback: index 1). */
int nl_link_up(int fd, int index, struct err *e);

/* Address with its prefix length on an interface. */
int nl_add_address(int fd, int index, struct in_addr a, int prefix, struct err *e);

/* Route to dst/prefix (0/0: the default) by a gateway, or on link when it is 0. */
int nl_add_route(int fd, int index, struct in_addr dst, int prefix, struct in_addr via,
		 struct err *e);

/* The hardware address behind an IP address, for good: nobody can claim it. */
int nl_add_neighbor(int fd, int index, struct in_addr a, const uint8_t mac[6],
		    struct err *e);

#endif
