/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_LOCAL_PIDREF_H
#define BACKEND_LOCAL_PIDREF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * A process that outlives its maker, named so that a later one with the same
 * number (after its end, after a reboot) is not taken for it: the number, and
 * the moment of its start in ticks since the boot, plus which boot. Any thread.
 */
enum { PIDREF_BOOT_LEN = 36 };
struct pidref {
	pid_t pid; /* 0: none */
	uint64_t start;
	char boot[PIDREF_BOOT_LEN + 1];
};

int pidref_of(pid_t pid, struct pidref *ret, struct err *e);
/* True also when that cannot be found out: nothing is given up for a guess. */
bool pidref_alive(const struct pidref *p);

/* KILL, and waits for the end at most timeout_ms. Not alive: fine. */
int pidref_kill(const struct pidref *p, int timeout_ms, struct err *e);

#endif
