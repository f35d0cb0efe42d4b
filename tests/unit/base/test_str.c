/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static void cutting_gives_every_part_once(void **state)
{
	static const char *const want[] = {"a", "", "b", ""};
	struct str rest = str_of("a,,b,"), item;
	size_t n = 0;

	(void)state;
	while (str_cut(&rest, ',', &item))
		assert_true(n < 4 && str_eq(item, want[n++]));
	assert_int_equal(n, 4);
	rest = str_of("");
	assert_true(str_cut(&rest, ',', &item) && item.n == 0);
	assert_false(str_cut(&rest, ',', &item));
}

static void trimming_takes_blanks_from_both_ends(void **state)
{
	(void)state;
	assert_true(str_eq(str_trim(str_of(" \t a b\r\n")), "a b"));
	assert_true(str_eq(str_trim(str_of(" \n")), ""));
}

static void one_thing_is_not_many(void **state)
{
	char count[STR_COUNT_SIZE];

	(void)state;
	assert_string_equal(str_count(count, 0, "box", "boxes"), "0 boxes");
	assert_string_equal(str_count(count, 1, "box", "boxes"), "1 box");
	assert_string_equal(str_count(count, 2, "box", "boxes"), "2 boxes");
}

static void lists_hold_whole_words(void **state)
{
	(void)state;
	assert_true(str_list_has("a, bc ,d", "bc"));
	assert_false(str_list_has("abc", "bc"));
	assert_false(str_list_has("", "a"));
}

static void prefixes_and_suffixes(void **state)
{
	(void)state;
	assert_true(str_starts("abc", "ab") && str_starts("abc", ""));
	assert_false(str_starts("a", "ab"));
	assert_true(str_ends("abc", "bc"));
	assert_false(str_ends("c", "bc"));
}

static void secrets_compare_by_content(void **state)
{
	(void)state;
	assert_true(str_same_secret(str_of("abc"), str_of("abc")));
	assert_false(str_same_secret(str_of("abc"), str_of("abd")));
	assert_false(str_same_secret(str_of("abc"), str_of("abcd")));
}

static void string_vectors_are_copied_deep(void **state)
{
	char *v[] = {(char[]){"x"}, (char[]){"yz"}, NULL};
	char **copy = strv_dup(v);

	(void)state;
	v[0][0] = '!';
	assert_int_equal(strv_len(copy), 2);
	assert_string_equal(copy[0], "x");
	strv_free(copy);
	strv_free(NULL);
	assert_int_equal(strv_len(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cutting_gives_every_part_once),
		cmocka_unit_test(trimming_takes_blanks_from_both_ends),
		cmocka_unit_test(one_thing_is_not_many),
		cmocka_unit_test(lists_hold_whole_words),
		cmocka_unit_test(prefixes_and_suffixes),
		cmocka_unit_test(secrets_compare_by_content),
		cmocka_unit_test(string_vectors_are_copied_deep),
	};
	return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
