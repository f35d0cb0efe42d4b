/* SPDX-License-Identifier: MIT */
#ifndef MASTER_ATTACH_H
#define MASTER_ATTACH_H

#include <stdint.h>

#include "base/err.h"
#include "conf/conf.h"

/*
 * Finds the server of the data folder by its control.sock, for who speaks to it
 * from this machine; starts one when there is none (as root; it stays). Root and
 * members of the edges' group may.
 */
struct attach {
	struct conf conf;
	const char *env_file;
	char *db_path;
	int64_t until_ms; /* a server is being started; 0: it is not */
};

/* *ret_fd: a connection, non-blocking, the caller's. */
int attach_open(const char *env_file, struct attach *ret, int *ret_fd, struct err *e);
/* Another one, if the server is there; arg: the struct attach. */
int attach_again(void *arg, int *ret_fd, struct err *e);

#endif
