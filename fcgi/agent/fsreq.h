/* SPDX-License-Identifier: MIT */
#ifndef AGENT_FSREQ_H
#define AGENT_FSREQ_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "agent/out.h"
#include "wire/agentproto.h"

/*
 * The inside of one file request, shared by fs.c, which keeps them, and
 * fslist.c, fsread.c and fswrite.c, which do one kind each.
 */
struct fs_request;

struct fs_ops {
	/* Put one data frame, or set is_over. Only with credit and room. */
	void (*next)(struct fs_request *r, struct out *o);
	void (*release)(struct fs_request *r);
};

struct fs_level {
	DIR *dir;
	size_t path_n; /* of the folder, in path */
};

struct fs_request {
	const struct fs_ops *ops;
	int64_t credit;
	bool is_over;         /* end is to be sent */
	struct ap_fs_end end; /* req is set from the start */
	uid_t uid;            /* identity for the file system */
	gid_t gid;
	int fd; /* the root folder (list), the file (read, write), or -1 */
	char path[AP_PATH_MAX + 1];
	/* list */
	struct fs_level levels[AP_LIST_DEPTH_MAX];
	size_t depth, depth_max;
	/* read */
	uint64_t offset, left;
	/* write */
	int dirfd;
	bool is_excl, keeps;
	uid_t owner; /* -1: as it was made */
	gid_t group;
	mode_t mode;
	const char *name; /* in path */
	char temp[32];
};

/* The request is over with this errno. */
void fsreq_fail(struct fs_request *r, int error);
/* What FS_END tells of a file. */
void fsreq_describe(struct fs_request *r, const struct stat *st);
/* Act on files as the request's user, and as ourselves again. */
void fsreq_enter(const struct fs_request *r);
void fsreq_leave(const struct fs_request *r);
/* A view as a string of at most AP_PATH_MAX. */
void fsreq_copy(char dst[AP_PATH_MAX + 1], struct ap_bytes b);

void fslist_start(struct fs_request *r, const struct ap_fs_list *m);
void fsread_start(struct fs_request *r, const struct ap_fs_read *m);
void fswrite_start(struct fs_request *r, const struct ap_fs_write *m);
void fswrite_data(struct fs_request *r, const struct ap_fs_data *m);
void fswrite_end(struct fs_request *r);
bool fswrite_is(const struct fs_request *r);

#endif
