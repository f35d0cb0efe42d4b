/* SPDX-License-Identifier: MIT */
#include "backend/local/netrules.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/str.h"

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *join(char **v)
{
	AUTO_BUF b = BUF_INIT(1 << 20);
	size_t i, n = strv_len(v);

	if (n)
		qsort(v, n, sizeof *v, compare);
	for (i = 0; i < n; i++)
		if (i == 0 || strcmp(v[i], v[i - 1]) != 0)
			buf_printf(&b, "%s%s", i ? ", " : "", v[i]);
	return xstrdup(b.p);
}

int netrules_host_addresses(char **ret, struct err *e)
{
	struct ifaddrs *all, *i;
	char **v = NULL, text[INET_ADDRSTRLEN];
	size_t n = 0;

	if (getifaddrs(&all) < 0)
		return err_sys(e, "list the addresses of this host");
	for (i = all; i; i = i->ifa_next) {
		struct sockaddr_in in;

		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET ||
		    (i->ifa_flags & IFF_LOOPBACK))
			continue;
		memcpy(&in, i->ifa_addr, sizeof in);
		inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
		v = xreallocarray(v, n + 2, sizeof *v);
		v[n++] = xstrdup(text);
		v[n] = NULL;
	}
	freeifaddrs(all);
	*ret = v ? join(v) : xstrdup("");
	strv_free(v);
	return 0;
}

/* The first IPv4 "nameserver" of a resolv.conf that is not a loopback address. */
static char *first_resolver(const char *path)
{
	AUTO_BUF text = BUF_INIT(65536);
	struct err e = ERR_INIT;
	struct str rest, line;
	struct in_addr a;

	if (io_read_file(path, &text, &e) < 0)
		return NULL;
	rest = (struct str){text.p, text.len};
	while (str_cut(&rest, '\n', &line)) {
		AUTO_FREE char *word = NULL;

		line = str_trim(line);
		if (line.n < 12 || strncmp(line.p, "nameserver", 10) != 0)
			continue;
		line = str_trim((struct str){line.p + 10, line.n - 10});
		word = xstrndup(line.p, line.n);
		if (inet_pton(AF_INET, word, &a) == 1 && ntohl(a.s_addr) >> 24 != 127)
			return MOVE(word);
	}
	return NULL;
}

char *netrules_resolver(void)
{
	char *found = first_resolver("/etc/resolv.conf");

	return found ? found : first_resolver("/run/systemd/resolve/resolv.conf");
}

static const char rules[] =
	"table inet sandboxes\n"
	"delete table inet sandboxes\n"
	"table inet sandboxes {\n"
	"	set host { type ipv4_addr; %s%s%s }\n"
	"	set closed {\n"
	"		type ipv4_addr; flags interval; elements = {\n"
	"		0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, "
	"169.254.0.0/16,\n"
	"		172.16.0.0/12, 192.0.0.0/24, 192.168.0.0/16, 198.18.0.0/15,\n"
	"		224.0.0.0/4, 240.0.0.0/4,\n"
	"		168.63.129.16 } # a cloud's own service for its machines\n"
	"	}\n"
	"	chain input {\n"
	"		type filter hook input priority filter; policy drop;\n"
	"		ct state established,related accept\n"
	"		iifname \"sb*\" ip daddr " NETRULES_GATEWAY
	" icmp type echo-request accept\n"
	"		iifname \"sb*\" reject\n"
	"	}\n"
	"	chain forward {\n"
	"		type filter hook forward priority filter; policy drop;\n"
	"		ct state established,related accept\n"
	"		ct state invalid drop\n"
	"		meta nfproto ipv6 drop\n"
	"		iifname \"sb*\" oifname \"" NETRULES_UPLINK "\" jump out\n"
	"		iifname \"sb*\" reject with icmp type admin-prohibited\n"
	"	}\n"
	"	chain out {\n"
	"		ct status dnat accept comment \"the resolver, by the rule "
	"below\"\n"
	"		ip daddr @host reject with icmp type admin-prohibited\n"
	"		ip daddr @closed reject with icmp type admin-prohibited\n"
	"		accept\n"
	"	}\n"
	"	chain prerouting {\n"
	"		type nat hook prerouting priority dstnat;\n"
	"		iifname \"sb*\" ip daddr " NETRULES_GATEWAY
	" udp dport 53 dnat ip to %s\n"
	"		iifname \"sb*\" ip daddr " NETRULES_GATEWAY
	" tcp dport 53 dnat ip to %s\n"
	"	}\n"
	"	chain postrouting {\n"
	"		type nat hook postrouting priority srcnat;\n"
	"		oifname \"" NETRULES_UPLINK "\" masquerade\n"
	"	}\n"
	"}\n";

char *netrules_text(const char *host_addresses)
{
	AUTO_FREE char *resolver = netrules_resolver();
	const char *to = resolver ? resolver : NETRULES_DNS_FORWARD;
	bool any = *host_addresses != '\0';

	return xasprintf(rules, any ? "elements = { " : "", host_addresses,
			 any ? " }" : "", to, to);
}
