/* SPDX-License-Identifier: MIT */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

/* Time, in milliseconds. Any thread. */
enum { CLOCK_RFC3339_SIZE = 32 };

/* Wall clock since the epoch: for what people see and what is stored. */
int64_t clock_now_ms(void);

/* Monotonic: for deadlines and durations. */
int64_t clock_mono_ms(void);
int64_t clock_mono_us(void);

/*
 * "2026-01-31T12:34:56.789Z" of ms since the epoch into out; returns out. A time
 * outside the years 0 to 9999 is shown as the nearest end of that range.
 */
const char *clock_format_rfc3339(int64_t ms, char out[static CLOCK_RFC3339_SIZE]);

#endif
