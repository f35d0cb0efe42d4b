/* SPDX-License-Identifier: MIT */
#ifndef AGENT_RELAY_H
#define AGENT_RELAY_H

/*
 * Carry bytes between standard input and output and the agent's socket, until either
 * side ends. A socket that is not yet in its folder is waited for, seconds at most.
 * The exit status for main.
 */
int relay(const char *socket_path);

/* A connection to the agent's socket; -1 with errno. */
int relay_connect(const char *socket_path);

#endif
