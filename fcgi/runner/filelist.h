/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_FILELIST_H
#define RUNNER_FILELIST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "wire/agentproto.h"
#include "wire/filespec.h"

/*
 * What a listing of the agent brings, on its way to one page of an answer: sorted
 * by path, so that a page can begin after the last one's end. Bounded. Pure.
 */
enum { FILELIST_ENTRIES_MAX = 20000, FILELIST_BYTES_MAX = 2 * 1024 * 1024 };

struct filelist_entry {
	char *path;
	struct ap_entry e; /* its view of the path is not used */
};
struct filelist {
	struct filelist_entry *v;
	size_t n, cap, bytes;
	bool cut; /* there is more than the bounds allow */
};

/* False: it is full. */
bool filelist_add(struct filelist *l, const struct ap_entry *e);
/* The answer to MSG_FILE_LIST. */
json_t *filelist_page(struct filelist *l, const struct file_spec *spec);
void filelist_release(struct filelist *l);

#endif
