/* SPDX-License-Identifier: MIT */
#include "backend/local/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/agentfile.h"
#include "backend/local/box.h"
#include "backend/local/image.h"
#include "backend/local/runtime.h"
#include "backend/local/seccomp.h"
#include "base/auto.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/sha256.h"

static const char agent_name[] = "mcp-sandboxd-agent";
static const char *const runtimes[] = {"runc", "crun", "runsc"};
enum { UID_BASE_MIN = 65536 };

static bool has_sys_admin(void)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {0};

	return syscall(SYS_capget, &h, d) == 0 && d[0].effective & (1U << CAP_SYS_ADMIN);
}

/*
 * Makes a child in one, by the bare call: a child of fork() may have threads (a
 * sanitizer's), with which it could not move. 0, or the errno of what stands in the way.
 */
static int try_user_namespace(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	int status = 0;

	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(0);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

/* The runtime's own words for it would be "can't get final child's PID". */
static int check_user_namespaces(struct err *e)
{
	switch (errno = try_user_namespace()) {
	case 0:
		return 0;
	case ENOSPC:
		return err_set(e, ERR_BACKEND,
			       "user namespaces are switched off on this machine, and "
			       "every sandbox needs one: sysctl -w "
			       "user.max_user_namespaces=10000");
	case EPERM:
		return err_set(e, ERR_BACKEND,
			       "the kernel forbids this server to make user namespaces, "
			       "though it is root, and every sandbox needs one: it does "
			       "so inside a chroot (use pivot_root or a container "
			       "instead) and under the seccomp or AppArmor policy of a "
			       "container (docker run --privileged)");
	default:
		return err_sys(e, "make a user namespace, which every sandbox needs");
	}
}

static int check_host(const struct conf *c, struct err *e)
{
	if (geteuid() != 0)
		return err_set(
			e, ERR_BACKEND,
			"the local backend needs root (sudo): it makes user "
			"namespaces, overlays and control groups for the sandboxes");
	if (c->uid_base < UID_BASE_MIN || c->uid_base > UINT32_MAX - 2 * OCI_IDS)
		return err_set(e, ERR_INVALID,
			       "SANDBOX_UID_BASE must be from 65536 up, below the end of "
			       "the 32-bit ids");
	if (!has_sys_admin())
		return err_set(e, ERR_BACKEND,
			       "the local backend needs the capability CAP_SYS_ADMIN "
			       "(mounts, namespaces), which this server lacks: in a "
			       "container, run it privileged (docker run --privileged), "
			       "or set SANDBOX_BACKEND=docker or kubernetes");
	if (!io_exists("/proc/self/ns/user"))
		return err_set(e, ERR_BACKEND,
			       "this kernel has no user namespaces (CONFIG_USER_NS), "
			       "which every sandbox needs: boot another kernel, or set "
			       "SANDBOX_BACKEND=docker or kubernetes");
	return check_user_namespaces(e);
}

static int make_folders(struct local *l, const char *instance, struct err *e)
{
	const struct conf *c = l->conf;
	AUTO_FREE char *images = xasprintf("%s/images", c->data_dir);

	l->run_dir = *c->run_dir ? xstrdup(c->run_dir)
				 : xasprintf("/run/mcp-sandboxd/%s", instance);
	l->sandboxes_dir = xasprintf("%s/sandboxes", c->data_dir);
	l->trash_dir = xasprintf("%s/trash", c->data_dir);
	l->agents_dir = xasprintf("%s/agents", l->run_dir);
	l->runtime_dir = xasprintf("%s/runtime", l->run_dir);
	if (io_mkdirs(l->run_dir, 0755, e) < 0 || io_mkdirs(images, 0711, e) < 0 ||
	    io_mkdirs(l->sandboxes_dir, 0711, e) < 0 ||
	    io_mkdirs_owned(l->trash_dir, 0700, 0, 0, e) < 0 ||
	    io_mkdirs_owned(l->agents_dir, 0700, 0, 0, e) < 0 ||
	    io_mkdirs_owned(l->runtime_dir, 0700, 0, 0, e) < 0)
		return -1;
	l->agents_fd = open(l->agents_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return l->agents_fd < 0 ? err_sys(e, "open %s", l->agents_dir) : 0;
}

/* Linux takes no overlay's upper layer from an overlay, and runs nothing from noexec. */
static int check_file_system(const struct local *l, struct err *e)
{
	enum { OVERLAYFS_MAGIC = 0x794c7630 };
	struct statfs s;

	if (statfs(l->sandboxes_dir, &s) < 0)
		return err_sys(e, "look at the file system of %s", l->sandboxes_dir);
	if (s.f_type == OVERLAYFS_MAGIC)
		return err_set(
			e, ERR_BACKEND,
			"DATA_DIR is on an overlay file system (a container's "
			"own?), which cannot hold sandboxes: put it on a volume or "
			"another disk");
	if (s.f_flags & ST_NOEXEC)
		return err_set(e, ERR_BACKEND,
			       "DATA_DIR is on a file system mounted noexec, from which "
			       "no sandbox can run: mount it with exec, or put DATA_DIR "
			       "elsewhere");
	return 0;
}

/* A copy by its hash: a new version does not change what older sandboxes run. */
static int copy_agent(struct local *l, struct err *e)
{
	AUTO_FREE char *top = xasprintf("%s/agent", l->conf->data_dir);
	AUTO_FREE char *dir = NULL;
	AUTO_BUF bytes = BUF_INIT(AGENTFILE_MAX);
	char hex[SHA256_HEX_LEN + 1];

	if (agentfile_read(l->conf, &bytes, e) < 0)
		return -1;
	sha256_hex(bytes.p, bytes.len, hex);
	dir = xasprintf("%s/%.16s", top, hex);
	l->agent_file = xasprintf("%s/%s", dir, agent_name);
	if (io_exists(l->agent_file))
		return 0;
	if (io_mkdirs(top, 0711, e) < 0 || io_mkdirs(dir, 0711, e) < 0)
		return -1;
	return io_write_file_atomic(l->agent_file, bytes.p, bytes.len, 0755, e);
}

static int load_policy(struct local *l, struct err *e)
{
	const struct conf *c = l->conf;
	json_t *profile;
	AUTO_BUF text = BUF_INIT(4 << 20);
	char hex[SHA256_HEX_LEN + 1];

	if (caps_parse(c->cap_drop, c->cap_add, &l->caps, e) < 0 ||
	    seccomp_profile_load(&l->caps, &profile, e) < 0)
		return -1;
	l->seccomp_text = json_dumps(profile, JSON_COMPACT);
	json_decref(profile);
	/* Not the limits: those are set anew while it runs. */
	buf_printf(&text, "%s %d %llx ", c->network_mode, c->no_new_privileges,
		   (unsigned long long)l->caps.bits);
	buf_puts(&text, l->seccomp_text);
	sha256_hex(text.p, text.len, hex);
	l->fingerprint = xstrndup(hex, 16);
	return 0;
}

void setup_oci(const struct local *l, struct oci_spec *s)
{
	s->caps = &l->caps;
	s->cgroups = &l->cgroups;
	s->seccomp_text = l->seccomp_text;
	s->uid_base = l->conf->uid_base;
	s->no_new_privileges = l->conf->no_new_privileges;
}

/* Runs /bin/true as a sandbox would run: every part of the set-up takes part. */
static int try_runtime(const struct local *l, const char *runtime, struct err *e)
{
	static const char *const args[] = {"/bin/true", NULL};
	AUTO_FREE char *dir = xasprintf("%s/.probe-%d", l->sandboxes_dir, (int)getpid());
	AUTO_FREE char *rootfs = xasprintf("%s/merged", dir);
	AUTO_FREE char *config = xasprintf("%s/config.json", dir);
	AUTO_FREE char *lower =
		xasprintf("%s/images/%s", l->conf->data_dir, l->image_lower);
	AUTO_FREE char *text = NULL;
	struct oci_spec spec = {.rootfs = rootfs,
				.args = args,
				.hostname = "probe",
				.cgroup_child = "probe-run",
				.cpu_cores = 1,
				.memory_mb = 64,
				.pids = 64};
	struct runtime_run run = {.runtime = runtime,
				  .state_dir = l->runtime_dir,
				  .id = "probe-run",
				  .dir = dir,
				  .lower = lower,
				  .network = strcmp(l->conf->network_mode, "bridge") == 0,
				  .pass_fd = -1};
	struct err ignored = ERR_INIT;
	int rc = -1;

	setup_oci(l, &spec);
	if (runtime_delete(runtime, l->runtime_dir, run.id, e) == 0 &&
	    io_mkdirs(dir, 0711, e) == 0 && box_make_dirs(dir, spec.uid_base, e) == 0 &&
	    oci_config(&spec, &text, e) == 0 &&
	    io_write_file_atomic(config, text, strlen(text), 0600, e) == 0)
		rc = runtime_run(&run, e);
	runtime_delete(runtime, l->runtime_dir, run.id, &ignored);
	cgroups_end(&l->cgroups, run.id, &ignored);
	io_rmtree(dir, &ignored);
	return rc;
}

/* What a passed probe depends on, as one line. */
static int probe_key(const struct local *l, const char *runtime, char **ret,
		     struct err *e)
{
	struct utsname u;
	struct stat st;

	if (stat(runtime, &st) < 0)
		return err_sys(e, "look at %s", runtime);
	if (uname(&u) < 0)
		return err_sys(e, "uname");
	*ret = xasprintf("%s %lld %lld %s %s %s %s\n", runtime, (long long)st.st_mtime,
			 (long long)st.st_size, u.release, u.version, l->fingerprint,
			 l->image_lower);
	return 0;
}

static int probe_cached(const struct local *l, const char *runtime, struct err *e)
{
	AUTO_FREE char *path = xasprintf("%s/images/runtime-probe", l->conf->data_dir);
	AUTO_FREE char *key = NULL;
	AUTO_BUF old = BUF_INIT(65536);
	struct err ignored = ERR_INIT;

	if (probe_key(l, runtime, &key, e) < 0)
		return -1;
	if (io_read_file(path, &old, &ignored) == 0 && strcmp(old.p, key) == 0)
		return 0;
	if (try_runtime(l, runtime, e) < 0)
		return -1;
	return io_write_file_atomic(path, key, strlen(key), 0600, e);
}

/* why: of the first that is installed, which an administrator would want. */
static int no_runtime(const struct err *why, struct err *e)
{
	if (why->kind == ERR_NONE)
		return err_set(e, ERR_BACKEND,
			       "no OCI runtime is installed (looked for runc, crun, "
			       "runsc): install the package runc");
	return err_set(e, ERR_BACKEND,
		       "no OCI runtime works here (more of them in the log): %.400s",
		       why->msg);
}

/* The named one, or the first that works; why the others do not goes to progress. */
static int choose_runtime(struct local *l, struct err *e)
{
	const char *wanted = l->conf->oci_runtime;
	const char *one[] = {wanted};
	const char *const *names = *wanted ? one : runtimes;
	size_t n = *wanted ? 1 : sizeof runtimes / sizeof runtimes[0], i;
	struct err first = ERR_INIT;

	for (i = 0; i < n; i++) {
		AUTO_FREE char *path = proc_find(names[i]);
		struct err why = ERR_INIT;
		char line[640];

		if (path && probe_cached(l, path, &why) == 0) {
			l->runtime = MOVE(path);
			return 0;
		}
		snprintf(line, sizeof line, "%s: %s", names[i],
			 path ? why.msg : "not installed");
		l->progress(l->progress_arg, BACKEND_NOBODY, line);
		if (*wanted)
			return err_set(e, ERR_BACKEND, "OCI_RUNTIME %s", line);
		if (path && first.kind == ERR_NONE)
			first = why;
	}
	return no_runtime(&first, e);
}

int setup_all(struct local *l, const char *instance_id, struct err *e)
{
	const struct conf *c = l->conf;

	l->cgroup_parent = xasprintf("/mcp-sandboxd-%s", instance_id);
	if (check_host(c, e) < 0 || make_folders(l, instance_id, e) < 0 ||
	    check_file_system(l, e) < 0 || load_policy(l, e) < 0 ||
	    copy_agent(l, e) < 0 ||
	    cgroups_open(l->cgroup_parent, l->progress, l->progress_arg, &l->cgroups, e) <
		    0)
		return -1;
	if (runtime_kill_strays(l->runtime_dir, e) < 0)
		return err_wrap(e, "clear up after an earlier server");
	if (image_ensure(c, l->progress, l->progress_arg, &l->image_lower, e) < 0)
		return -1;
	return choose_runtime(l, e);
}
