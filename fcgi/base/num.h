/* SPDX-License-Identifier: MIT */
#ifndef BASE_NUM_H
#define BASE_NUM_H

#include <stdint.h>

#include "base/err.h"

/*
 * Numbers from text, whole or not at all: decimal digits with an optional minus,
 * no blanks, no plus, no exponent for integers. The error says the allowed range.
 */
int num_parse(const char *s, int64_t min, int64_t max, int64_t *ret, struct err *e);

/* As above for "1", "0.5", "2.25": digits and at most one point. */
int num_parse_decimal(const char *s, double min, double max, double *ret, struct err *e);

#endif
