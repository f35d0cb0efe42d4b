/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_SANDBOXJOB_H
#define RUNNER_SANDBOXJOB_H

#include "runner/state.h"

/*
 * The blocking calls to the backend for one sandbox. A job carries copies, so the
 * thread touches no record; the state machine has at most one job per sandbox.
 */
enum sandboxjob_kind {
	SANDBOXJOB_OPEN,    /* create and connect */
	SANDBOXJOB_CONNECT, /* connect; dead: it is not running any more */
	SANDBOXJOB_REMOVE,
	SANDBOXJOB_STOP,
};

struct sandboxjob {
	struct control_job job;
	struct sandbox *sb;
	struct backend *b;
	enum sandboxjob_kind what;
	char *name, *identifier, *tenant;
	struct sandbox_spec spec;
	/* the outcome */
	int rc;
	struct err e;
	int64_t took_us;
	struct sandbox_info info;
	int fd;
	bool existed, dead;
};

void sandboxjob_submit(struct sandbox *sb, enum sandboxjob_kind what);

/* In sandboxes.c: told on the loop; the job is freed afterwards. */
void sandbox_job_done(struct sandbox *sb, struct sandboxjob *j);

#endif
