/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "backend/local/netlink.h"
#include "backend/local/netrules.h"
#include "backend/local/thread.h"

/*
 * Two sandboxes against a world of their own: this program moves to a network
 * namespace (the "host"), which reaches a second one (the "outside") by a veth
 * pair. Everything outside answers on every address, so that whatever a sandbox
 * cannot reach is stopped by the gateway and not by chance.
 */
#define HOST   "203.0.113.1"
#define PUBLIC "203.0.113.9"
enum { T0_INDEX = 50, P0_INDEX = 51, HOST_PORT = 8080, WEB = 80, DNS = 53 };

static const char *const outside[] = {
	PUBLIC,        "198.51.100.7",  "10.66.0.9",   "172.16.9.9",      "172.31.9.9",
	"192.168.9.9", "100.64.9.9",    "169.254.9.9", "169.254.169.254", "192.0.0.170",
	"198.18.9.9",  "168.63.129.16",
};
static struct fixture f;
static const char a[] = "mcp-sbx-a-0000000a", b[] = "mcp-sbx-b-0000000b";

static int listen_on(uint16_t port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, (struct sockaddr *)&in, sizeof in) < 0 || listen(fd, 16) < 0)
		abort();
	return fd;
}

/* Tells everyone who comes that they were let through. */
static void *serve(void *arg)
{
	int fd = *(int *)arg, c;

	while ((c = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		if (write(c, "reached", 7) != 7)
			abort();
		close(c);
	}
	return NULL;
}

static void serve_on(uint16_t port)
{
	static int fds[8];
	static int n;
	pthread_t t;

	fds[n] = listen_on(port);
	assert_int_equal(pthread_create(&t, NULL, serve, &fds[n++]), 0);
	pthread_detach(t);
}

static struct in_addr address(const char *text)
{
	struct in_addr in;

	assert_int_equal(inet_pton(AF_INET, text, &in), 1);
	return in;
}

static void good(int rc, const struct err *e)
{
	if (rc < 0)
		fail_msg("%s", e->msg);
}

/* On a thread in the outside's namespace. */
static int make_outside(void *arg, struct err *e)
{
	AUTO_FREE char *resolver = netrules_resolver();
	AUTO_CLOSE int nl = -1;
	size_t i;

	if (unshare(CLONE_NEWNET) < 0 || nl_open(&nl, e) < 0 || nl_link_up(nl, 1, e) < 0)
		return -1;
	*(int *)arg = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	for (i = 0; i < sizeof outside / sizeof outside[0]; i++)
		if (nl_add_address(nl, 1, address(outside[i]), 32, e) < 0)
			return -1;
	if (resolver && nl_add_address(nl, 1, address(resolver), 32, e) < 0)
		return -1;
	serve_on(WEB); /* threads made here live in this namespace */
	serve_on(DNS);
	return 0;
}

static int finish_outside(void *arg, struct err *e)
{
	AUTO_CLOSE int nl = -1;
	struct in_addr none = {0};

	if (setns(*(int *)arg, CLONE_NEWNET) < 0 || nl_open(&nl, e) < 0 ||
	    nl_link_up(nl, P0_INDEX, e) < 0)
		return -1;
	return nl_add_route(nl, P0_INDEX, address(HOST), 32, none, e);
}

static void make_world(void)
{
	struct nl_veth v = {.name = "t0",
			    .peer = "p0",
			    .index = T0_INDEX,
			    .peer_index = P0_INDEX,
			    .mac = {2, 0, 0, 0, 0, 1},
			    .peer_mac = {2, 0, 0, 0, 0, 2}};
	struct in_addr none = {0};
	struct err e = ERR_INIT;
	AUTO_CLOSE int nl = -1;
	int other = -1;

	assert_int_equal(unshare(CLONE_NEWNET), 0);
	good(thread_run(make_outside, &other, &e), &e);
	good(nl_open(&nl, &e), &e);
	good(nl_link_up(nl, 1, &e), &e);
	v.peer_netns_fd = other;
	good(nl_add_veth(nl, &v, &e), &e);
	good(nl_link_up(nl, T0_INDEX, &e), &e);
	good(thread_run(finish_outside, &other, &e), &e);
	good(nl_add_address(nl, T0_INDEX, address(HOST), 32, &e), &e);
	good(nl_add_route(nl, T0_INDEX, address(PUBLIC), 32, none, &e), &e);
	good(nl_add_route(nl, T0_INDEX, none, 0, address(PUBLIC), &e), &e);
	close(other);
	serve_on(HOST_PORT);
}

static int group_setup(void **state)
{
	struct sandbox_info i = {0};

	(void)state;
	fixture_init(&f,
		     "none"); /* makes the image, for which that world has no network */
	fixture_release(&f);
	make_world();
	fixture_init(&f, "bridge");
	fixture_create(&f, a, true, &i);
	sandbox_info_release(&i);
	fixture_create(&f, b, true, &i);
	sandbox_info_release(&i);
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	fixture_remove(&f, a);
	fixture_remove(&f, b);
	fixture_release(&f);
	return 0;
}

/* Whether it does within so many seconds: few will do for what must be closed. */
static bool reaches_in(const char *name, const char *to, int port, int seconds)
{
	AUTO_FREE char *text = xasprintf(
		"timeout %d bash -c 'exec 5<>/dev/tcp/%s/%d && head -c 7 <&5' 2>&1",
		seconds, to, port);
	AUTO_FREE char *out = fixture_sh(&f, name, text);

	return strstr(out, "reached") != NULL;
}

static bool reaches(const char *name, const char *to, int port)
{
	return reaches_in(name, to, port, 4);
}

static void assert_reaches(const char *name, const char *to, int port)
{
	assert_true(reaches_in(name, to, port, 60));
}

/* The same from where this program is. */
static bool host_reaches(const char *to, uint16_t port)
{
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	char text[8];

	in.sin_addr = address(to);
	return connect(fd, (struct sockaddr *)&in, sizeof in) == 0 &&
	       recv(fd, text, 7, MSG_WAITALL) == 7;
}

static void expect(const char *name, const char *text, const char *expected)
{
	AUTO_FREE char *out = fixture_sh(&f, name, text);

	if (strcmp(out, expected) != 0)
		fail_msg("gave: %s\n not: %s\n of: %s", out, expected, text);
}

static void a_sandbox_reaches_itself_on_its_loopback(void **state)
{
	(void)state;
	expect(a,
	       "python3 -c 'import socket\n"
	       "s = socket.create_server((\"127.0.0.1\", 0))\n"
	       "c = socket.create_connection(s.getsockname(), 60)\n"
	       "c.send(b\"x\")\n"
	       "print(s.accept()[0].recv(1))'",
	       "b'x'\n[0]");
}

static void public_addresses_and_the_resolver_can_be_reached(void **state)
{
	(void)state;
	assert_reaches(a, PUBLIC, WEB);
	assert_reaches(a, "198.51.100.7", WEB);
	assert_reaches(b, PUBLIC, WEB);
	assert_reaches(a, NETRULES_GATEWAY, DNS);
}

static void private_and_metadata_addresses_are_closed(void **state)
{
	AUTO_FREE char *resolver = netrules_resolver();
	size_t i;

	(void)state;
	for (i = 2; i < sizeof outside / sizeof outside[0]; i++) {
		assert_true(host_reaches(outside[i], WEB)); /* there is someone */
		if (reaches(a, outside[i], WEB))
			fail_msg("%s can be reached", outside[i]);
	}
	if (resolver && strncmp(resolver, "10.", 3) == 0)
		assert_false(reaches(a, resolver, WEB));
}

static void this_host_is_closed_on_all_its_addresses(void **state)
{
	static const char *const own[] = {HOST,
					  "127.0.0.1",
					  "0.0.0.0",
					  NETRULES_GATEWAY,
					  NETRULES_UPLINK_ADDRESS,
					  NETRULES_UPLINK_GATEWAY};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof own / sizeof own[0]; i++)
		if (reaches(a, own[i], HOST_PORT))
			fail_msg("%s can be reached", own[i]);
}

static void an_address_the_host_gets_later_is_closed_from_the_next_start_on(void **state)
{
	struct err e = ERR_INIT;
	AUTO_CLOSE int nl = -1;

	(void)state;
	good(nl_open(&nl, &e), &e);
	good(nl_add_address(nl, T0_INDEX, address("203.0.113.77"), 32, &e), &e);
	good(f.ops->probe(f.b, &e), &e);
	assert_false(reaches(a, "203.0.113.77", HOST_PORT));
}

static void another_sandbox_is_closed(void **state)
{
	static const char own[] =
		"python3 -c 'import socket; s = socket.socket(2, 2); "
		"s.connect((\"" PUBLIC "\", 9)); print(s.getsockname()[0])'";
	static const char server[] =
		"nohup python3 -c 'import socket\n"
		"s = socket.create_server((\"\", 8081))\n"
		"while True: s.accept()[0].send(b\"reached\")' >/dev/null 2>&1 & "
		"for i in $(seq 600); do (: </dev/tcp/127.0.0.1/8081) 2>/dev/null && "
		"break; "
		"read -t 0.1 x <> <(:); done";
	AUTO_FREE char *ip = fixture_sh(&f, b, own);
	AUTO_FREE char *started = fixture_sh(&f, b, server);

	(void)state;
	*strchr(ip, '\n') = '\0';
	assert_reaches(b, ip, 8081); /* it does listen */
	assert_false(reaches(a, ip, 8081));
	(void)started;
}

static void sockets_of_the_host_are_out_of_reach(void **state)
{
	static const char text[] =
		"ls /var/run/docker.sock /run/mcp-sandboxd* /run/containerd 2>/dev/null; "
		"python3 -c 'import socket\n"
		"s = socket.socket(socket.AF_UNIX)\n"
		"print(s.connect_ex(b\"\\0mcp-sandboxd-isolation\"))'";
	struct sockaddr_un un = {.sun_family = AF_UNIX,
				 .sun_path = "\0mcp-sandboxd-isolation"};
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&un,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 23)),
			 0);
	assert_int_equal(listen(fd, 1), 0);
	expect(a, text, "111\n[0]");
}

static void only_its_own_processes_are_seen(void **state)
{
	(void)state;
	expect(a,
	       "cat /proc/[0-9]*/comm 2>/dev/null | sort -u | grep -v -x -E "
	       "'mcp-sandboxd-ag|python3|bash|cat|sort|grep'",
	       "[1]");
}

static void system_settings_cannot_be_written(void **state)
{
	(void)state;
	expect(a,
	       "for f in /proc/sys/kernel/panic /proc/sys/kernel/core_pattern "
	       "/proc/sysrq-trigger /proc/sys/vm/drop_caches; do "
	       "echo 1 2>/dev/null >$f && echo wrote $f; done; "
	       "find /sys -xdev -type f -writable -print -quit 2>/dev/null | "
	       "while read f; do echo 1 2>/dev/null >$f && echo wrote $f; done; true",
	       "[0]");
}

#define CLOSED_BEGIN                                                                     \
	"python3 - <<'EOF'\n"                                                            \
	"import ctypes, os\n"                                                            \
	"c = ctypes.CDLL(None, use_errno=True)\n"                                        \
	"def bad(name, r):\n"                                                            \
	"    if r != -1: print(name, 'passed', r)\n"
/* Closed in every kernel. */
#define CLOSED                                                                           \
	"bad('mount', c.mount(b'x', b'/mnt', b'tmpfs', 0, None))\n"                      \
	"bad('umount', c.umount2(b'/proc/sys', 2))\n"                                    \
	"bad('setns', c.setns(os.open('/proc/1/ns/mnt', 0), 0))\n"                       \
	"bad('mknod', c.mknod(b'/root/disk', 0o60600, os.makedev(8, 0)))\n"              \
	"bad('bpf', c.syscall(321, 0, 0, 0))\n"                                          \
	"bad('keyctl', c.syscall(250, 0, 0, 0))\n"                                       \
	"bad('add_key', c.syscall(248, b'user', b'x', b'y', 1, -2))\n"                   \
	"bad('io_uring', c.syscall(425, 1, 0))\n"                                        \
	"bad('perf', c.syscall(298, 0, 0, 0, 0, 0))\n"                                   \
	"bad('kexec', c.syscall(246, 0, 0, 0, 0))\n"                                     \
	"bad('init_module', c.syscall(175, 0, 0, b''))\n"                                \
	"bad('settime', c.syscall(227, 0, b'0' * 16))\n"                                 \
	"bad('quotactl', c.syscall(179, 0, 0, 0, 0))\n"                                  \
	"bad('open_by_handle', c.syscall(304, 0, 0, 0))\n"
/* gVisor has these in itself, where they reach nothing of the host. */
#define CLOSED_ON_THE_HOST                                                               \
	"bad('unshare user', c.unshare(0x10000000))\n"                                   \
	"bad('unshare net', c.unshare(0x40000000))\n"                                    \
	"bad('chroot', c.chroot(b'/tmp'))\n"                                             \
	"bad('clone user', c.syscall(56, 0x10000011, 0, 0, 0, 0))\n"                     \
	"bad('clone3', c.syscall(435, 0, 88))\n"
#define CLOSED_END "EOF\nls /dev | tr '\\n' ' '"

static void the_kernel_is_closed_to_mounts_namespaces_and_devices(void **state)
{
	(void)state;
	if (fixture_with_gvisor())
		expect(a, CLOSED_BEGIN CLOSED CLOSED_END,
		       "fd full fuse mcp-sandboxd mcp-sandboxd-agent net null ptmx pts "
		       "random shm stderr stdin stdout tty urandom zero [0]");
	else
		expect(a, CLOSED_BEGIN CLOSED CLOSED_ON_THE_HOST CLOSED_END,
		       "fd full mcp-sandboxd-agent mqueue null ptmx pts random shm "
		       "stderr stdin stdout tty urandom zero [0]");
}

static void a_foreign_system_call_table_is_no_way_in(void **state)
{
	(void)state;
#if defined(__x86_64__)
	/* getpid() of the x32 table: ends the program; gVisor just has no such call. */
	expect(a,
	       "python3 -c 'import ctypes; exit(ctypes.CDLL(None).syscall(0x40000027))'",
	       fixture_with_gvisor() ? "[255]" : "[-31]");
#endif
}

static void the_agent_and_the_resolver_file_cannot_be_changed(void **state)
{
	(void)state;
	expect(a,
	       "echo x 2>/dev/null >>/dev/mcp-sandboxd-agent && echo wrote; "
	       "rm -f /dev/mcp-sandboxd-agent 2>/dev/null && echo removed; "
	       "echo x 2>/dev/null >>/etc/resolv.conf && echo wrote; true",
	       "[0]");
}

static void set_id_programs_give_nothing(void **state)
{
	(void)state;
	expect(a,
	       "cp /usr/bin/id /var/tmp/set-id && chmod 4755 /var/tmp/set-id && "
	       "setpriv --reuid 1000 --clear-groups /var/tmp/set-id -u",
	       "1000\n[0]");
}

/* gVisor's profile is around itself: in it there is none to see. */
static void a_command_has_the_profile_and_no_other_capabilities(void **state)
{
	(void)state;
	expect(a, "grep -E 'NoNewPrivs|Seccomp:|CapBnd' /proc/self/status | tr -d '\\n'",
	       fixture_with_gvisor()
		       ? "CapBnd:\t00000000000000ebSeccomp:\t0[0]"
		       : "CapBnd:\t00000000000000ebNoNewPrivs:\t1Seccomp:\t2[0]");
}

static void files_of_a_sandbox_are_closed_to_users_of_the_host(void **state)
{
	AUTO_FREE char *store = xasprintf("%s/sandboxes/%s/store", f.conf.data_dir, a);
	AUTO_FREE char *image = xasprintf("%s/images/default", f.conf.data_dir);
	struct stat st;

	(void)state;
	assert_int_equal(stat(store, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(image, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sandbox_reaches_itself_on_its_loopback),
		cmocka_unit_test(public_addresses_and_the_resolver_can_be_reached),
		cmocka_unit_test(private_and_metadata_addresses_are_closed),
		cmocka_unit_test(this_host_is_closed_on_all_its_addresses),
		cmocka_unit_test(
			an_address_the_host_gets_later_is_closed_from_the_next_start_on),
		cmocka_unit_test(another_sandbox_is_closed),
		cmocka_unit_test(sockets_of_the_host_are_out_of_reach),
		cmocka_unit_test(only_its_own_processes_are_seen),
		cmocka_unit_test(system_settings_cannot_be_written),
		cmocka_unit_test(the_kernel_is_closed_to_mounts_namespaces_and_devices),
		cmocka_unit_test(a_foreign_system_call_table_is_no_way_in),
		cmocka_unit_test(the_agent_and_the_resolver_file_cannot_be_changed),
		cmocka_unit_test(set_id_programs_give_nothing),
		cmocka_unit_test(a_command_has_the_profile_and_no_other_capabilities),
		cmocka_unit_test(files_of_a_sandbox_are_closed_to_users_of_the_host),
	};

	if (!fixture_can())
		return 0;
	return FIXTURE_RUN(tests, group_setup, group_teardown);
}
