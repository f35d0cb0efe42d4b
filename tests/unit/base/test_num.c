/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/num.h"

static void whole_numbers_in_range_only(void **state)
{
	static const char *const bad[] = {
		"",    " 1",   "1 ",  "+1",  "1.0", "0x10", "1e3",
		"abc", "-",    "--1", "101", "-11", "\t5",  "9223372036854775808",
		"1\n", "1,000"};
	int64_t v = 77;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct err e = ERR_INIT;

		assert_int_equal(num_parse(bad[i], -10, 100, &v, &e), -1);
		assert_int_equal(v, 77);
		assert_string_equal(e.msg, "must be a whole number from -10 to 100");
	}
}

static void the_ends_of_the_range_are_in_it(void **state)
{
	struct err e = ERR_INIT;
	int64_t v;

	(void)state;
	assert_int_equal(num_parse("-10", -10, 100, &v, &e), 0);
	assert_int_equal(v, -10);
	assert_int_equal(num_parse("100", -10, 100, &v, &e), 0);
	assert_int_equal(v, 100);
	assert_int_equal(num_parse("9223372036854775807", INT64_MIN, INT64_MAX, &v, &e),
			 0);
	assert_true(v == INT64_MAX);
}

static void decimals_have_digits_and_at_most_one_point(void **state)
{
	static const char *const bad[] = {"",    ".",   "1.2.3", "-1", "1e1", "nan",
					  "inf", "0x1", "9",     " 1", "1,5"};
	struct err e = ERR_INIT;
	double v = 0;
	size_t i;

	(void)state;
	assert_int_equal(num_parse_decimal("0.5", 0, 8, &v, &e), 0);
	assert_true(v > 0.499 && v < 0.501);
	assert_int_equal(num_parse_decimal("8", 0, 8, &v, &e), 0);
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct err fresh = ERR_INIT;

		assert_int_equal(num_parse_decimal(bad[i], 0, 8, &v, &fresh), -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_numbers_in_range_only),
		cmocka_unit_test(the_ends_of_the_range_are_in_it),
		cmocka_unit_test(decimals_have_digits_and_at_most_one_point),
	};
	return cmocka_run_group_tests_name("num", tests, NULL, NULL);
}
