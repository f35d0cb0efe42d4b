/* SPDX-License-Identifier: MIT */
#ifndef AGENT_TREE_H
#define AGENT_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * All processes of a command, whatever they did to get away: double forks,
 * setsid and re-parenting included. Each command's processes carry a mark: the
 * hard limit RLIMIT_RTTIME, which fork and exec hand on, which nobody without
 * CAP_SYS_RESOURCE can raise again, which bounds nothing but real-time
 * schedulers, and which /proc/<pid>/limits shows to everybody. A process
 * without one of our marks (a kernel without that file, a program that lowered
 * the limit) is judged by its parents and its session.
 */
struct tree {
	pid_t leader;
	uint64_t mark;
	uid_t uid; /* whom its processes are expected to be */
};

/* The mark of the command with that serial number in this agent's life. */
uint64_t tree_mark(const uint8_t boot_id[16], uint32_t serial);

/* Living members (zombies do not count), the leader included. */
size_t tree_count(const struct tree *t);
/* One signal to every member; how many there were. */
size_t tree_signal(const struct tree *t, int sig);
/* Stop every member until no new one appears (bounded), then KILL all. */
void tree_kill(const struct tree *t);
/* Is one of our own direct children, but for leaders, of that tree? Cheap. */
bool tree_has_orphan(const struct tree *t);

#endif
