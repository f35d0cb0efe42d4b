/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static const int64_t year_0_ms = -62167219200000;
static const int64_t year_9999_end_ms = 253402300799999;

static int64_t read_us(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t clock_now_ms(void)
{
	return read_us(CLOCK_REALTIME) / 1000;
}

int64_t clock_mono_ms(void)
{
	return read_us(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_mono_us(void)
{
	return read_us(CLOCK_MONOTONIC);
}

const char *clock_format_rfc3339(int64_t ms, char out[static CLOCK_RFC3339_SIZE])
{
	struct tm tm;
	time_t s;
	int frac;
	char date[CLOCK_RFC3339_SIZE - 8];

	if (ms < year_0_ms)
		ms = year_0_ms;
	if (ms > year_9999_end_ms)
		ms = year_9999_end_ms;
	frac = (int)(ms % 1000);
	s = (time_t)(ms / 1000);
	if (frac < 0) {
		frac += 1000;
		s--;
	}
	gmtime_r(&s, &tm);
	/* glibc's %Y is not padded, and the year is at least 0 here. */
	snprintf(date, sizeof date, "%04u-%02u-%02uT%02u:%02u:%02u",
		 (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)(tm.tm_mon + 1) % 100,
		 (unsigned)tm.tm_mday % 100, (unsigned)tm.tm_hour % 100,
		 (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100);
	snprintf(out, CLOCK_RFC3339_SIZE, "%s.%03uZ", date, (unsigned)frac % 1000);
	return out;
}
