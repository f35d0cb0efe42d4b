/* SPDX-License-Identifier: MIT */
#include "backend/local/netlink.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <string.h>
#include <sys/socket.h>

#include "base/auto.h"

/* One request. The largest here is some 200 bytes. */
struct msg {
	union {
		struct nlmsghdr h;
		char bytes[512];
	};
};

int nl_open(int *ret_fd, struct err *e)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct timeval limit = {.tv_sec = 5};

	if (fd < 0)
		return err_sys(e, "open a netlink socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	*ret_fd = fd;
	return 0;
}

static void *msg_init(struct msg *m, uint16_t type, uint16_t flags, size_t body)
{
	memset(m, 0, sizeof *m);
	m->h.nlmsg_type = type;
	m->h.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
	m->h.nlmsg_len = (uint32_t)NLMSG_LENGTH(body);
	return NLMSG_DATA(&m->h);
}

static struct rtattr *msg_tail(struct msg *m)
{
	return (struct rtattr *)(void *)(m->bytes + NLMSG_ALIGN(m->h.nlmsg_len));
}

static struct rtattr *msg_add(struct msg *m, uint16_t type, const void *p, size_t n)
{
	struct rtattr *a = msg_tail(m);

	a->rta_type = type;
	a->rta_len = (uint16_t)RTA_LENGTH(n);
	if (n)
		memcpy(RTA_DATA(a), p, n);
	m->h.nlmsg_len = (uint32_t)(NLMSG_ALIGN(m->h.nlmsg_len) + RTA_ALIGN(a->rta_len));
	return a;
}

static void msg_end(struct msg *m, struct rtattr *nest)
{
	nest->rta_len = (uint16_t)((char *)msg_tail(m) - (char *)nest);
}

/* Sends and reads the answer: 0 or the kernel's errno, -1 when there is none. */
static int talk(int fd, struct msg *m)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	union {
		struct nlmsghdr h;
		char bytes[4096];
	} answer;
	ssize_t n;

	if (sendto(fd, m, m->h.nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof kernel) <
	    0)
		return -1;
	do
		n = recv(fd, &answer, sizeof answer, 0);
	while (n < 0 && errno == EINTR);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)) ||
	    answer.h.nlmsg_type != NLMSG_ERROR)
		return -1;
	return -((struct nlmsgerr *)NLMSG_DATA(&answer.h))->error;
}

static int request(int fd, struct msg *m, const char *what, struct err *e)
{
	int rc = talk(fd, m);

	if (rc == 0)
		return 0;
	if (rc > 0)
		errno = rc;
	return err_sys(e, "%s", what);
}

int nl_add_veth(int fd, const struct nl_veth *v, struct err *e)
{
	struct msg m;
	struct ifinfomsg *i =
		msg_init(&m, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof *i);
	struct ifinfomsg peer = {.ifi_index = v->peer_index};
	struct rtattr *info, *data, *p;

	i->ifi_index = v->index;
	msg_add(&m, IFLA_IFNAME, v->name, strlen(v->name) + 1);
	msg_add(&m, IFLA_ADDRESS, v->mac, sizeof v->mac);
	info = msg_add(&m, IFLA_LINKINFO, NULL, 0);
	msg_add(&m, IFLA_INFO_KIND, "veth", 4);
	data = msg_add(&m, IFLA_INFO_DATA, NULL, 0);
	p = msg_add(&m, VETH_INFO_PEER, &peer, sizeof peer);
	msg_add(&m, IFLA_IFNAME, v->peer, strlen(v->peer) + 1);
	msg_add(&m, IFLA_ADDRESS, v->peer_mac, sizeof v->peer_mac);
	msg_add(&m, IFLA_NET_NS_FD, &v->peer_netns_fd, sizeof v->peer_netns_fd);
	msg_end(&m, p);
	msg_end(&m, data);
	msg_end(&m, info);
	return request(fd, &m, "add a veth pair", e);
}

int nl_del_link(int fd, int index, struct err *e)
{
	struct msg m;
	struct ifinfomsg *i = msg_init(&m, RTM_DELLINK, 0, sizeof *i);
	int rc;

	i->ifi_index = index;
	rc = talk(fd, &m);
	if (rc == 0 || rc == ENODEV)
		return 0;
	errno = rc > 0 ? rc : errno;
	return err_sys(e, "remove an interface");
}

int nl_link_up(int fd, int index, struct err *e)
{
	struct msg m;
	struct ifinfomsg *i = msg_init(&m, RTM_NEWLINK, 0, sizeof *i);

	i->ifi_index = index;
	i->ifi_flags = i->ifi_change = IFF_UP;
	return request(fd, &m, "bring an interface up", e);
}

int nl_add_address(int fd, int index, struct in_addr a, int prefix, struct err *e)
{
	struct msg m;
	struct ifaddrmsg *i =
		msg_init(&m, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, sizeof *i);

	i->ifa_family = AF_INET;
	i->ifa_prefixlen = (uint8_t)prefix;
	i->ifa_index = (uint32_t)index;
	msg_add(&m, IFA_LOCAL, &a, sizeof a);
	msg_add(&m, IFA_ADDRESS, &a, sizeof a);
	return request(fd, &m, "add an address", e);
}

int nl_add_route(int fd, int index, struct in_addr dst, int prefix, struct in_addr via,
		 struct err *e)
{
	struct msg m;
	struct rtmsg *r =
		msg_init(&m, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, sizeof *r);

	r->rtm_family = AF_INET;
	r->rtm_dst_len = (uint8_t)prefix;
	r->rtm_table = RT_TABLE_MAIN;
	r->rtm_protocol = RTPROT_STATIC;
	r->rtm_scope = via.s_addr ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
	r->rtm_type = RTN_UNICAST;
	if (prefix)
		msg_add(&m, RTA_DST, &dst, sizeof dst);
	if (via.s_addr)
		msg_add(&m, RTA_GATEWAY, &via, sizeof via);
	msg_add(&m, RTA_OIF, &index, sizeof index);
	return request(fd, &m, "add a route", e);
}

int nl_add_neighbor(int fd, int index, struct in_addr a, const uint8_t mac[6],
		    struct err *e)
{
	struct msg m;
	struct ndmsg *n =
		msg_init(&m, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, sizeof *n);

	n->ndm_family = AF_INET;
	n->ndm_ifindex = index;
	n->ndm_state = NUD_PERMANENT;
	msg_add(&m, NDA_DST, &a, sizeof a);
	msg_add(&m, NDA_LLADDR, mac, 6);
	return request(fd, &m, "add a neighbor", e);
}
