/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

static void times_are_rfc3339_with_milliseconds(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{0, "1970-01-01T00:00:00.000Z"},
		{1, "1970-01-01T00:00:00.001Z"},
		{-1, "1969-12-31T23:59:59.999Z"},
		{951782400123, "2000-02-29T00:00:00.123Z"},
		{253402300799999, "9999-12-31T23:59:59.999Z"},
		{INT64_MAX, "9999-12-31T23:59:59.999Z"},
		{INT64_MIN, "0000-01-01T00:00:00.000Z"},
	};
	char out[CLOCK_RFC3339_SIZE];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(clock_format_rfc3339(cases[i].ms, out),
				    cases[i].text);
}

static void the_clocks_run_forward(void **state)
{
	int64_t a = clock_mono_us(), b = clock_mono_us();

	(void)state;
	assert_true(b >= a);
	assert_true(clock_mono_ms() >= a / 1000);
	assert_true(clock_now_ms() > 1600000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_rfc3339_with_milliseconds),
		cmocka_unit_test(the_clocks_run_forward),
	};
	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
