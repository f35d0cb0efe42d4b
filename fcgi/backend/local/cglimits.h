/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_LOCAL_CGLIMITS_H
#define BACKEND_LOCAL_CGLIMITS_H

#include "backend/local/cgroup.h"

/*
 * The limits of a control group that somebody runs in, set anew when the
 * configuration has others. Those that cannot be enforced here are passed over.
 */
struct cglimits {
	double cpu_cores;
	int64_t memory_mb, pids; /* 0: no limit, as for the processors */
};

/*
 * What is as it should be is only read. ERR_LIMIT: more memory is in use than is
 * allowed now (version 1 would refuse the limit, version 2 kill for it); that one
 * stays as it was, the others are set.
 */
int cglimits_fit(const struct cgroups *c, const char *child, const struct cglimits *want,
		 struct err *e);

#endif
