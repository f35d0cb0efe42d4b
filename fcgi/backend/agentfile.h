/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_AGENTFILE_H
#define BACKEND_AGENTFILE_H

#include "base/buf.h"
#include "base/err.h"
#include "conf/conf.h"

enum { AGENTFILE_MAX = 64 << 20 };

/* The agent's program, from AGENT_PATH or beside this one, appended to b. */
int agentfile_read(const struct conf *c, struct buf *b, struct err *e);

/* The one with that behind its name, ".arm64". ERR_NOT_FOUND: it is not there. */
int agentfile_read_other(const struct conf *c, const char *suffix, struct buf *b,
			 struct err *e);

#endif
