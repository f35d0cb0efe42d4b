/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_FILEJOB_H
#define RUNNER_FILEJOB_H

#include "runner/state.h"
#include "wire/filespec.h"

/*
 * Files of a sandbox for the file tools: each job is one request to the agent,
 * with the rights of the user it names. Jobs wait until their sandbox is ready
 * (writing makes one), a few are open at once, one that the connection loses is
 * asked for again: each can be repeated. Nothing of it is stored. Loop only.
 */
enum { FILEJOBS_OPEN_MAX = 4 }; /* of AP_FS_REQUESTS_MAX; artifacts have the others */

/* Accept a MSG_FILE_*; the answer comes when it is done. */
int filejob_accept(struct runner *r, struct replyto to, const json_t *body,
		   enum file_op op, struct err *e);

/* The sandbox is ready, or has a place free: send what waits. */
void filejobs_start(struct sandbox *sb);
/* The connection is gone for now: all of them wait again. */
void filejobs_link_lost(struct sandbox *sb);
/* All end, with these words. */
void filejobs_fail(struct sandbox *sb, const struct err *why);
void filejobs_fail_with(struct sandbox *sb, enum err_kind kind, const char *why);
/* Those that an agent should have ended long ago. */
void filejobs_guard(struct sandbox *sb, int64_t mono_ms);

/* Messages of the agent. False: the request is no job's. */
bool filejobs_on_entries(struct sandbox *sb, const struct ap_fs_entries *m);
bool filejobs_on_data(struct sandbox *sb, const struct ap_fs_data *m);
bool filejobs_on_credit(struct sandbox *sb, const struct ap_fs_credit *m);
bool filejobs_on_end(struct sandbox *sb, const struct ap_fs_end *m);

/* The number of the next file request to this sandbox's agent. */
uint32_t sandbox_next_req(struct sandbox *sb);

#endif
