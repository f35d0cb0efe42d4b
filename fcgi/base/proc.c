/* SPDX-License-Identifier: MIT */
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/str.h"

enum {
	PASS_MAX = 16,
	DEFAULT_TIMEOUT_MS = 60000,
	DEFAULT_OUTPUT_MAX = 64 * 1024,
	INPUT_MAX = 64 * 1024,
};

static const char search_path[] =
	"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/* A running program: what poll() watches. -1: closed. */
struct child {
	pid_t pid;
	int pidfd;
	int in, out, err; /* our ends; `in` holds the input already and is closed */
	int their[3];
	int pass[PASS_MAX]; /* copies above the numbers they will get */
	int npass;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void child_release(struct child *c)
{
	int i;

	close_fd(&c->pidfd);
	close_fd(&c->in);
	close_fd(&c->out);
	close_fd(&c->err);
	for (i = 0; i < 3; i++)
		close_fd(&c->their[i]);
	for (i = 0; i < c->npass; i++)
		close_fd(&c->pass[i]);
}

char *proc_find(const char *name)
{
	const char *path = getenv("PATH");
	AUTO_FREE char *all = xasprintf("%s:%s", path ? path : "", search_path);
	struct str rest = str_of(all), dir;
	char *full;

	if (strchr(name, '/'))
		return access(name, X_OK) == 0 ? xstrdup(name) : NULL;
	while (str_cut(&rest, ':', &dir)) {
		if (dir.n == 0 || dir.p[0] != '/')
			continue;
		full = xasprintf("%.*s/%s", (int)dir.n, dir.p, name);
		if (access(full, X_OK) == 0)
			return full;
		free(full);
	}
	return NULL;
}

static int make_pipe(int *ret_read, int *ret_write, struct err *e)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	*ret_read = fd[0];
	*ret_write = fd[1];
	return 0;
}

/* All descriptors of a child, ours and its. */
static int open_fds(const struct proc *p, struct child *c, struct err *e)
{
	int fd;

	if (p->npass_fds > PASS_MAX || p->input_len > INPUT_MAX)
		return err_set(e, ERR_LIMIT, "too many descriptors or too much input");
	if (make_pipe(&c->out, &c->their[1], e) < 0 ||
	    make_pipe(&c->err, &c->their[2], e) < 0)
		return -1;
	if (p->input) {
		if (make_pipe(&c->their[0], &c->in, e) < 0 ||
		    io_write_all(c->in, p->input, p->input_len, e) < 0)
			return -1;
		close_fd(&c->in);
	} else if (p->input_fd) {
		c->their[0] = fcntl(*p->input_fd, F_DUPFD_CLOEXEC, 3);
	} else {
		c->their[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
	if (c->their[0] < 0)
		return err_sys(e, "open standard input");
	for (c->npass = 0; c->npass < p->npass_fds; c->npass++) {
		fd = fcntl(p->pass_fds[c->npass], F_DUPFD_CLOEXEC, 3 + PASS_MAX);
		if (fd < 0)
			return err_sys(e, "pass descriptor %d", p->pass_fds[c->npass]);
		c->pass[c->npass] = fd;
	}
	if (io_set_nonblock(c->out, true, e) < 0 || io_set_nonblock(c->err, true, e) < 0)
		return -1;
	return 0;
}

static void add_actions(posix_spawn_file_actions_t *fa, const struct proc *p,
			const struct child *c)
{
	int i;

	for (i = 0; i < 3; i++)
		posix_spawn_file_actions_adddup2(fa, c->their[i], i);
	for (i = 0; i < c->npass; i++)
		posix_spawn_file_actions_adddup2(fa, c->pass[i], 3 + i);
	posix_spawn_file_actions_addclosefrom_np(fa, 3 + c->npass);
	if (p->dir)
		posix_spawn_file_actions_addchdir_np(fa, p->dir);
}

/* A group of its own, and no signal blocked or ignored, whatever we have. */
static void set_attributes(posix_spawnattr_t *at)
{
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setsigmask(at, &none);
	posix_spawnattr_setsigdefault(at, &all);
	posix_spawnattr_setpgroup(at, 0);
	posix_spawnattr_setflags(at, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
					     POSIX_SPAWN_SETPGROUP);
}

static int spawn(const struct proc *p, struct child *c, struct err *e)
{
	static const char *const plain_env[] = {
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/", "LANG=C.UTF-8", NULL};
	AUTO_FREE char *path = proc_find(p->argv[0]);
	const char *const *env = p->env ? p->env : plain_env;
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	int rc;

	if (!path)
		return err_set(e, ERR_NOT_FOUND, "the program %s is not installed",
			       p->argv[0]);
	posix_spawn_file_actions_init(&fa);
	posix_spawnattr_init(&at);
	add_actions(&fa, p, c);
	set_attributes(&at);
	/* posix_spawn takes char *const[] for history's sake and changes nothing. */
	rc = posix_spawn(&c->pid, path, &fa, &at, (char *const *)(uintptr_t)p->argv,
			 (char *const *)(uintptr_t)env);
	posix_spawnattr_destroy(&at);
	posix_spawn_file_actions_destroy(&fa);
	errno = rc;
	return rc ? err_sys(e, "start %s", path) : 0;
}

/* Takes what is there now; closes at the end. False when nothing was there. */
static bool drain(const struct proc *p, int *fd, struct buf *b)
{
	char part[8192];
	ssize_t got;

	if (*fd < 0)
		return false;
	got = read(*fd, part, sizeof part);
	if (got < 0)
		return errno == EINTR;
	if (got == 0) {
		close_fd(fd);
		return false;
	}
	if (p->on_output)
		p->on_output(p->arg, part, (size_t)got);
	/* Keep the first bytes up to the cap; what is beyond it is dropped. */
	if ((size_t)got > b->max - b->len)
		got = (ssize_t)(b->max - b->len);
	buf_add(b, part, (size_t)got);
	return true;
}

/* Reads output until the program ends; -1: it has to be killed. */
static int attend(const struct proc *p, struct child *c, struct proc_result *r,
		  struct err *e)
{
	int64_t timeout = p->timeout_ms ? p->timeout_ms : DEFAULT_TIMEOUT_MS;
	int64_t deadline = clock_mono_ms() + timeout, left;
	int stop = p->stop_fd ? *p->stop_fd : -1;
	struct pollfd pfd[4];

	for (;;) {
		pfd[0] = (struct pollfd){.fd = c->pidfd, .events = POLLIN};
		pfd[1] = (struct pollfd){.fd = c->out, .events = POLLIN};
		pfd[2] = (struct pollfd){.fd = c->err, .events = POLLIN};
		pfd[3] = (struct pollfd){.fd = stop, .events = POLLIN};
		left = deadline - clock_mono_ms();
		if (left <= 0)
			return err_set(e, ERR_TIMEOUT, "%s did not end in time",
				       p->argv[0]);
		poll(pfd, 4, left > 60000 ? 60000 : (int)left);
		if (pfd[1].revents)
			drain(p, &c->out, &r->out);
		if (pfd[2].revents)
			drain(p, &c->err, &r->err);
		if (pfd[0].revents)
			return 0;
		if (pfd[3].revents)
			return err_set(e, ERR_BUSY, "%s was stopped", p->argv[0]);
	}
}

static void reap(struct child *c, struct proc_result *r)
{
	int status = 0;

	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	r->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	r->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static int run_child(const struct proc *p, struct child *c, struct proc_result *r,
		     struct err *e)
{
	int i, rc;

	if (open_fds(p, c, e) < 0 || spawn(p, c, e) < 0)
		return -1;
	for (i = 0; i < 3; i++)
		close_fd(&c->their[i]);
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	rc = c->pidfd >= 0
		     ? attend(p, c, r, e)
		     : err_set(e, ERR_SYSTEM, "pidfd_open: Linux 5.3 or newer is needed");
	if (rc < 0)
		kill(-c->pid, SIGKILL);
	reap(c, r);
	/* Bounded: a pipe holds 64 KiB, and a child left behind may go on writing. */
	for (i = 0; i < 16 && drain(p, &c->out, &r->out); i++)
		;
	for (i = 0; i < 16 && drain(p, &c->err, &r->err); i++)
		;
	return rc;
}

int proc_run(const struct proc *p, struct proc_result *ret, struct err *e)
{
	size_t max = p->output_max ? p->output_max : DEFAULT_OUTPUT_MAX;
	struct proc_result r = {.out = BUF_INIT(max), .err = BUF_INIT(max)};
	struct child c = {
		.pidfd = -1, .in = -1, .out = -1, .err = -1, .their = {-1, -1, -1}};
	int rc = run_child(p, &c, &r, e);

	child_release(&c);
	if (rc < 0)
		proc_result_release(&r);
	else
		*ret = r;
	return rc;
}

void proc_result_release(struct proc_result *r)
{
	buf_release(&r->out);
	buf_release(&r->err);
}

/* The last line with something in it. */
static struct str last_line(const struct buf *b)
{
	struct str all = str_trim((struct str){b->p, b->len});
	const char *nl = all.n ? memrchr(all.p, '\n', all.n) : NULL;

	if (!nl)
		return all;
	return (struct str){nl + 1, all.n - (size_t)(nl + 1 - all.p)};
}

int proc_run_ok(const struct proc *p, struct buf *ret_out, struct err *e)
{
	struct proc_result r;
	struct str why;
	int rc = 0;

	if (proc_run(p, &r, e) < 0)
		return -1;
	why = last_line(&r.err);
	if (r.signal)
		rc = err_set(e, ERR_BACKEND, "%s was ended by signal %d: %.*s",
			     p->argv[0], r.signal, (int)why.n, why.p);
	else if (r.exit_code != 0)
		rc = err_set(e, ERR_BACKEND, "%s failed with exit code %d: %.*s",
			     p->argv[0], r.exit_code, (int)why.n, why.p);
	if (rc == 0 && ret_out) {
		*ret_out = r.out;
		r.out = (struct buf)BUF_INIT(0);
	}
	proc_result_release(&r);
	return rc;
}
