/* SPDX-License-Identifier: MIT */
/*
 * Machines on which no sandbox can run, each made in a mount namespace of a child:
 * the backend does not open, and says in words what is to be done.
 */
#include "fixture.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/str.h"

static struct fixture f;

static int group_setup(void **state)
{
	(void)state;
	fixture_init(&f, "bridge");
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	fixture_release(&f);
	return 0;
}

/* What is mounted over a program is no program; it may be in several folders. */
static int hide(const char *name)
{
	int rc = 0;

	for (int i = 0; i < 8 && rc == 0; i++) {
		AUTO_FREE char *path = proc_find(name);

		if (!path)
			return 0;
		rc = mount("/dev/null", path, NULL, MS_BIND, NULL);
	}
	return -1;
}

static int put(const char *path, const char *text, mode_t mode)
{
	struct err e = ERR_INIT;

	return io_write_file_atomic(path, text, strlen(text), mode, &e);
}

static int write_to(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
	struct err e = ERR_INIT;

	return fd < 0 ? -1 : io_write_all(fd, text, strlen(text), &e);
}

static int control_groups_are_read_only(void)
{
	AUTO_BUF text = BUF_INIT(8 << 20);
	struct err e = ERR_INIT;
	char point[256];
	int rc = io_read_file("/proc/self/mountinfo", &text, &e);
	struct str rest = {text.p, text.len}, line;

	while (str_cut(&rest, '\n', &line))
		if (memmem(line.p, line.n, " - cgroup", 9) &&
		    sscanf(line.p, "%*d %*d %*s %*s %255s", point) == 1)
			rc |= mount(NULL, point, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY,
				    NULL);
	return rc;
}

static int no_right_to_mount(void)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {0};

	if (syscall(SYS_capget, &h, d) < 0)
		return -1;
	d[0].effective &= ~(1U << CAP_SYS_ADMIN);
	return (int)syscall(SYS_capset, &h, d);
}

/* A namespace of its own, in which the limit is not the machine's. */
static int no_user_namespaces(void)
{
	return unshare(CLONE_NEWUSER) | write_to("/proc/self/uid_map", "0 0 1") |
	       write_to("/proc/sys/user/max_user_namespaces", "0");
}

static int in_a_chroot(void)
{
	AUTO_FREE char *root = xasprintf("%s/root", f.conf.data_dir);

	return mkdir(root, 0755) | mount("/", root, NULL, MS_BIND | MS_REC, NULL) |
	       chroot(root) | chdir("/");
}

static int no_runtime(void)
{
	f.conf.oci_runtime[0] = '\0';
	return hide("runc") | hide("crun") | hide("runsc");
}

static int a_runtime_that_fails(void)
{
	AUTO_FREE char *path = xasprintf("%s/runc", f.conf.data_dir);

	return no_runtime() | put(path, "#!/bin/sh\necho no luck >&2\nexit 1\n", 0755) |
	       setenv("PATH", f.conf.data_dir, 1);
}

static int no_uplink(void)
{
	return hide("pasta");
}

static int no_firewall(void)
{
	return hide("nft");
}

static const struct {
	int (*make)(void);
	const char *words;
} machines[] = {
	{control_groups_are_read_only, "is mounted read-only, but each sandbox needs a"},
	{no_right_to_mount, "CAP_SYS_ADMIN"},
	{no_user_namespaces, "sysctl -w user.max_user_namespaces="},
	{in_a_chroot, "inside a chroot"},
	{no_runtime, "install the package runc"},
	{a_runtime_that_fails, "no luck"},
	{no_uplink, "needs `pasta`: install the package passt"},
	{no_firewall, "needs `nft`: install the package nftables"},
};

/* TSan has a thread of its own; only a process without one leaves its user namespace. */
static bool can_be_made(size_t i)
{
#ifdef __SANITIZE_THREAD__
	return machines[i].make != no_user_namespaces;
#else
	return machines[i].make;
#endif
}

/* The exit code: 0 refused in those words, 1 not made, 2 opened, 3 other words. */
static int try_machine(size_t i)
{
	struct err e = ERR_INIT;

	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    machines[i].make() != 0)
		return 1;
	if (fixture_open(&f, &e) == 0)
		return 2;
	fprintf(stderr, "# %s\n", e.msg);
	return strstr(e.msg, machines[i].words) ? 0 : 3;
}

static void what_a_machine_lacks_is_said_at_the_start(void **state)
{
	int status;

	(void)state;
	f.ops->close(MOVE(f.b));
	for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
		pid_t pid;

		if (!can_be_made(i))
			continue;
		pid = fork();
		if (pid == 0)
			_exit(try_machine(i));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (status != 0)
			fail_msg("%s: status %x", machines[i].words, (unsigned)status);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_machine_lacks_is_said_at_the_start),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
