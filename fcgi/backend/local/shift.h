/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_LOCAL_SHIFT_H
#define BACKEND_LOCAL_SHIFT_H

#include <stdint.h>

#include "base/err.h"

/*
 * Adds `by` to the owner and group of everything in a tree that is not shifted
 * yet (ids below 65536), so that user namespaces with that range own it. Links
 * are not followed; set-id bits and file capabilities, which the kernel drops
 * when an owner changes, are put back. Repeating it is harmless. For trees made
 * by us, not for what a sandbox wrote.
 */
int shift_owners(const char *path, int64_t by, struct err *e);

#endif
