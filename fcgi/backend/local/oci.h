/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_LOCAL_OCI_H
#define BACKEND_LOCAL_OCI_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/caps.h"
#include "backend/local/cgroup.h"
#include "base/err.h"

/*
 * The config.json of a sandbox (OCI runtime specification 1.0). Pure. The
 * sandbox gets every namespace of its own, the network one included: it is made
 * by the runtime inside the new user namespace, so sysfs can be mounted and a
 * sandbox with NET_ADMIN rules only itself; the gateway connects it afterwards.
 */
struct oci_spec {
	const char *rootfs;      /* absolute */
	const char *const *args; /* of PID 1 */
	const char *hostname;
	const char *cgroup_child; /* name under the parent group */
	const char *agent_file;   /* bound at OCI_AGENT, read-only; NULL: not */
	const char *socket_dir;   /* bound at OCI_SOCKET_DIR; NULL: not */
	const char *tmp_dir;      /* bound at /tmp; NULL: not */
	const char *hosts_file;   /* bound at /etc/hosts; NULL: not */
	const char *resolv_file;  /* bound at /etc/resolv.conf; NULL: not */
	const char *seccomp_text; /* JSON */
	const struct caps *caps;
	const struct cgroups *cgroups;
	int64_t uid_base;
	bool no_new_privileges;
	double cpu_cores;
	int64_t memory_mb, pids;
};
#define OCI_AGENT      "/dev/mcp-sandboxd-agent"
#define OCI_SOCKET_DIR "/dev/mcp-sandboxd"

/* Ids the user namespace has: 0 to OCI_IDS - 1. */
enum { OCI_IDS = 65536 };

/* The text, to free(). */
int oci_config(const struct oci_spec *s, char **ret, struct err *e);

#endif
