/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_LOCAL_NETRULES_H
#define BACKEND_LOCAL_NETRULES_H

#include "base/err.h"

/*
 * The packet filter of the gateway as text for `nft -f`, and what it is made
 * from. The addresses are private to the gateway's namespace and mean nothing
 * outside; sandboxes are in 10.231.64.0/18.
 */
#define NETRULES_GATEWAY        "10.231.0.1" /* also where sandboxes ask for names */
#define NETRULES_UPLINK         "up0"
#define NETRULES_UPLINK_ADDRESS "10.231.255.2"
#define NETRULES_UPLINK_GATEWAY "10.231.255.1"
#define NETRULES_DNS_FORWARD    "10.231.255.53" /* pasta sends it to a local resolver */

/* All IPv4 addresses of this host but loopback, as a comma list, sorted. */
int netrules_host_addresses(char **ret, struct err *e);

/*
 * The IPv4 resolver of this host, to free(): from resolv.conf, or, where that
 * names a local stub (systemd-resolved), the one behind it. NULL: none found.
 */
char *netrules_resolver(void);

/* The rules; to free(). */
char *netrules_text(const char *host_addresses);

#endif
