/* SPDX-License-Identifier: MIT */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Runs a program to its end: an argument vector (never a shell), an environment
 * built from nothing, its own process group, a deadline after which the whole
 * group is killed, its output kept up to a cap (the rest is read and dropped).
 * It inherits no descriptor but 0, 1, 2 and pass_fds. The run ends with the
 * program, not with the end of its output: what it leaves behind (a container)
 * may keep the pipes open. Blocking; for control threads. Any thread.
 */
struct proc {
	const char *const *argv; /* [0]: a path, or a name looked up in PATH */
	const char *const *env;  /* NULL: PATH, HOME=/, LANG=C.UTF-8 */
	const char *dir;         /* NULL: as ours */
	const void *input;       /* standard input; NULL: /dev/null */
	size_t input_len;        /* at most 64 KiB, what a pipe takes at once */
	const int *input_fd;     /* standard input in place of these; NULL: none */
	const int *pass_fds;     /* become 3, 4, … in the program */
	int npass_fds;
	int64_t timeout_ms; /* 0: 60 s */
	const int *stop_fd; /* readable: it is killed, ERR_BUSY; NULL: none */
	size_t output_max;  /* per stream; 0: 64 KiB */
	/* Every piece of standard output and error as it comes; NULL: none. */
	void (*on_output)(void *arg, const char *p, size_t n);
	void *arg;
};

struct proc_result {
	int exit_code; /* 0..255, or -1 when a signal ended it */
	int signal;    /* or 0 */
	struct buf out, err;
};

/* -1: not started, ERR_TIMEOUT, or stopped. A failing program is a result. */
int proc_run(const struct proc *p, struct proc_result *ret, struct err *e);

/*
 * As proc_run(), and anything but exit code 0 is ERR_BACKEND with the program's
 * name, its status and the last line it wrote to standard error. ret_out (may be
 * NULL) gets standard output; the caller's to release.
 */
int proc_run_ok(const struct proc *p, struct buf *ret_out, struct err *e);
void proc_result_release(struct proc_result *r);

/* The full path of a program in PATH or the sbin folders, to free(); NULL: none. */
char *proc_find(const char *name);

#endif
