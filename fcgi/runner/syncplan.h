/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_SYNCPLAN_H
#define RUNNER_SYNCPLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "store/types.h"
#include "wire/agentproto.h"

/*
 * One run's artifacts on their way to the disk: what the listing said, and what is
 * taken, kept or skipped (syncdiff.h), staged and published (syncstage.h). Used by
 * one thread at a time.
 *
 * Names come from a hostile agent: each is checked (plan_name_problem) before it is
 * used, everything happens below a folder of our own with no symlinks in it.
 */
enum plan_fate { PLAN_FETCH, PLAN_SAME, PLAN_FOLDER, PLAN_SKIPPED };

struct plan_entry {
	char *path;
	uint8_t fate;
	uint8_t tries;
	uint8_t in_base; /* enum store_in_base */
	uint32_t mode;
	uint64_t size;
	int64_t mtime_ns, ctime_ns;
	char *reason; /* PLAN_SKIPPED */
};

struct plan_limits {
	uint64_t max_files, max_bytes, max_file_bytes; /* 0: none */
};

struct syncplan {
	char *root; /* ARTIFACTS_DIR */
	char *tenant, *folder, *run_id;
	gid_t gid;
	struct plan_limits limits;
	struct plan_entry *v;
	size_t n, cap;
	uint64_t files, bytes; /* to be published */
	uint64_t folders;      /* count as files for the limit: they cost inodes, too */
	uint64_t listing_bytes;
	uint64_t skipped; /* also those no longer listed one by one */
	int staging_fd;   /* -1: none */

	/* The identifier's artifacts before this run; run_id NULL: none. */
	struct store_run previous;
	bool *seen;        /* of its artifacts: listed as a file again */
	char *base_run_id; /* where its files are that it does not have itself, or */
	int base_fd;       /* it itself; -1: none */
	bool is_previous_base;
	bool shares;    /* has the base's files without linking them */
	bool must_fill; /* links them after all, before it is published */
};

struct syncplan *plan_new(void);
void plan_free(struct syncplan *p);

/* Why a path of the agent's cannot be used; NULL: it can. Pure. */
const char *plan_name_problem(const struct ap_bytes *path);

/* One entry of the listing. -1: the listing is longer than any we read. */
int plan_add(struct syncplan *p, const struct ap_entry *entry, struct err *e);
void plan_skip(struct syncplan *p, struct plan_entry *entry, const char *reason);

#endif
