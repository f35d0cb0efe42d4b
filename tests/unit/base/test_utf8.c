/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/utf8.h"

/* n is the whole length, valid the valid prefix, tail the incomplete tail. */
static const struct {
	const char *s;
	size_t valid, tail;
} cases[] = {
	{"", 0, 0},
	{"abc", 3, 0},
	{"\xc3\xa4", 2, 0},
	{"\xe2\x82\xac", 3, 0},
	{"\xf0\x9f\x98\x80", 4, 0},
	{"a\xc3", 1, 1},
	{"a\xe2\x82", 1, 2},
	{"a\xf0\x9f\x98", 1, 3},
	{"a\xff", 1, 0},
	{"\x80", 0, 0},
	{"\xc0\xaf", 0, 0},         /* overlong */
	{"\xe0\x80\x80", 0, 0},     /* overlong */
	{"\xe0\x80", 0, 0},         /* never to be completed */
	{"\xed\xa0\x80", 0, 0},     /* surrogate */
	{"\xf4\x90\x80\x80", 0, 0}, /* above U+10FFFF */
	{"\xf4\x8f\xbf\xbf", 4, 0}, /* U+10FFFF */
	{"\xf5", 0, 0},
	{"\x80\x80\x80\x80", 0, 0},
	{"\xc3\xa4\x80", 2, 0},
};

static void valid_prefixes_and_tails(void **state)
{
	size_t i, n;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		n = strlen(cases[i].s);
		assert_int_equal(utf8_valid_prefix(cases[i].s, n), cases[i].valid);
		assert_int_equal(utf8_incomplete_tail(cases[i].s, n), cases[i].tail);
		assert_int_equal(utf8_is_valid(cases[i].s, n), cases[i].valid == n);
	}
}

static void counting_counts_characters(void **state)
{
	(void)state;
	assert_int_equal(utf8_count("a\xc3\xa4\xf0\x9f\x98\x80", 7), 3);
}

static void each_maximal_broken_part_becomes_one_replacement(void **state)
{
	static const struct {
		const char *in, *out;
	} repaired[] = {
		{"ok", "ok"},
		{"a\xff"
		 "b",
		 "a\xef\xbf\xbd"
		 "b"},
		{"\xe2\x82"
		 "x",
		 "\xef\xbf\xbdx"},
		{"\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd"},
		{"\xf0\x9f\x98", "\xef\xbf\xbd"},
		{"\xc3\xa4\xc3", "\xc3\xa4\xef\xbf\xbd"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof repaired / sizeof *repaired; i++) {
		AUTO_BUF b = BUF_INIT(100);

		utf8_add_repaired(&b, repaired[i].in, strlen(repaired[i].in));
		assert_string_equal(b.p, repaired[i].out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(valid_prefixes_and_tails),
		cmocka_unit_test(counting_counts_characters),
		cmocka_unit_test(each_maximal_broken_part_becomes_one_replacement),
	};
	return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
