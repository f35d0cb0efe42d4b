/* SPDX-License-Identifier: MIT */
#include "agent/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"

enum {
	FILES_MAX = 8192,     /* three pipes a command, drains, file requests */
	CHILD_OOM_SCORE = 500 /* to be killed for memory before the agent: half way up */
};

/* The child shares our memory: an instrumented stack would be left poisoned. */
#if defined(__SANITIZE_ADDRESS__)
#define IN_CHILD __attribute__((no_sanitize("address")))
#else
#define IN_CHILD
#endif

/* Raw calls: libc's wrappers would talk to threads that are not here. */
IN_CHILD static int become(const struct user *u)
{
	if (u->uid == geteuid() && u->uid != 0)
		return 0;
	if (syscall(SYS_setgroups, u->ngroups, u->groups) < 0)
		return -1;
	if (syscall(SYS_setresgid, u->gid, u->gid, u->gid) < 0)
		return -1;
	return (int)syscall(SYS_setresuid, u->uid, u->uid, u->uid);
}

static struct rlimit inherited_files;

/* Best effort: none of these may keep a command from running. */
IN_CHILD static void set_limits(uint64_t mark)
{
	struct rlimit core = {0, 0}, realtime = {mark, mark};

	if (getrlimit(RLIMIT_CORE, &core) == 0) {
		core.rlim_cur = 0;
		setrlimit(RLIMIT_CORE, &core);
	}
	setrlimit(RLIMIT_RTTIME, &realtime);
	if (inherited_files.rlim_max > 0)
		setrlimit(RLIMIT_NOFILE, &inherited_files);
}

IN_CHILD static int take_fds(const struct spawn *s)
{
	for (int i = 0; i < 3; i++) {
		if (dup2(s->fds[i], i) < 0)
			return -1;
	}
	if (s->script_fd == SPAWN_SCRIPT_FD)
		return fcntl(SPAWN_SCRIPT_FD, F_SETFD, 0);
	if (s->script_fd >= 0 && dup2(s->script_fd, SPAWN_SCRIPT_FD) < 0)
		return -1;
	return 0;
}

IN_CHILD static void reset_signals(void)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t none;

	/* The agent ignores this one; all others it keeps at their default. */
	sigaction(SIGPIPE, &dfl, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

IN_CHILD static const char *find_path(char **envp)
{
	for (; *envp; envp++) {
		if (strncmp(*envp, "PATH=", 5) == 0)
			return *envp + 5;
	}
	return "/usr/local/bin:/usr/bin:/bin";
}

/* A text file without #! is a shell script, as with execvp(3). */
IN_CHILD static void exec_file(const struct spawn *s, const char *file)
{
	static char *sh_argv[AP_ARGS_MAX + 2];
	size_t n = 0;

	execve(file, s->argv, s->envp);
	if (errno != ENOEXEC)
		return;
	while (s->argv[n])
		n++;
	sh_argv[0] = s->argv[0];
	memcpy(&sh_argv[2], &s->argv[1], n * sizeof(*sh_argv));
	sh_argv[1] = (char *)(uintptr_t)file;
	execve("/bin/sh", sh_argv, s->envp);
}

/* One PATH entry; false when the name would be too long. */
IN_CHILD static int join(char dst[AP_PATH_MAX + 1], const char *dir, size_t dir_n,
			 const char *name)
{
	size_t name_n = strlen(name);

	if (dir_n + 1 + name_n > AP_PATH_MAX)
		return 0;
	memcpy(dst, dir, dir_n);
	if (dir_n > 0)
		dst[dir_n++] = '/';
	memcpy(dst + dir_n, name, name_n + 1);
	return 1;
}

/* Returns only when nothing could be executed, with the errno to report. */
IN_CHILD static int exec_search(const struct spawn *s)
{
	static char file[AP_PATH_MAX + 1];
	const char *name = s->argv[0], *dir, *end;
	int denied = 0;

	if (*name == '\0')
		return ENOENT;
	if (strchr(name, '/')) {
		exec_file(s, name);
		return errno;
	}
	for (dir = find_path(s->envp);; dir = end + 1) {
		end = strchrnul(dir, ':');
		if (join(file, dir, (size_t)(end - dir), name))
			exec_file(s, file);
		else
			errno = ENAMETOOLONG;
		if (errno == EACCES)
			denied = EACCES;
		else if (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG)
			return errno;
		if (*end == '\0')
			return denied ? denied : ENOENT;
	}
}

IN_CHILD static int child(void *arg)
{
	struct spawn *s = arg;

	s->stage = AP_STAGE_PIPE;
	if (setsid() < 0 || take_fds(s) < 0)
		goto failed;
	set_limits(s->mark);
	umask(022);
	s->stage = AP_STAGE_USER;
	if (become(s->user) < 0)
		goto failed;
	s->stage = AP_STAGE_CWD;
	if (chdir(s->cwd) < 0)
		goto failed;
	s->stage = AP_STAGE_EXEC;
	reset_signals();
	errno = exec_search(s);
failed:
	s->error = errno;
	_exit(127);
}

static void raise_files(void)
{
	struct rlimit raised;

	if (getrlimit(RLIMIT_NOFILE, &inherited_files) < 0)
		return;
	raised = inherited_files;
	raised.rlim_cur = raised.rlim_max < FILES_MAX ? raised.rlim_max : FILES_MAX;
	if (raised.rlim_cur > inherited_files.rlim_cur)
		setrlimit(RLIMIT_NOFILE, &raised);
}

/*
 * A child takes our score over, so ours is raised while it is made: two writes to an
 * open file, where the child would have to find its own. Until its exec the child is
 * our memory, and would take us with it in any case.
 */
static struct {
	int fd; /* -1: the score stays as it is */
	int own;
} oom = {.fd = -1};

static void set_oom_score(int score)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", score);

	if (oom.fd >= 0 && pwrite(oom.fd, text, (size_t)n, 0) < 0)
		oom.fd = -1; /* it may not be changed here, so it was not */
}

static void open_oom_score(void)
{
	AUTO_CLOSE int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[16] = "";

	if (fd < 0 || pread(fd, text, sizeof(text) - 1, 0) <= 0)
		return;
	oom.own = (int)strtol(text, NULL, 10);
	/* A stricter container: it stays as it is. */
	if (oom.own < CHILD_OOM_SCORE)
		oom.fd = MOVE_FD(fd);
}

void spawn_prepare(void)
{
	raise_files();
	open_oom_score();
}

/* It runs before this returns, on a stack of its own; errno says why not. */
static pid_t start(int (*fn)(void *), void *arg)
{
	static char stack[64 * 1024] __attribute__((aligned(64)));
	sigset_t all, old;
	pid_t pid;
	int saved;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid = clone(fn, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, arg);
	saved = errno;
	sigprocmask(SIG_SETMASK, &old, NULL);
	errno = saved;
	return pid;
}

IN_CHILD static int leave(void *arg)
{
	(void)arg;
	_exit(0);
}

bool spawn_is_full(void)
{
	return start(leave, NULL) < 0 && errno == EAGAIN;
}

pid_t spawn(struct spawn *s)
{
	pid_t pid;

	s->error = 0;
	set_oom_score(CHILD_OOM_SCORE);
	pid = start(child, s);
	if (pid < 0) {
		s->stage = AP_STAGE_FORK;
		s->error = errno;
	}
	set_oom_score(oom.own);
	/* A failed child is reaped by the caller's loop like any other. */
	return s->error ? -1 : pid;
}
