/* SPDX-License-Identifier: MIT */
#include "base/num.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

int num_parse(const char *s, int64_t min, int64_t max, int64_t *ret, struct err *e)
{
	const char *digits = s + (*s == '-');
	char *end;
	long long v;

	errno = 0;
	v = strtoll(s, &end, 10);
	if (*digits < '0' || *digits > '9' || *end != '\0' || errno || v < min || v > max)
		return err_set(e, ERR_INVALID,
			       "must be a whole number from %" PRId64 " to %" PRId64, min,
			       max);
	*ret = v;
	return 0;
}

/* The value of digits with at most one point; -1 when it is anything else. */
static double decimal_value(const char *s)
{
	double v = 0, unit = 1;
	bool point = false;
	size_t i, digits = 0;

	for (i = 0; i < 32 && s[i]; i++) {
		if (s[i] == '.' && !point) {
			point = true;
		} else if (s[i] >= '0' && s[i] <= '9') {
			v = v * 10 + (s[i] - '0');
			unit *= point ? 10 : 1;
			digits++;
		} else {
			return -1;
		}
	}
	return digits && i < 32 ? v / unit : -1;
}

int num_parse_decimal(const char *s, double min, double max, double *ret, struct err *e)
{
	double v = decimal_value(s); /* not strtod: that one reads the locale */

	if (v < min || v > max || v < 0)
		return err_set(e, ERR_INVALID, "must be a number from %g to %g", min,
			       max);
	*ret = v;
	return 0;
}
