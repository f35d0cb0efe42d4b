/* SPDX-License-Identifier: MIT */
#include "edge/lockdown.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SYS(name) SCMP_SYS(name)

/* Allowed whatever their arguments. Anything not in these tables fails with EPERM. */
static const int allowed[] = {
	/* connections: shutdown is below */
	SYS(accept), SYS(accept4), SYS(recvfrom), SYS(recvmsg), SYS(sendto), SYS(sendmsg),
	SYS(getsockname), SYS(getpeername), SYS(getsockopt), SYS(setsockopt), SYS(read),
	SYS(readv), SYS(write), SYS(writev), SYS(close),
	/* waiting */
	SYS(timerfd_settime), SYS(epoll_create1), SYS(epoll_ctl), SYS(epoll_wait),
	SYS(epoll_pwait), SYS(poll), SYS(ppoll), SYS(eventfd2), SYS(pipe2), SYS(futex),
	SYS(nanosleep), SYS(clock_nanosleep), SYS(restart_syscall), SYS(sched_yield),
	/* the store, read-only: openat is below */
	SYS(pread64), SYS(lseek), SYS(fstat), SYS(stat), SYS(lstat), SYS(newfstatat),
	SYS(statx), SYS(access), SYS(faccessat), SYS(faccessat2), SYS(readlink),
	SYS(readlinkat), SYS(getcwd), SYS(fcntl),
	/* large messages to the runner */
	SYS(memfd_create), SYS(ftruncate),
	/* memory: mmap and mprotect are below */
	SYS(munmap), SYS(mremap), SYS(madvise), SYS(brk),
	/* threads and signals: clone is below */
	SYS(set_robust_list), SYS(rseq), SYS(rt_sigaction), SYS(rt_sigprocmask),
	SYS(rt_sigreturn), SYS(sigaltstack), SYS(sched_getaffinity), SYS(exit),
	SYS(exit_group),
	/* about itself */
	SYS(getpid), SYS(gettid), SYS(getuid), SYS(geteuid), SYS(getgid), SYS(getegid),
	SYS(getrandom), SYS(clock_gettime), SYS(clock_getres), SYS(gettimeofday),
	SYS(time), SYS(uname), SYS(sysinfo), SYS(getrusage), SYS(getrlimit),
	SYS(prlimit64), /* of others it fails, they are another user's */
};

/* No program of ours ever makes these: whoever does is not us. */
static const int deadly[] = {
	SYS(execve),
	SYS(execveat),
	SYS(fork),
	SYS(vfork),
	SYS(ptrace),
	SYS(process_vm_readv),
	SYS(process_vm_writev),
	SYS(bpf),
	SYS(mount),
	SYS(unshare),
	SYS(setns),
	SYS(pivot_root),
	SYS(chroot),
	SYS(init_module),
	SYS(finit_module),
	SYS(kexec_load),
	SYS(setuid),
	SYS(setresuid),
	SYS(setreuid),
	SYS(keyctl),
	SYS(add_key),
	SYS(userfaultfd),
	SYS(io_uring_setup),
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int limit(int what, rlim_t value, struct err *e)
{
	struct rlimit r = {.rlim_cur = value, .rlim_max = value};

	if (setrlimit((__rlimit_resource_t)what, &r) < 0)
		return err_sys(e, "limit %d", what);
	return 0;
}

/* As many connections as the system lets this process have. */
static int raise_nofile(struct err *e)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return err_sys(e, "limit of descriptors");
	return limit(RLIMIT_NOFILE, r.rlim_max, e);
}

/* Needs CAP_SETPCAP, so it comes before the user is changed. */
static int drop_bounding_set(struct err *e)
{
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return err_sys(e, "drop capability %d", cap);
	return 0;
}

static int become(const char *user, struct err *e)
{
	struct passwd *pw;

	errno = 0;
	pw = getpwnam(user);
	if (!pw)
		return err_set(e, ERR_NOT_FOUND,
			       "there is no user \"%s\" for the edges (EDGE_USER)", user);
	if (pw->pw_uid == 0)
		return err_set(e, ERR_INVALID, "EDGE_USER must not be root");
	if (drop_bounding_set(e) < 0)
		return -1;
	if (setgroups(1, &pw->pw_gid) < 0 ||
	    setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) < 0 ||
	    setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) < 0)
		return err_sys(e, "become user %s", user);
	if (setuid(0) == 0)
		return err_set(e, ERR_SYSTEM, "root could be had back");
	return 0;
}

static int load(scmp_filter_ctx ctx, int rc, struct err *e)
{
	if (rc == 0)
		rc = seccomp_load(ctx);
	seccomp_release(ctx);
	if (rc != 0)
		return err_set(e, ERR_SYSTEM,
			       "the system call filter (seccomp) was not accepted");
	return 0;
}

/*
 * Calls made by way of an io_uring pass every filter. libuv (1.45 and newer) takes
 * one when it can, and aborts when the later filter takes it away; so there is none
 * from the beginning, and it uses epoll alone.
 */
static int refuse_io_uring(struct err *e)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);

	if (!ctx)
		return err_set(e, ERR_SYSTEM, "no memory for the system call filter");
	return load(ctx,
		    seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SYS(io_uring_setup), 0),
		    e);
}

int lockdown_user(const char *user, struct err *e)
{
	umask(077);
	if (raise_nofile(e) < 0 || limit(RLIMIT_CORE, 0, e) < 0)
		return -1;
	if (geteuid() == 0 && become(user, e) < 0)
		return -1;
	return refuse_io_uring(e);
}

static int drop_capabilities(struct err *e)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
	    syscall(SYS_capset, &h, none) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(e, "give up capabilities");
	return 0;
}

/* Those that depend on an argument. All return 0 or -errno, as libseccomp does. */
static int add_conditional(scmp_filter_ctx ctx)
{
	const scmp_datum_t writes = O_ACCMODE | O_CREAT | O_TRUNC;
	int rc = 0;

	/* A file to read; SQLite then finds that it cannot write, and reads. */
	rc |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SYS(openat), 1,
			       SCMP_A2(SCMP_CMP_MASKED_EQ, writes, O_RDONLY));
	rc |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SYS(mmap), 1,
			       SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	rc |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SYS(mprotect), 1,
			       SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	rc |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SYS(ioctl), 1,
			       SCMP_A1(SCMP_CMP_EQ, FIONBIO));
	/* Its own side of a connection. The other side of the listener is all edges'. */
	rc |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SYS(shutdown), 1,
			       SCMP_A1(SCMP_CMP_EQ, SHUT_WR));
	/* A thread, never a process. */
	rc |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SYS(clone), 1,
			       SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
	rc |= seccomp_rule_add(ctx, SCMP_ACT_KILL_PROCESS, SYS(clone), 1,
			       SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
	/* Its flags are in memory, where no filter sees them; glibc then uses clone. */
	rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SYS(clone3), 0);
	/* abort(), and nobody else. */
	rc |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SYS(tgkill), 1,
			       SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
	return rc;
}

static int build_filter(scmp_filter_ctx ctx)
{
	int rc = 0;

	for (size_t i = 0; i < COUNT(allowed); i++)
		rc |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
	for (size_t i = 0; i < COUNT(deadly); i++)
		rc |= seccomp_rule_add(ctx, SCMP_ACT_KILL_PROCESS, deadly[i], 0);
	rc |= add_conditional(ctx);
	return rc;
}

int lockdown_calls(struct err *e)
{
	scmp_filter_ctx ctx;

	if (drop_capabilities(e) < 0)
		return -1;
	ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (!ctx)
		return err_set(e, ERR_SYSTEM, "no memory for the system call filter");
	return load(ctx, build_filter(ctx), e);
}

int lockdown_threads(struct err *e)
{
	return limit(RLIMIT_NPROC, 0, e);
}
