/* SPDX-License-Identifier: MIT */
#include "backend/local/runtime.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/local/pidref.h"
#include "backend/local/thread.h"
#include "base/auto.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/proc.h"

static int read_pid(const char *path, pid_t *ret, struct err *e)
{
	AUTO_BUF text = BUF_INIT(64);
	int64_t pid;

	if (io_read_file(path, &text, e) < 0 ||
	    num_parse(text.p, 1, INT32_MAX, &pid, e) < 0)
		return err_wrap(e, "pid of the sandbox");
	*ret = (pid_t)pid;
	return 0;
}

/*
 * Relative to the sandbox's folder, so that no byte of DATA_DIR can be taken for
 * a separator of the options. The lower one is reached by a link made for this.
 */
static int mount_overlay(const struct runtime_run *r, struct err *e)
{
	static const char options[] =
		"lowerdir=lower,upperdir=store/upper,workdir=store/work";

	if (unshare(CLONE_NEWNS) < 0)
		return err_sys(e, "make a mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(e, "make the mounts private");
	if (chdir(r->dir) < 0)
		return err_sys(e, "enter %s", r->dir);
	unlink("lower");
	unlink("pid");
	unlink(".pid"); /* of a run that was killed: runc does not replace it */
	if (symlink(r->lower, "lower") < 0)
		return err_sys(e, "make %s/lower", r->dir);
	if (mount("overlay", "merged", "overlay", MS_NODEV, options) < 0)
		return err_sys(e, "mount the overlay of %s", r->dir);
	return 0;
}

bool runtime_is_gvisor(const char *runtime)
{
	const char *slash = strrchr(runtime, '/');

	return strstr(slash ? slash : runtime, "runsc") != NULL;
}

/*
 * runsc refuses to start in the host's network and takes a kernel setting that
 * only the first namespace used to have for a sign of it. Newer kernels show it in
 * all of them. Ours is never the host's, so runsc does not get to see it.
 */
static int hide_net_settings(struct err *e)
{
	if (mount("tmpfs", "/proc/sys/net", "tmpfs",
		  MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return err_sys(e, "cover /proc/sys/net");
	return 0;
}

static int add_common(const struct runtime_run *r, const char **argv)
{
	/*
	 * Without --overlay2=none it keeps what is written to itself, and packages
	 * are lost at the stop. `create`: the agent may make its socket; nothing in
	 * the sandbox may connect to one of the host.
	 */
	static const char *const gvisor[] = {"--rootless=false", "--platform=systrap",
					     "--overlay2=none", "--host-uds=create"};
	int n = 0;
	size_t i;

	argv[n++] = r->runtime;
	argv[n++] = "--root";
	argv[n++] = r->state_dir;
	if (!runtime_is_gvisor(r->runtime))
		return n;
	for (i = 0; i < sizeof gvisor / sizeof gvisor[0]; i++)
		argv[n++] = gvisor[i];
	argv[n++] = r->network ? "--network=sandbox" : "--network=none";
	return n;
}

enum { ARGS_MAX = 20, RUN_TIMEOUT_MS = 60000 };

/* `run`, or the first half of it. */
static int call(const struct runtime_run *r, const char *verb, struct err *e)
{
	const char *argv[ARGS_MAX];
	struct proc p = {.argv = argv,
			 .pass_fds = &r->pass_fd,
			 .npass_fds = r->pass_fd >= 0,
			 .timeout_ms = RUN_TIMEOUT_MS};
	int n = add_common(r, argv);

	argv[n++] = verb;
	if (r->detach && strcmp(verb, "run") == 0)
		argv[n++] = "--detach";
	if (r->detach) {
		argv[n++] = "--pid-file";
		argv[n++] = "pid";
	}
	if (r->pass_fd >= 0) {
		argv[n++] = "--preserve-fds";
		argv[n++] = "1";
	}
	argv[n++] = "--bundle";
	argv[n++] = ".";
	argv[n++] = r->id;
	argv[n] = NULL;
	return proc_run_ok(&p, NULL, e);
}

static int call_start(const struct runtime_run *r, struct err *e)
{
	const char *argv[ARGS_MAX];
	struct proc p = {.argv = argv, .timeout_ms = RUN_TIMEOUT_MS};
	int n = add_common(r, argv);

	argv[n++] = "start";
	argv[n++] = r->id;
	argv[n] = NULL;
	return proc_run_ok(&p, NULL, e);
}

/* On a thread of its own: see thread.h. */
static int run_here(void *arg, struct err *e)
{
	const struct runtime_run *r = arg;
	bool gvisor = runtime_is_gvisor(r->runtime), halves = gvisor && r->detach;
	pid_t pid = 0;

	if (mount_overlay(r, e) < 0 || (gvisor && hide_net_settings(e) < 0) ||
	    call(r, halves ? "create" : "run", e) < 0)
		return -1;
	if (!r->detach)
		return 0;
	if (read_pid("pid", &pid, e) < 0 || r->on_created(r->arg, pid, e) < 0)
		return -1;
	return halves ? call_start(r, e) : 0;
}

int runtime_run(const struct runtime_run *r, struct err *e)
{
	struct runtime_run copy = *r;

	return thread_run(run_here, &copy, e);
}

/* runc and crun have a folder per container, runsc has files of these names. */
static char *gvisor_file(const char *state_dir, const char *id, int i)
{
	static const char *const ends[] = {"state", "lock"};

	return i < 2 ? xasprintf("%s/%s_sandbox:%s.%s", state_dir, id, id, ends[i])
		     : xasprintf("%s/runsc-%s.sock", state_dir, id);
}

bool runtime_knows(const char *state_dir, const char *id)
{
	AUTO_FREE char *dir = xasprintf("%s/%s", state_dir, id);
	AUTO_FREE char *gvisor = gvisor_file(state_dir, id, 0);

	return io_exists(dir) || io_exists(gvisor);
}

/*
 * `runsc delete` waits until its process has been reaped, which is seconds where
 * the first process of the machine takes its time, and never where it does not
 * reap at all. The caller kills by control group, so only the record has to go.
 */
static int forget_gvisor(const char *state_dir, const char *id, struct err *e)
{
	int i;

	for (i = 0; i < 3; i++) {
		AUTO_FREE char *path = gvisor_file(state_dir, id, i);

		if (unlink(path) < 0 && errno != ENOENT)
			return err_sys(e, "remove %s", path);
	}
	return 0;
}

int runtime_delete(const char *runtime, const char *state_dir, const char *id,
		   struct err *e)
{
	const char *const argv[] = {runtime,   "--root", state_dir, "delete",
				    "--force", id,       NULL};
	struct proc p = {.argv = argv, .timeout_ms = 30000};

	if (runtime_is_gvisor(runtime))
		return forget_gvisor(state_dir, id, e);
	if (!runtime_knows(state_dir, id))
		return 0;
	return proc_run_ok(&p, NULL, e);
}

/* True if an argument of the process is the folder of our state. */
static bool works_on(pid_t pid, const char *state_dir)
{
	AUTO_FREE char *path = xasprintf("/proc/%d/cmdline", (int)pid);
	AUTO_BUF text = BUF_INIT(1 << 20);
	struct err e = ERR_INIT;
	size_t i;

	if (io_read_file(path, &text, &e) < 0)
		return false;
	for (i = 0; i < text.len; i += strlen(text.p + i) + 1)
		if (strcmp(text.p + i, state_dir) == 0)
			return true;
	return false;
}

int runtime_kill_strays(const char *state_dir, struct err *e)
{
	enum { WAIT_MS = 5000 };
	struct dirent **names = NULL;
	int i, rc = 0, n = scandir("/proc", &names, NULL, NULL);

	for (i = 0; i < n; i++) {
		struct err none = ERR_INIT;
		struct pidref p;
		int64_t pid;

		if (rc == 0 &&
		    num_parse(names[i]->d_name, 2, INT32_MAX, &pid, &none) == 0 &&
		    pid != getpid() && pidref_of((pid_t)pid, &p, &none) == 0 &&
		    works_on(p.pid, state_dir))
			rc = pidref_kill(&p, WAIT_MS, e);
		free(names[i]);
	}
	free(names);
	return rc;
}
