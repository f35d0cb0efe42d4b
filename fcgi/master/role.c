/* SPDX-License-Identifier: MIT */
#include "master/role.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "master/rolefd.h"

const char *role_name(enum role_kind kind)
{
	return kind == ROLE_RUNNER ? "runner" : "edge";
}

/*
 * In the child. Two passes, because a source may lie where another one's place
 * is: first everything above all places (CLOEXEC), then down to its own.
 */
static int place_fds(const int *fds, int n)
{
	int high[ROLEFD_FIRST + 1 + 2 * ROLE_EDGES_MAX];

	for (int i = 0; i < n; i++) {
		high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, ROLEFD_LIFE + n);
		if (high[i] < 0)
			return -1;
	}
	for (int i = 0; i < n; i++)
		if (dup2(high[i], ROLEFD_LIFE + i) < 0)
			return -1;
	return (int)syscall(SYS_close_range, (unsigned)(ROLEFD_LIFE + n), ~0U, 0);
}

static void reset_signals(void)
{
	sigset_t none;

	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void child(const char *path, const struct role_exec *x)
{
	static const char why[] = "mcp-sandboxd: cannot start a role: exec failed\n";

	reset_signals();
	setpgid(0, 0); /* a terminal's Ctrl-C is for the master alone */
	if (place_fds(x->fds, x->nfds) == 0) {
		execve(path, x->argv, x->envp);
		/* The file was replaced and removed: what runs is still there. */
		execve("/proc/self/exe", x->argv, x->envp);
	}
	if (write(STDERR_FILENO, why, sizeof(why) - 1) < 0)
		_exit(126);
	_exit(127);
}

int role_spawn(const char *path, const struct role_exec *x, pid_t *ret, struct err *e)
{
	pid_t pid;

	if (x->nfds > ROLEFD_FIRST + 1 + 2 * ROLE_EDGES_MAX)
		return err_set(e, ERR_LIMIT, "%d descriptors for a role are too many",
			       x->nfds);
	pid = fork();
	if (pid < 0)
		return err_sys(e, "fork");
	if (pid == 0)
		child(path, x);
	*ret = pid;
	return 0;
}

int64_t role_died(struct role *r, int64_t now_ms)
{
	static const int64_t delay_ms[] = {0, 100, 500, 2000, ROLE_DELAY_MAX_MS};
	const int last = (int)(sizeof(delay_ms) / sizeof(delay_ms[0])) - 1;
	int64_t delay = 0;

	if (r->state == ROLE_LEAVING || now_ms - r->started_ms >= ROLE_DECENT_LIFE_MS) {
		r->quick_deaths = 0;
	} else {
		delay = delay_ms[r->quick_deaths < last ? r->quick_deaths : last];
		if (r->ready && delay > ROLE_DELAY_MAX_SERVED_MS)
			delay = ROLE_DELAY_MAX_SERVED_MS;
		r->quick_deaths++;
	}
	r->pid = 0;
	r->ready = false;
	r->state = ROLE_WAITING;
	r->start_at_ms = now_ms + delay;
	return delay;
}
