/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_SANDBOXJOB_H
#define RUNNER_SANDBOXJOB_H

#include "runner/state.h"

/*
 * The blocking calls to the backend for one sandbox. A job carries copies, so the
 * thread touches no record; whoever orders one has at most one job per sandbox.
 */
enum sandboxjob_kind {
	SANDBOXJOB_OPEN,    /* create and connect */
	SANDBOXJOB_CONNECT, /* connect; dead: it is not running any more */
	SANDBOXJOB_REMOVE,
	SANDBOXJOB_STOP,
};

struct sandboxjob;

struct sandboxjob_order {
	enum sandboxjob_kind what;
	struct sandbox_spec spec; /* copied; but for OPEN only the name counts */
	/* Told on the loop; the job is freed afterwards. */
	void (*done)(void *owner, struct sandboxjob *j);
	void *owner;
};

struct sandboxjob {
	struct control_job job;
	struct backend *b;
	struct waitwords *words; /* the loop's */
	struct sandboxjob_order order;
	char *name, *identifier, *tenant;
	/* the outcome */
	int rc;
	struct err e;
	int64_t took_us;
	struct sandbox_info info;
	int fd; /* whoever takes it leaves -1 */
	bool existed, dead;
};

/* The limits are the configuration's. The backend must be open. */
void sandboxjob_submit(struct runner *r, const struct sandboxjob_order *o);

#endif
