/* SPDX-License-Identifier: MIT */
#ifndef AGENT_PLAN_H
#define AGENT_PLAN_H

#include <stdbool.h>

#include "agent/users.h"
#include "wire/agentproto.h"

/*
 * What START_BEGIN and its data ask for, put together piece by piece: first
 * the bytes as they come, then argv, environment, user and script made of
 * them.
 */
struct plan {
	struct ap_start head;
	uint8_t *data; /* NULL: the bytes are only counted */
	size_t need, got;
	/* filled by plan_finish() */
	char *cwd;
	char **argv, **envp; /* NULL-terminated, pointing into data and text */
	char *text;          /* the base environment's own strings */
	struct user user;
	int script_fd; /* -1: none */
	/* why plan_begin() or plan_finish() could not do it */
	enum ap_stage stage;
	int error;
};

/* Keep the bytes, or with discard only count them. */
void plan_begin(struct plan *p, const struct ap_start *head, bool discard);
/* False: more bytes than were announced. */
bool plan_add(struct plan *p, struct ap_bytes bytes);
/*
 * All bytes are there: make something to spawn. False: the strings are not
 * what was announced (a protocol fault). True with error set: it cannot be
 * done, stage says why.
 */
bool plan_finish(struct plan *p);
void plan_release(struct plan *p); /* zeroed is fine */

#endif
