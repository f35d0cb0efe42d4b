/* SPDX-License-Identifier: MIT */
#ifndef EDGE_STDIO_H
#define EDGE_STDIO_H

#include "base/err.h"
#include "conf/conf.h"

/*
 * MCP on standard input and output (SPEC, basic/transports, stdio): a message a
 * line, many requests at once, both eras, against the store and the runner of a
 * server that runs. Nothing but messages is written to standard output. The end of
 * input ends it when all that was asked is answered. Runs go on without it.
 */
struct stdio_args {
	int fd; /* connected to control.sock, non-blocking; taken over */
	/* A new connection after the runner was replaced. */
	int (*connect)(void *arg, int *ret_fd, struct err *e);
	void *arg;
	const char *db_path;
	int in, out;
};

int stdio_serve(const struct stdio_args *a, const struct conf *c, struct err *e);

#endif
