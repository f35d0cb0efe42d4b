/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_STARTFRAME_H
#define RUNNER_STARTFRAME_H

#include "runner/state.h"

/*
 * Say START for a command. Repeating it is harmless: the agent ignores an id it
 * knows. A shell command is `bash -lc SCRIPT`; a script that is too long for one
 * argument of exec travels beside and is read as /dev/fd/N.
 */
void startframe_send(struct agentconn *c, const struct run *run, size_t index);

#endif
