/* SPDX-License-Identifier: MIT */
#ifndef WIRE_FILESPEC_H
#define WIRE_FILESPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * What read_file, write_file and list_files were asked for, checked, by the edge
 * and again by the runner, as in runspec.h. Pure; fuzzed.
 */
enum file_op { FILE_READ, FILE_WRITE, FILE_LIST };

enum {
	FILE_PATH_MAX = 4095,
	FILE_READ_DEFAULT = 64 * 1024,
	FILE_READ_MAX = 4 * 1024 * 1024,
	FILE_WRITE_MAX = 16 * 1024 * 1024,
	FILE_DEPTH_MAX = 32,
	FILE_PAGE = 200, /* entries of one answer to list_files */
};

struct file_spec {
	char *identifier;
	char *path;   /* absolute, "/" or without a slash at its end, no . and .. */
	bool as_root; /* as_user: "sandbox" (default) or "root" */
	/* read */
	int64_t offset, max_bytes;
	/* write */
	char *data;
	size_t data_len;
	int mode; /* permission bits; -1: as the file there has, else 0644 */
	/* list */
	int64_t depth;
	char *after; /* path of the last entry before, from the cursor; NULL: none */
};

int filespec_parse(const json_t *args, enum file_op op, struct file_spec *ret,
		   struct err *e);
void filespec_release(struct file_spec *s);

#define AUTO_FILESPEC __attribute__((cleanup(filespec_release))) struct file_spec

#endif
