/* SPDX-License-Identifier: MIT */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Files and descriptors, with the loops that EINTR and short counts ask for.
 * Blocking; every descriptor made here is CLOEXEC. Any thread.
 */
int io_write_all(int fd, const void *p, size_t n, struct err *e);
int io_pwrite_all(int fd, const void *p, size_t n, off_t at, struct err *e);

/* Reads to the end, appending to b; more than b->max is ERR_LIMIT. */
int io_read_all(int fd, struct buf *b, struct err *e);

/* A whole file, appended to b. ERR_NOT_FOUND when it is absent. */
int io_read_file(const char *path, struct buf *b, struct err *e);

/*
 * Puts n bytes at path with the mode: written beside it, synced, renamed over it,
 * so that a reader sees the old or the new file and never a part.
 */
int io_write_file_atomic(const char *path, const void *p, size_t n, mode_t mode,
			 struct err *e);

/* Makes path and its missing parents (those: 0755), path itself with the mode. */
int io_mkdirs(const char *path, mode_t mode, struct err *e);

/* As io_mkdirs(), and gives path the owner and mode even when it was there. */
int io_mkdirs_owned(const char *path, mode_t mode, uid_t uid, gid_t gid, struct err *e);

/* Removes a tree, not following links and staying on one file system. Absent: fine. */
int io_rmtree(const char *path, struct err *e);

int io_set_cloexec(int fd, bool on, struct err *e);
int io_set_nonblock(int fd, bool on, struct err *e);
bool io_exists(const char *path);

/* Closes every descriptor from `first` up. */
void io_close_from(int first);

#endif
