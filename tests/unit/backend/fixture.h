/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BACKEND_FIXTURE_H
#define TESTS_BACKEND_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/proc.h"

/*
 * A local backend of its own for a test program. In the place of the agent runs
 * a few lines of Python that execute the shell text sent to them as root and
 * answer with its output: the tests look at sandboxes from the inside, without
 * the real agent. Each program has a data folder and an instance of its own; only
 * the root file system, which takes half a minute to make, is shared by all
 * (TEST_DATA_DIR, else /var/tmp/mcp-sandboxd-tests).
 */
struct fixture {
	struct conf conf;
	const struct backend_ops *ops;
	struct backend *b;
	char instance[9];
};

static const char fixture_agent[] =
	"#!/usr/bin/python3\n"
	"import os, signal, socket, subprocess, sys\n"
	"signal.signal(signal.SIGCHLD, signal.SIG_DFL)\n"
	"if sys.argv[2] == '--socket':\n"
	"    s = socket.socket(socket.AF_UNIX)\n"
	"    s.bind(sys.argv[3] + '.new')\n"
	"    s.listen()\n"
	"    os.rename(sys.argv[3] + '.new', sys.argv[3])\n"
	"else:\n"
	"    s = socket.socket(fileno=3)\n"
	"while True:\n"
	"    c, _ = s.accept()\n"
	"    text = b''\n"
	"    while not text.endswith(b'\\0'):\n"
	"        part = c.recv(65536)\n"
	"        if not part: break\n"
	"        text += part\n"
	"    p = subprocess.run(['/bin/bash', '-c', text[:-1]], "
	"stdin=subprocess.DEVNULL,\n"
	"                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)\n"
	"    c.sendall(p.stdout + b'[%d]' % p.returncode)\n"
	"    c.close()\n";

static inline void fixture_progress(void *arg, const char *who, const char *line)
{
	(void)arg;
	(void)who;
	fprintf(stderr, "# %s\n", line);
}

static inline bool fixture_can(void)
{
	if (geteuid() == 0)
		return true;
	printf("ok 1 # SKIP the local backend needs root\n");
	return false;
}

/* With gVisor some things are different by nature; those tests say how. */
static inline bool fixture_with_gvisor(void)
{
	const char *runtime = getenv("TEST_OCI_RUNTIME");

	return runtime && strcmp(runtime, "runsc") == 0;
}

/* From here on fixtures use gVisor, if it is installed. */
static inline bool fixture_choose_gvisor(void)
{
	AUTO_FREE char *runsc = proc_find("runsc");

	if (!runsc) {
		puts("# SKIP the same with runsc (gVisor): it is not installed");
		return false;
	}
	setenv("TEST_OCI_RUNTIME", "runsc", 1);
	return true;
}

/* The tests with the first runtime that works here, then with gVisor. */
#define FIXTURE_RUN(tests, setup, teardown)                                              \
	(cmocka_run_group_tests_name("first runtime that works", tests, setup,           \
				     teardown) +                                         \
	 (fixture_choose_gvisor()                                                        \
		  ? cmocka_run_group_tests_name("runsc", tests, setup, teardown)         \
		  : 0))

/* Opens (again) the backend of the fixture. */
static inline int fixture_open(struct fixture *f, struct err *e)
{
	return f->ops->open(&f->conf, f->instance, fixture_progress, NULL, &f->b, e);
}

/* The folder shared by all programs; one at a time makes the image in it. */
static inline int fixture_lock(const char *top)
{
	AUTO_FREE char *path = xasprintf("%s/lock", top);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	return fd;
}

static inline char *fixture_data_dir(const char *top)
{
	char *dir = xasprintf("%s/test-%d", top, (int)getpid());
	AUTO_FREE char *images = xasprintf("%s/images", top);
	AUTO_FREE char *link = xasprintf("%s/images", dir);
	struct err e = ERR_INIT;

	assert_int_equal(io_mkdirs(images, 0711, &e), 0);
	assert_int_equal(io_mkdirs(dir, 0755, &e), 0);
	assert_int_equal(symlink("../images", link), 0);
	return dir;
}

static inline void fixture_instance(char instance[9], pid_t pid)
{
	snprintf(instance, 9, "7e%06x", (unsigned)pid & 0xffffff);
}

static inline void fixture_conf(struct fixture *f, char *data_dir, const char *instance)
{
	const char *runtime = getenv("TEST_OCI_RUNTIME");

	snprintf(f->instance, sizeof f->instance, "%s", instance);
	f->conf = (struct conf){
		.data_dir = data_dir,
		.run_dir = xasprintf("/run/mcp-sandboxd-test-%s", instance),
		.image = xstrdup("default"),
		.network_mode = xstrdup("bridge"),
		.no_new_privileges = true,
		.cap_drop = xstrdup("ALL"),
		.cap_add = xstrdup("SETUID,SETGID,CHOWN,FOWNER,DAC_OVERRIDE"),
		.oci_runtime = xstrdup(runtime ? runtime : ""),
		.agent_path = xasprintf("%s/agent.py", data_dir),
		.rootfs_mirror = xstrdup(""),
		.rootfs_suite = xstrdup(""),
		.uid_base = 1879048192,
		.default_cpu_cores = 1,
		.default_memory_mb = 512,
		.default_pids = 128};
}

static inline void fixture_release(struct fixture *f)
{
	struct err e = ERR_INIT;

	if (f->b)
		f->ops->close(f->b);
	io_rmtree(f->conf.run_dir, &e);
	io_rmtree(f->conf.data_dir, &e);
	free(f->conf.data_dir);
	free(f->conf.run_dir);
	free(f->conf.image);
	free(f->conf.network_mode);
	free(f->conf.cap_drop);
	free(f->conf.cap_add);
	free(f->conf.oci_runtime);
	free(f->conf.agent_path);
	free(f->conf.rootfs_mirror);
	free(f->conf.rootfs_suite);
}

/* "test-<pid>" of a program that was killed: what it left runs and is mounted still. */
static inline void fixture_clear(const char *top, const char *name)
{
	struct fixture old = {.ops = backend_find("local")};
	AUTO_FREE char *dir = xasprintf("%s/%s", top, name);
	struct sandbox_list l = {0};
	struct err e = ERR_INIT;
	char instance[9];
	bool existed;
	size_t i;

	fixture_instance(instance, (pid_t)strtol(name + 5, NULL, 10));
	fixture_conf(&old, MOVE(dir), instance);
	if (fixture_open(&old, &e) == 0 && old.ops->list(old.b, &l, &e) == 0)
		for (i = 0; i < l.n; i++)
			old.ops->remove(old.b, l.v[i].name, &existed, &e);
	sandbox_list_release(&l);
	fixture_release(&old);
}

static inline void fixture_clear_all(const char *top)
{
	DIR *d = opendir(top);
	struct dirent *de;

	assert_non_null(d);
	while ((de = readdir(d))) {
		pid_t pid = strncmp(de->d_name, "test-", 5) == 0
				    ? (pid_t)strtol(de->d_name + 5, NULL, 10)
				    : 0;

		if (pid > 0 && pid != getpid() && kill(pid, 0) < 0 && errno == ESRCH)
			fixture_clear(top, de->d_name);
	}
	closedir(d);
}

static inline void fixture_init(struct fixture *f, const char *network)
{
	const char *top = getenv("TEST_DATA_DIR");
	struct err e = ERR_INIT;
	char *agent, *dir, instance[9];
	int lock, rc;

	memset(f, 0, sizeof *f);
	if (!top || !*top)
		top = "/var/tmp/mcp-sandboxd-tests";
	fixture_instance(instance, getpid());
	assert_int_equal(io_mkdirs(top, 0755, &e), 0);
	lock = fixture_lock(top);
	fixture_clear_all(top);
	dir = fixture_data_dir(top);
	agent = xasprintf("%s/agent.py", dir);
	assert_int_equal(io_write_file_atomic(agent, fixture_agent, strlen(fixture_agent),
					      0755, &e),
			 0);
	fixture_conf(f, dir, instance);
	free(f->conf.network_mode);
	f->conf.network_mode = xstrdup(network);
	free(agent);
	f->ops = backend_find("local");
	assert_non_null(f->ops);
	rc = fixture_open(f, &e);
	close(lock); /* also when it failed: the next one waits for it */
	if (rc < 0)
		fail_msg("open: %s", e.msg);
}

static inline void fixture_create(struct fixture *f, const char *name, bool fresh,
				  struct sandbox_info *ret)
{
	struct sandbox_spec spec = {.name = name,
				    .identifier = name,
				    .tenant = "default",
				    .cpu_cores = f->conf.default_cpu_cores,
				    .memory_mb = f->conf.default_memory_mb,
				    .pids = f->conf.default_pids,
				    .fresh = fresh};
	struct err e = ERR_INIT;

	if (f->ops->create(f->b, &spec, ret, &e) < 0)
		fail_msg("create: %s", e.msg);
}

static inline void fixture_remove(struct fixture *f, const char *name)
{
	struct err e = ERR_INIT;
	bool existed;

	if (f->b && f->ops->remove(f->b, name, &existed, &e) < 0)
		fail_msg("remove: %s", e.msg);
}

/* False at the end; a sandbox that says nothing for too long fails the test. */
static inline bool fixture_more(int fd, const char *text)
{
	enum { SILENCE_MS = 120000 };
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int n;

	do
		n = poll(&p, 1, SILENCE_MS);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		fail_msg("no answer after %d ms: %.60s", SILENCE_MS, text);
	return n > 0;
}

/* Runs shell text as root in the sandbox; its output and "[code]", to free(). */
static inline char *fixture_sh(struct fixture *f, const char *name, const char *text)
{
	struct buf out = BUF_INIT(1 << 20);
	struct err e = ERR_INIT;
	AUTO_CLOSE int fd = -1;
	char part[4096];
	ssize_t n;

	if (f->ops->connect(f->b, name, &fd, &e) < 0)
		fail_msg("connect: %s", e.msg);
	assert_int_equal(io_set_nonblock(fd, false, &e), 0);
	assert_int_equal(io_write_all(fd, text, strlen(text) + 1, &e), 0);
	while (fixture_more(fd, text) && (n = read(fd, part, sizeof part)) > 0)
		buf_add(&out, part, (size_t)n);
	return out.p == buf_empty ? xstrdup("") : out.p;
}

/* The output of a program on the host. */
static inline char *fixture_host(const char *const *argv)
{
	struct proc p = {.argv = argv};
	struct proc_result r = {0};
	struct err e = ERR_INIT;
	char *text;

	if (proc_run(&p, &r, &e) < 0)
		fail_msg("%s: %s", argv[0], e.msg);
	text = xstrdup(r.out.p);
	proc_result_release(&r);
	return text;
}

#endif
