/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "edge/query.h"
#include "edge/routes.h"

/* A copy that ends where a page that must not be read begins. */
static struct str guarded(const char *text)
{
	size_t n = strlen(text);
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(p + 4096, 4096, PROT_NONE), 0);
	/* That it has no NUL is the point. NOLINTNEXTLINE(bugprone-not-null*) */
	memcpy(p + 4096 - n, text, n);
	return (struct str){p + 4096 - n, n};
}

static void unguard(struct str s)
{
	munmap((void *)(((uintptr_t)s.p - 1) & ~(uintptr_t)4095), 8192);
}

static void values_are_found_and_decoded(void **state)
{
	static const struct {
		const char *query, *name;
		enum query_result result;
		const char *value;
	} cases[] = {
		{"a=1&b=2", "b", QUERY_FOUND, "2"},
		{"a=1&a=2", "a", QUERY_FOUND, "1"},
		{"a", "a", QUERY_FOUND, ""},
		{"a=", "a", QUERY_FOUND, ""},
		{"aa=1", "a", QUERY_ABSENT, ""},
		{"", "a", QUERY_ABSENT, ""},
		{"&&=&", "a", QUERY_ABSENT, ""},
		{"a=b=c", "a", QUERY_FOUND, "b=c"},
		{"a=x+y%20z%2B", "a", QUERY_FOUND, "x y z+"},
		{"a=%e2%82%AC", "a", QUERY_FOUND, "\342\202\254"},
		{"a=%", "a", QUERY_BAD, ""},
		{"a=%4", "a", QUERY_BAD, ""},
		{"a=%4g", "a", QUERY_BAD, ""},
		{"a=%00", "a", QUERY_BAD, ""},
		{"a=01234567890", "a", QUERY_BAD, ""},
		{"a=0123456", "a", QUERY_FOUND, "0123456"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct str q = guarded(cases[i].query);
		char value[8] = "";

		if (query_get(q, cases[i].name, value, sizeof(value)) != cases[i].result)
			fail_msg("%s", cases[i].query);
		if (cases[i].result == QUERY_FOUND)
			assert_string_equal(value, cases[i].value);
		unguard(q);
	}
}

static void a_plus_is_a_plus_in_a_path(void **state)
{
	char value[8];

	(void)state;
	assert_int_equal(url_decode(str_of("a+%2f"), false, value, sizeof(value)), 0);
	assert_string_equal(value, "a+/");
}

static void a_target_is_split_at_the_first_question_mark(void **state)
{
	struct str path, query;

	(void)state;
	target_split(str_of("/a?b?c"), &path, &query);
	assert_true(str_eq(path, "/a"));
	assert_true(str_eq(query, "b?c"));
	target_split(str_of("/a"), &path, &query);
	assert_true(str_eq(path, "/a"));
	assert_true(str_eq(query, ""));
	target_split(str_of(""), &path, &query);
	assert_true(str_eq(path, ""));
}

static void patterns_take_whole_segments(void **state)
{
	static const struct {
		const char *path, *pattern;
		bool matches;
		const char *first;
	} cases[] = {
		{"/a/b", "/a/*", true, "b"},
		{"/a/", "/a/*", false, NULL},
		{"/a", "/a/*", false, NULL},
		{"/a/b/c", "/a/*", false, NULL},
		{"/a/b/c", "/a/**", true, "b/c"},
		{"/a/", "/a/**", false, NULL},
		{"/ab", "/a", false, NULL},
		{"/a/", "/a", false, NULL},
		{"", "", true, NULL},
		{"/", "/", true, NULL},
		{"//a", "/a", false, NULL},
		{"/*/x", "/*/x", true, "*"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct str capture[HTTP_CAPTURES] = {{NULL, 0}};
		struct str path = guarded(cases[i].path);

		if (route_match(path, cases[i].pattern, capture) != cases[i].matches)
			fail_msg("%s %s", cases[i].path, cases[i].pattern);
		if (cases[i].first)
			assert_true(str_eq(capture[0], cases[i].first));
		unguard(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_found_and_decoded),
		cmocka_unit_test(a_plus_is_a_plus_in_a_path),
		cmocka_unit_test(a_target_is_split_at_the_first_question_mark),
		cmocka_unit_test(patterns_take_whole_segments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
