/* SPDX-License-Identifier: MIT */
#ifndef CONF_CAPS_H
#define CONF_CAPS_H

#include <stdbool.h>

#include "base/err.h"

/*
 * Rules for SANDBOX_CAP_ADD. A name is a Linux capability without or with CAP_,
 * in any case. Strict: one that helps out of a sandbox is refused unless the
 * check is bypassed. Not strict: unknown names are refused all the same.
 */
int caps_check(const char *list, bool strict, bool bypass, struct err *e);

/* Upper case, no CAP_, no blanks, no doubles; to free(). */
char *caps_normalise(const char *list);

#endif
