/* SPDX-License-Identifier: MIT */
#include "backend/local/runtime.h"

#include <dirent.h>
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

/* On a thread of its own: see thread.h. */
static int run_here(void *arg, struct err *e)
{
	const struct runtime_run *r = arg;
	const char *argv[16] = {r->runtime, "--root", r->state_dir, "run"};
	struct proc p = {.argv = argv,
			 .pass_fds = &r->pass_fd,
			 .npass_fds = r->pass_fd >= 0,
			 .timeout_ms = 60000};
	int n = 4;

	if (r->detach) {
		argv[n++] = "--detach";
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
	if (mount_overlay(r, e) < 0 || proc_run_ok(&p, NULL, e) < 0)
		return -1;
	return r->detach ? read_pid("pid", r->ret_pid, e) : 0;
}

int runtime_run(const struct runtime_run *r, struct err *e)
{
	struct runtime_run copy = *r;

	return thread_run(run_here, &copy, e);
}

bool runtime_knows(const char *state_dir, const char *id)
{
	AUTO_FREE char *path = xasprintf("%s/%s", state_dir, id);

	return io_exists(path);
}

int runtime_delete(const char *runtime, const char *state_dir, const char *id,
		   struct err *e)
{
	const char *const argv[] = {runtime,   "--root", state_dir, "delete",
				    "--force", id,       NULL};
	struct proc p = {.argv = argv, .timeout_ms = 30000};

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
