/* SPDX-License-Identifier: MIT */
#ifndef AGENT_FS_H
#define AGENT_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/out.h"
#include "wire/agentproto.h"

/*
 * File requests of the present connection: lists, reads and writes, some at
 * once, each moving on when it has credit and the output buffer has room. All
 * of them end with the connection; a half-written file disappears.
 */
struct fs_request;

struct fs {
	struct fs_request *v[AP_FS_REQUESTS_MAX];
	size_t turn;
};

/* A request, data or credit of the runner; o has room for one frame. */
void fs_message(struct fs *f, const struct ap_msg *m, struct out *o);
/* Put the next frame that is due, o has room; false: nothing is. */
bool fs_put_next(struct fs *f, struct out *o);
void fs_reset(struct fs *f);

/* Would a listing of this folder find nothing now? Not sure: false. */
bool fs_is_empty(const char *root);

#endif
