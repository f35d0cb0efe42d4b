/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_AGENTLINK_H
#define RUNNER_AGENTLINK_H

#include "runner/state.h"

/*
 * What is said with the agent of one sandbox: hello and resume, then each
 * message to the part it concerns. Takes fd.
 */
int agentlink_open(struct sandbox *sb, int fd, struct err *e);

/* As if it had been opened and the agent had said hello, knowing nothing. */
void agentlink_take(struct sandbox *sb, struct agentconn *conn);

/*
 * The agent broke the protocol (a gap in a stream, counts that differ): it is
 * not the agent we put there, or damaged. Ends the connection after the message.
 */
void agentlink_distrust(struct sandbox *sb, const char *why);

/* In sandboxreport.c. */
void sandbox_link_ready(struct sandbox *sb);
void sandbox_link_lost(struct sandbox *sb, const char *why);

#endif
