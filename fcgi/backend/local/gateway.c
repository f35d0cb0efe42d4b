/* SPDX-License-Identifier: MIT */
#include "backend/local/gateway.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "backend/local/netlink.h"
#include "backend/local/netrules.h"
#include "backend/local/pidref.h"
#include "backend/local/thread.h"
#include "base/auto.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/proc.h"
#include "base/str.h"

/* Interface numbers: the port of slot n, and the inner end in a sandbox. */
enum { PORT_INDEX = 100, INNER_INDEX = 1000, LOOPBACK_INDEX = 1 };

struct gateway {
	char *dir, *netns_path;
	backend_progress_fn *progress;
	void *arg;
	int netns_fd;
	pthread_mutex_t lock; /* of all below */
	int nl_fd;            /* in the gateway's namespace */
	struct pidref pasta;
	char *rules; /* as loaded */
	int next_slot;
	bool used[GATEWAY_SLOTS];
};

static struct in_addr slot_address(int slot)
{
	return (struct in_addr){
		htonl((10u << 24) + (231u << 16) + (64u << 8) + (uint32_t)slot)};
}

static void slot_mac(int slot, uint8_t inner, uint8_t mac[6])
{
	uint8_t m[6] = {0x02, 0x4d, 0x43, inner, (uint8_t)(slot >> 8), (uint8_t)slot};

	memcpy(mac, m, sizeof m);
}

static int write_sysctl(const char *path, const char *value, struct err *e)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "open %s", path);
	return io_write_all(fd, value, strlen(value), e);
}

/* On a thread of its own: the new namespace, set up, and bound to its place. */
static int make_netns(void *arg, struct err *e)
{
	static const char *const settings[][2] = {
		{"/proc/sys/net/ipv4/ip_forward", "1"},
		{"/proc/sys/net/ipv4/conf/all/rp_filter", "1"}, /* no false source */
		{"/proc/sys/net/ipv4/conf/default/rp_filter", "1"},
		{"/proc/sys/net/ipv4/conf/all/send_redirects", "0"},
		{"/proc/sys/net/ipv4/conf/default/send_redirects", "0"},
	};
	struct gateway *g = arg;
	AUTO_CLOSE int nl = -1;
	struct in_addr own;
	size_t i;

	if (unshare(CLONE_NEWNET) < 0)
		return err_sys(e, "make a network namespace");
	for (i = 0; i < sizeof settings / sizeof settings[0]; i++)
		if (write_sysctl(settings[i][0], settings[i][1], e) < 0)
			return -1;
	/* Absent where IPv6 is off; the rules drop it in any case. */
	write_sysctl("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1",
		     &(struct err)ERR_INIT);
	inet_pton(AF_INET, NETRULES_GATEWAY, &own);
	if (nl_open(&nl, e) < 0 || nl_link_up(nl, LOOPBACK_INDEX, e) < 0 ||
	    nl_add_address(nl, LOOPBACK_INDEX, own, 32, e) < 0)
		return -1;
	if (io_write_file_atomic(g->netns_path, "", 0, 0600, e) < 0)
		return -1;
	if (mount("/proc/thread-self/ns/net", g->netns_path, NULL, MS_BIND, NULL) < 0)
		return err_sys(e, "keep the network namespace at %s", g->netns_path);
	return 0;
}

static bool netns_is_there(const struct gateway *g)
{
	struct statfs fs;

	return statfs(g->netns_path, &fs) == 0 && fs.f_type == NSFS_MAGIC;
}

static void pasta_file(const struct gateway *g, char **ret)
{
	*ret = xasprintf("%s/pasta", g->dir);
}

/* "pid start boot" */
static void pasta_remember(struct gateway *g)
{
	AUTO_FREE char *path = NULL, *text = NULL;
	struct err e = ERR_INIT;

	pasta_file(g, &path);
	text = xasprintf("%d %llu %s", (int)g->pasta.pid,
			 (unsigned long long)g->pasta.start, g->pasta.boot);
	if (io_write_file_atomic(path, text, strlen(text), 0600, &e) < 0)
		g->progress(g->arg, BACKEND_NOBODY, e.msg);
}

static void pasta_recall(struct gateway *g)
{
	AUTO_FREE char *path = NULL;
	AUTO_BUF text = BUF_INIT(256);
	struct err e = ERR_INIT;
	struct pidref p = {0};
	struct str rest, word;
	int64_t number[2];
	int i;

	pasta_file(g, &path);
	if (io_read_file(path, &text, &e) < 0)
		return;
	rest = (struct str){text.p, text.len};
	for (i = 0; i < 2; i++) {
		AUTO_FREE char *digits = NULL;

		if (!str_cut(&rest, ' ', &word))
			return;
		digits = xstrndup(word.p, word.n);
		if (num_parse(digits, 0, INT64_MAX, &number[i], &e) < 0)
			return;
	}
	p.pid = (pid_t)number[0];
	p.start = (uint64_t)number[1];
	if (rest.p)
		snprintf(p.boot, sizeof p.boot, "%.*s", (int)rest.n, rest.p);
	g->pasta = p;
}

static int parse_pid(const struct buf *text, pid_t *ret, struct err *e)
{
	struct str word = str_trim((struct str){text->p, text->len});
	AUTO_FREE char *digits = xstrndup(word.p ? word.p : "", word.n);
	int64_t pid;

	if (num_parse(digits, 1, INT32_MAX, &pid, e) < 0)
		return -1;
	*ret = (pid_t)pid;
	return 0;
}

/*
 * The uplink. It runs as root because the namespace belongs to the host's user
 * namespace; it shuts itself into an empty root of its own. By default pasta maps
 * the gateway's address to the host's loopback and forwards ports: all off.
 *
 * The distributions' AppArmor profile of passt lets it open hardly any path, and
 * none of ours: the namespace comes as its standard input, and it says its process
 * id on standard output. (It closes other descriptors.) Such a namespace has no
 * file whose end it could watch; gateway_close() ends it.
 */
static int pasta_start(struct gateway *g, struct err *e)
{
	AUTO_FREE char *resolver = netrules_resolver();
	const char *const argv[] = {"pasta",
				    "--netns",
				    "/proc/self/fd/0",
				    "--netns-only",
				    "--no-netns-quit",
				    "--runas",
				    "0",
				    "--quiet",
				    "--config-net",
				    "--ipv4-only",
				    "--ns-ifname",
				    NETRULES_UPLINK,
				    "--address",
				    NETRULES_UPLINK_ADDRESS,
				    "--netmask",
				    "24",
				    "--gateway",
				    NETRULES_UPLINK_GATEWAY,
				    "--no-map-gw",
				    "--tcp-ports",
				    "none",
				    "--udp-ports",
				    "none",
				    "--tcp-ns",
				    "none",
				    "--udp-ns",
				    "none",
				    "--no-dhcp",
				    "--no-ndp",
				    "--no-dhcpv6",
				    "--no-ra",
				    "--dns-forward",
				    NETRULES_DNS_FORWARD,
				    "--dns",
				    resolver ? resolver : "none",
				    "--pid",
				    "/proc/self/fd/1",
				    NULL};
	struct proc p = {.argv = argv, .input_fd = &g->netns_fd, .timeout_ms = 10000};
	AUTO_BUF out = BUF_INIT(64);
	pid_t pid;

	if (proc_run_ok(&p, &out, e) < 0 || parse_pid(&out, &pid, e) < 0 ||
	    pidref_of(pid, &g->pasta, e) < 0)
		return err_wrap(e, "start the uplink of the sandboxes (pasta)");
	pasta_remember(g);
	return 0;
}

struct nft {
	struct gateway *g;
	const char *rules;
};

static int nft_load(void *arg, struct err *e)
{
	struct nft *n = arg;
	static const char *const argv[] = {"nft", "-f", "-", NULL};
	struct proc p = {.argv = argv,
			 .input = n->rules,
			 .input_len = strlen(n->rules),
			 .timeout_ms = 10000};

	if (setns(n->g->netns_fd, CLONE_NEWNET) < 0)
		return err_sys(e, "enter the gateway");
	return proc_run_ok(&p, NULL, e);
}

/* Loads the rules if they are not there, or this host's addresses or resolver
 * are not what they were made with. */
static int rules_refresh(struct gateway *g, struct err *e)
{
	AUTO_FREE char *addresses = NULL, *rules = NULL;
	struct nft n = {.g = g};

	if (netrules_host_addresses(&addresses, e) < 0)
		return -1;
	rules = netrules_text(addresses);
	if (g->rules && strcmp(rules, g->rules) == 0)
		return 0;
	n.rules = rules;
	if (thread_run(nft_load, &n, e) < 0)
		return err_wrap(e, "load the packet filter of the gateway");
	free(g->rules);
	g->rules = MOVE(rules);
	return 0;
}

/* On a thread of its own: what is reached only from within. */
static int open_inside(void *arg, struct err *e)
{
	struct gateway *g = arg;
	AUTO_CLOSE int bound = open(g->netns_path, O_RDONLY | O_CLOEXEC);

	if (bound < 0)
		return err_sys(e, "open %s", g->netns_path);
	if (setns(bound, CLONE_NEWNET) < 0)
		return err_sys(e, "enter the gateway");
	/* Not `bound` itself: AppArmor would hold its path against pasta. */
	g->netns_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (g->netns_fd < 0)
		return err_sys(e, "open the gateway's network namespace");
	return nl_open(&g->nl_fd, e);
}

static void netns_remove(const struct gateway *g)
{
	umount2(g->netns_path, MNT_DETACH);
	unlink(g->netns_path);
}

static int gateway_up(struct gateway *g, bool *ret_new, struct err *e)
{
	bool there = netns_is_there(g);

	if (io_mkdirs(g->dir, 0700, e) < 0)
		return -1;
	if (!there && thread_run(make_netns, g, e) < 0)
		return -1;
	/* The rules before the way out: there is no moment without them. */
	if (thread_run(open_inside, g, e) < 0 || rules_refresh(g, e) < 0)
		return -1;
	pasta_recall(g);
	if (!pidref_alive(&g->pasta) && pasta_start(g, e) < 0)
		return -1;
	*ret_new = !there;
	return 0;
}

static int find_tools(struct err *e)
{
	static const char *const tools[][2] = {{"pasta", "passt"}, {"nft", "nftables"}};
	size_t i;

	for (i = 0; i < sizeof tools / sizeof tools[0]; i++) {
		AUTO_FREE char *path = proc_find(tools[i][0]);

		if (!path)
			return err_set(e, ERR_BACKEND,
				       "SANDBOX_NETWORK_MODE=bridge needs `%s`: install "
				       "the package %s, or set the mode to none",
				       tools[i][0], tools[i][1]);
	}
	return 0;
}

int gateway_open(const char *run_dir, backend_progress_fn *progress, void *arg,
		 struct gateway **ret, bool *ret_new, struct err *e)
{
	struct gateway *g;

	if (find_tools(e) < 0)
		return -1;
	g = xcalloc(1, sizeof *g);
	g->dir = xasprintf("%s/gateway", run_dir);
	g->netns_path = xasprintf("%s/netns", g->dir);
	g->progress = progress;
	g->arg = arg;
	g->netns_fd = g->nl_fd = -1;
	pthread_mutex_init(&g->lock, NULL);
	if (gateway_up(g, ret_new, e) < 0) {
		gateway_close(g, true);
		return err_wrap(e, "network of the sandboxes");
	}
	*ret = g;
	return 0;
}

int gateway_check(struct gateway *g, struct err *e)
{
	int rc = 0;

	pthread_mutex_lock(&g->lock);
	if (!pidref_alive(&g->pasta))
		rc = pasta_start(g, e);
	if (rc == 0)
		rc = rules_refresh(g, e);
	pthread_mutex_unlock(&g->lock);
	return rc;
}

int gateway_slot_take(struct gateway *g, int *ret_slot, struct err *e)
{
	int i, slot, found = -1;

	pthread_mutex_lock(&g->lock);
	for (i = 0; i < GATEWAY_SLOTS && found < 0; i++) {
		slot = (g->next_slot + i) % GATEWAY_SLOTS;
		if (!g->used[slot])
			found = slot;
	}
	if (found >= 0) {
		g->used[found] = true;
		g->next_slot = found + 1;
	}
	pthread_mutex_unlock(&g->lock);
	if (found < 0)
		return err_set(e, ERR_LIMIT, "no address is left for a sandbox");
	*ret_slot = found;
	return 0;
}

void gateway_slot_mark(struct gateway *g, int slot)
{
	if (slot < 0 || slot >= GATEWAY_SLOTS)
		return;
	pthread_mutex_lock(&g->lock);
	g->used[slot] = true;
	pthread_mutex_unlock(&g->lock);
}

void gateway_slot_put(struct gateway *g, int slot)
{
	if (slot < 0 || slot >= GATEWAY_SLOTS)
		return;
	pthread_mutex_lock(&g->lock);
	g->used[slot] = false;
	pthread_mutex_unlock(&g->lock);
}

/* Our end: the port, the way to the sandbox, and nobody else's claim to it. */
static int attach_port(struct gateway *g, const struct nl_veth *v, int slot,
		       struct err *e)
{
	struct in_addr none = {0};

	if (nl_del_link(g->nl_fd, v->index, e) < 0 || nl_add_veth(g->nl_fd, v, e) < 0 ||
	    nl_link_up(g->nl_fd, v->index, e) < 0 ||
	    nl_add_neighbor(g->nl_fd, v->index, slot_address(slot), v->peer_mac, e) < 0)
		return -1;
	return nl_add_route(g->nl_fd, v->index, slot_address(slot), 32, none, e);
}

struct inner {
	int netns_fd;
	int slot;
};

/*
 * On a thread of its own: the sandbox's end. runc brings the loopback up itself;
 * runsc takes what it finds, and a loopback that is down is none.
 */
static int attach_inner(void *arg, struct err *e)
{
	struct inner *i = arg;
	struct in_addr none = {0}, gateway;
	AUTO_CLOSE int nl = -1;

	inet_pton(AF_INET, NETRULES_GATEWAY, &gateway);
	if (setns(i->netns_fd, CLONE_NEWNET) < 0)
		return err_sys(e, "enter the sandbox's network");
	if (nl_open(&nl, e) < 0 || nl_link_up(nl, LOOPBACK_INDEX, e) < 0 ||
	    nl_link_up(nl, INNER_INDEX, e) < 0 ||
	    nl_add_address(nl, INNER_INDEX, slot_address(i->slot), 32, e) < 0 ||
	    nl_add_route(nl, INNER_INDEX, gateway, 32, none, e) < 0)
		return -1;
	return nl_add_route(nl, INNER_INDEX, none, 0, gateway, e);
}

int gateway_attach(struct gateway *g, int slot, pid_t pid, struct err *e)
{
	AUTO_FREE char *path = xasprintf("/proc/%d/ns/net", (int)pid);
	AUTO_FREE char *name = xasprintf("sb%d", slot);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct nl_veth v = {.name = name,
			    .peer = "eth0",
			    .index = PORT_INDEX + slot,
			    .peer_index = INNER_INDEX,
			    .peer_netns_fd = fd};
	struct inner inner = {.netns_fd = fd, .slot = slot};
	int rc;

	if (fd < 0)
		return err_sys(e, "open %s", path);
	slot_mac(slot, 0, v.mac);
	slot_mac(slot, 1, v.peer_mac);
	pthread_mutex_lock(&g->lock);
	rc = attach_port(g, &v, slot, e);
	pthread_mutex_unlock(&g->lock);
	if (rc == 0)
		rc = thread_run(attach_inner, &inner, e);
	return rc < 0 ? err_wrap(e, "connect the sandbox to the network") : 0;
}

const char *gateway_resolv_conf(void)
{
	return "nameserver " NETRULES_GATEWAY "\noptions edns0 timeout:3\n";
}

void gateway_close(struct gateway *g, bool down)
{
	struct err e = ERR_INIT;

	if (!g)
		return;
	if (down) {
		pasta_recall(g);
		if (pidref_kill(&g->pasta, 5000, &e) < 0)
			g->progress(g->arg, BACKEND_NOBODY, e.msg);
		netns_remove(g);
		io_rmtree(g->dir, &e);
	}
	auto_close(&g->netns_fd);
	auto_close(&g->nl_fd);
	pthread_mutex_destroy(&g->lock);
	free(g->rules);
	free(g->netns_path);
	free(g->dir);
	free(g);
}
