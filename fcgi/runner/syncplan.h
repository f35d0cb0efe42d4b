/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_SYNCPLAN_H
#define RUNNER_SYNCPLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "wire/agentproto.h"

/*
 * One run's artifacts on their way to the disk: what the listing said, what is
 * taken, linked or skipped, and the folder work. Blocking; used by one thread at
 * a time.
 *
 * A published file carries as its time the source's ctime, which nobody in the
 * sandbox can set: equal size and ctime mean that the file of the identifier's
 * previous run is the same, and it is hard-linked. Names come from a hostile
 * agent: each is checked (plan_name_problem) before it is used, everything
 * happens below a folder of our own with no symlinks in it.
 */
enum plan_fate { PLAN_FETCH, PLAN_LINKED, PLAN_FOLDER, PLAN_SKIPPED };

struct plan_entry {
	char *path;
	uint8_t fate;
	uint8_t tries;
	uint32_t mode;
	uint64_t size;
	int64_t mtime_ns, ctime_ns;
	char *reason; /* PLAN_SKIPPED */
};

struct plan_limits {
	uint64_t max_files, max_bytes, max_file_bytes; /* 0: none */
};

struct syncplan {
	char *root;                                       /* ARTIFACTS_DIR */
	char *tenant, *folder, *run_id, *previous_run_id; /* previous: NULL: none */
	gid_t gid;
	struct plan_limits limits;
	struct plan_entry *v;
	size_t n, cap;
	uint64_t files, bytes; /* to be published */
	uint64_t folders;      /* count as files for the limit: they cost inodes, too */
	uint64_t listing_bytes;
	uint64_t skipped; /* also those no longer listed one by one */
	int staging_fd;   /* -1: none */
};

struct syncplan *plan_new(void);
void plan_free(struct syncplan *p);

/* Why a path of the agent's cannot be used; NULL: it can. Pure. */
const char *plan_name_problem(const struct ap_bytes *path);

/* One entry of the listing. -1: the listing is longer than any we read. */
int plan_add(struct syncplan *p, const struct ap_entry *entry, struct err *e);
void plan_skip(struct syncplan *p, struct plan_entry *entry, const char *reason);

/* Make the staging folder and the folders in it, link what is unchanged. */
int plan_stage(struct syncplan *p, struct err *e);

/* A new file in the staging folder; its descriptor. */
int plan_open(const struct syncplan *p, const struct plan_entry *entry, int *ret_fd,
	      struct err *e);
int plan_close(const struct plan_entry *entry, int fd, struct err *e);
void plan_remove(const struct syncplan *p, const struct plan_entry *entry);

/* All at once in its place, and `latest` to it. */
int plan_publish(struct syncplan *p, struct err *e);

/* The staging folder goes. */
void plan_discard(struct syncplan *p);

#endif
