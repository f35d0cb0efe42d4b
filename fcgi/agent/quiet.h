/* SPDX-License-Identifier: MIT */
#ifndef AGENT_QUIET_H
#define AGENT_QUIET_H

/*
 * Ends every process of the pid namespace but the agent, its PID 1: where a sandbox
 * cannot be stopped and started again with its files (a pod), it is made idle. Says
 * "ok" on standard output when nothing runs any more and the agent is well: it is
 * PID 1, listens at that path, and says HELLO. Else it ends nothing, says why on
 * standard error, and the exit status is 1.
 */
int quiet(const char *socket_path);

#endif
