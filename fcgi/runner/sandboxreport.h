/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_SANDBOXREPORT_H
#define RUNNER_SANDBOXREPORT_H

#include "runner/sandboxjob.h"

/*
 * What a step of a sandbox came to (runner/sandboxstep.h): the report of its job,
 * and how long a connection that broke is tried before its commands are lost. The
 * connection's own news come by sandbox_link_ready() and sandbox_link_lost(), which
 * runner/agentlink.h declares. Loop only.
 */

/* owner: the sandbox; one that was dropped meanwhile is freed. */
void sandbox_job_done(void *owner, struct sandboxjob *j);

#endif
