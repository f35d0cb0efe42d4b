/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_BACKEND_H
#define BACKEND_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "conf/conf.h"

/*
 * A place sandboxes live in. A backend only creates, deletes, lists, probes,
 * and opens a byte stream to the agent; all semantics of running live in agent
 * and runner. Every call may block and is made on one of the runner's control
 * threads; calls for different sandboxes may run at once, calls for one
 * sandbox never do. Nothing here touches the store.
 */
struct backend; /* each implementation embeds `struct backend` first */

/*
 * What is asked for. Strings are borrowed for the call. A name says nothing about
 * the identifier: a sandbox of the warm pool (runner/warmpool.h) is made before
 * anyone has asked for it, with the identifier and tenant "" and no expiry (0). It
 * keeps its name when it is bound to an identifier, of which the backend hears
 * nothing; the store says whose it is.
 */
struct sandbox_spec {
	const char *name; /* backend_sandbox_name() or backend_warm_name(); unique */
	const char *identifier; /* for labels only */
	const char *tenant;
	double cpu_cores;
	int64_t memory_mb;
	int64_t pids;
	int64_t created_at_ms, expires_at_ms;
	bool fresh; /* false: keep the files of an earlier sandbox of that name */
};

/* What exists. Owned strings; sandbox_info_release(). */
struct sandbox_info {
	char *name;
	char *container_id; /* the backend's own name for it */
	char *image;
	char *policy_fingerprint;
	bool running; /* the agent may be reachable */
	bool fresh;   /* no file of an earlier sandbox is in it */
	/* It runs under another policy than a create would give it now. */
	bool outdated;
	/* Of create(), when not fresh: what of it is not as it was, for who uses it; a
	 * constant. NULL: only what ran in it is gone. */
	const char *recreated;
	/* Of list(): a new one would be made from another image than this was. */
	bool old_image;
};
void sandbox_info_release(struct sandbox_info *i);

struct sandbox_list {
	struct sandbox_info *v;
	size_t n;
};
void sandbox_list_release(struct sandbox_list *l);

/*
 * A line of words about what the backend does; it goes to the log. `who` hears it
 * besides, as an event of their runs: those that wait for any sandbox (an image is
 * being built or pulled), those that wait for the one of that name, or nobody.
 * Any thread; what is too much is not told.
 */
#define BACKEND_NOBODY  NULL
#define BACKEND_WAITING "*"
typedef void backend_progress_fn(void *arg, const char *who, const char *line);

struct backend_ops {
	const char *name;
	/*
	 * Checks everything the backend needs (runtime, kernel features, image,
	 * cgroup controllers) and fails in words a sysadmin can act on. Makes
	 * the default image when it is missing. Warnings (a limit that cannot be
	 * enforced) go to progress.
	 */
	int (*open)(const struct conf *c, const char *instance_id,
		    backend_progress_fn *progress, void *arg, struct backend **ret,
		    struct err *e);
	/* Cheap: is the backend able to create sandboxes now? */
	int (*probe)(struct backend *b, struct err *e);
	/* Create and start; returns when the agent's stream can be opened. */
	int (*create)(struct backend *b, const struct sandbox_spec *spec,
		      struct sandbox_info *ret, struct err *e);
	/*
	 * A connected, CLOEXEC, non-blocking stream descriptor to the agent.
	 * ERR_CONFLICT: what ran in it when it was connected to last has ended, also
	 * when it runs again; the words are for who waits for that, and say why and
	 * what of its files is left. ERR_BUSY: the backend cannot be asked now, which
	 * says nothing about the sandbox.
	 */
	int (*connect)(struct backend *b, const char *name, int *ret_fd, struct err *e);
	/* Stop it; keep its files (server stop). Not there: success. */
	int (*stop)(struct backend *b, const char *name, struct err *e);
	/* Remove it with its files. Not there: success, *ret_existed false. */
	int (*remove)(struct backend *b, const char *name, bool *ret_existed,
		      struct err *e);
	/* All sandboxes of this instance, running or stopped. */
	int (*list)(struct backend *b, struct sandbox_list *ret, struct err *e);
	/* Processes killed for memory since the start; -1 with kind ERR_NONE never:
	 * unknown is ERR_NOT_FOUND. Safe to call on the loop: one small file read. */
	int (*oom_kills)(struct backend *b, const char *name, uint64_t *ret,
			 struct err *e);
	/* Undo what open() made that must not outlive the server (networks). */
	void (*close)(struct backend *b);
};

struct backend {
	const struct backend_ops *ops;
};
/* The table of backends by SANDBOX_BACKEND; NULL: no such backend. */
const struct backend_ops *backend_find(const char *name);

/* "mcp-sbx-<identifier, unsafe to '-', 40 chars>-<8 hex of sha256(tenant/identifier)>",
 * with instance as a suffix-free part of the hash. dst >= 64 bytes. */
void backend_sandbox_name(char *dst, size_t n, const char *instance_id,
			  const char *tenant, const char *identifier);

/* "mcp-sbx-warm-<12 hex>", at random: no identifier has such a name. dst as above. */
void backend_warm_name(char *dst, size_t n);

#endif
