/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_LOCAL_SECCOMP_H
#define BACKEND_LOCAL_SECCOMP_H

#include <jansson.h>

#include "backend/caps.h"
#include "base/err.h"

/*
 * The system call filter of a sandbox in OCI form, made from the profile that
 * the distribution maintains (containers-common; the same shape as docker's):
 * its rules are chosen by architecture and by the capabilities of the sandbox.
 * Without CAP_SYS_ADMIN we close more than it does: no new namespaces, so that
 * user 1000 cannot become root of a nested user namespace and reach the kernel
 * code that only such roots reach. Only the machine's own system call table is
 * open, not the 32-bit ones: they are more kernel to attack, and building filters
 * for them was 40 % of the time of a start. Pure.
 */
int seccomp_translate(json_t *profile, const struct caps *caps, json_t **ret,
		      struct err *e);

/* Finds, reads and translates the installed profile. */
int seccomp_profile_load(const struct caps *caps, json_t **ret, struct err *e);

#endif
