/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/patterns.h"

static struct patterns *compile(const char *list)
{
	struct err e = ERR_INIT;
	struct patterns *p = NULL;

	assert_int_equal(patterns_compile(list, &p, &e), 0);
	return p;
}

static void a_comma_inside_brackets_braces_or_escaped_is_no_separator(void **state)
{
	struct patterns *p = compile("a{2,3}, [,;]x ,b\\,c,(p,q),[](,]z,,[^],]y");

	(void)state;
	assert_string_equal(patterns_match(p, "_aa_"), "a{2,3}");
	assert_null(patterns_match(p, "a"));
	assert_string_equal(patterns_match(p, ",x"), "[,;]x");
	assert_string_equal(patterns_match(p, "b,c"), "b,c");
	assert_string_equal(patterns_match(p, "p,q"), "(p,q)");
	assert_string_equal(patterns_match(p, "(z"), "[](,]z");
	assert_string_equal(patterns_match(p, "ay"), "[^],]y");
	patterns_free(p);
}

static void anchors_match_at_every_line(void **state)
{
	struct patterns *p = compile("^reboot$");

	(void)state;
	assert_non_null(patterns_match(p, "ls\nreboot\n"));
	assert_null(patterns_match(p, "echo reboot"));
	patterns_free(p);
}

static void an_empty_list_matches_nothing(void **state)
{
	struct patterns *p = compile(" , ,");

	(void)state;
	assert_null(patterns_match(p, "anything"));
	patterns_free(p);
	patterns_free(NULL);
}

static void a_bad_expression_is_named(void **state)
{
	static const char *const bad[] = {"(", "[", "*a\\", "a{2,1}", "[[:nope:]]"};
	struct patterns *p = NULL;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct err e = ERR_INIT;

		assert_int_equal(patterns_compile(bad[i], &p, &e), -1);
		assert_int_equal(e.kind, ERR_INVALID);
		assert_non_null(strstr(e.msg, bad[i]));
	}
	assert_null(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_comma_inside_brackets_braces_or_escaped_is_no_separator),
		cmocka_unit_test(anchors_match_at_every_line),
		cmocka_unit_test(an_empty_list_matches_nothing),
		cmocka_unit_test(a_bad_expression_is_named),
	};
	return cmocka_run_group_tests_name("patterns", tests, NULL, NULL);
}
