/* SPDX-License-Identifier: MIT */
#include "backend/local/pidref.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/io.h"
#include "base/num.h"
#include "base/str.h"

/*
 * State and start (fields 3 and 22 of proc_pid_stat(5)), counted from the last
 * ')' since a program's name may hold anything.
 */
static int read_stat(pid_t pid, char *ret_state, uint64_t *ret_start, struct err *e)
{
	char path[64], digits[24];
	AUTO_BUF text = BUF_INIT(4096);
	struct str rest, field = {0};
	int64_t start;
	int i;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (io_read_file(path, &text, e) < 0)
		return -1;
	rest = str_of(strrchr(text.p, ')') ? strrchr(text.p, ')') : "");
	for (i = 2; i <= 22 && str_cut(&rest, ' ', &field); i++)
		if (i == 3 && field.n)
			*ret_state = field.p[0];
	snprintf(digits, sizeof digits, "%.*s", (int)(field.n < 20 ? field.n : 20),
		 field.p);
	if (i != 23 || num_parse(digits, 0, INT64_MAX, &start, e) < 0)
		return err_set(e, ERR_SYSTEM, "%s cannot be read", path);
	*ret_start = (uint64_t)start;
	return 0;
}

static int boot_id(char ret[static PIDREF_BOOT_LEN + 1], struct err *e)
{
	AUTO_BUF text = BUF_INIT(256);

	if (io_read_file("/proc/sys/kernel/random/boot_id", &text, e) < 0)
		return -1;
	snprintf(ret, PIDREF_BOOT_LEN + 1, "%s", text.p);
	return 0;
}

int pidref_of(pid_t pid, struct pidref *ret, struct err *e)
{
	struct pidref p = {.pid = pid};
	char state = '?';

	if (boot_id(p.boot, e) < 0 || read_stat(pid, &state, &p.start, e) < 0)
		return -1;
	*ret = p;
	return 0;
}

/* 1: it lives, 0: it is gone, -1: that cannot be found out (no descriptors). */
static int look(const struct pidref *p, struct err *e)
{
	char boot[PIDREF_BOOT_LEN + 1], state = '?';
	uint64_t start = 0;

	if (p->pid <= 0)
		return 0;
	if (boot_id(boot, e) < 0)
		return -1;
	if (strcmp(boot, p->boot) != 0)
		return 0;
	if (read_stat(p->pid, &state, &start, e) < 0)
		return e->kind == ERR_NOT_FOUND || e->sys == ESRCH ? 0 : -1;
	return start == p->start && state != 'Z' && state != 'X';
}

bool pidref_alive(const struct pidref *p)
{
	struct err ignored = ERR_INIT;

	return look(p, &ignored) != 0;
}

int pidref_kill(const struct pidref *p, int timeout_ms, struct err *e)
{
	/* The descriptor first, the check second: then it is that process. */
	AUTO_CLOSE int fd = p->pid > 0 ? (int)syscall(SYS_pidfd_open, p->pid, 0) : -1;
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	struct err why = ERR_INIT;
	int n;

	if (p->pid > 0 && fd < 0 && errno != ESRCH)
		return err_sys(e, "look at process %d", (int)p->pid);
	n = fd < 0 ? 0 : look(p, &why);
	if (n < 0)
		*e = why;
	if (n <= 0)
		return n;
	if (syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
		return err_sys(e, "kill process %d", (int)p->pid);
	do
		n = poll(&poll_fd, 1, timeout_ms);
	while (n < 0 && errno == EINTR);
	return n > 0 ? 0
		     : err_set(e, ERR_TIMEOUT, "process %d does not end", (int)p->pid);
}
