/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/json.h"

static int parses(const char *s)
{
	struct err e = ERR_INIT;
	AUTO_JSON *v = NULL;
	int rc = json_parse(s, strlen(s), &v, &e);

	assert_int_equal(rc < 0, e.kind == ERR_INVALID);
	return rc == 0;
}

static void nested(char *out, int depth)
{
	memset(out, '[', (size_t)depth);
	memset(out + depth, ']', (size_t)depth);
	out[2 * depth] = '\0';
}

static void one_whole_value_and_nothing_else(void **state)
{
	(void)state;
	assert_true(parses("{\"a\":[1,2.5,null,true,\"x\"]}"));
	assert_true(parses(" 5 "));
	assert_false(parses(""));
	assert_false(parses("{} {}"));
	assert_false(parses("{\"a\":1,}"));
	assert_false(parses("nul"));
}

static void doubled_keys_and_nul_and_bad_utf8_are_refused(void **state)
{
	(void)state;
	assert_false(parses("{\"a\":1,\"a\":2}"));
	assert_false(parses("\"\\u0000\""));
	assert_false(parses("\"\xff\""));
	assert_false(parses("\"\\ud800\""));
}

static void depth_64_passes_and_65_does_not(void **state)
{
	char text[200];

	(void)state;
	nested(text, 64);
	assert_true(parses(text));
	nested(text, 65);
	assert_false(parses(text));
}

static void brackets_in_strings_are_no_depth(void **state)
{
	char text[300] = "\"";

	(void)state;
	memset(text + 1, '[', 200);
	memcpy(text + 201, "\\\"[\"", 5);
	assert_true(parses(text));
}

static void dumping_is_compact(void **state)
{
	AUTO_JSON *v = json_pack("{s:s, s:[i]}", "a", "x\n", "b", 1);
	AUTO_BUF b = BUF_INIT(100);

	(void)state;
	json_dump_buf(v, &b);
	assert_string_equal(b.p, "{\"a\":\"x\\n\",\"b\":[1]}");
}

static void bytes_become_a_string_with_replacement_characters(void **state)
{
	AUTO_JSON *v = json_string_repaired("a\xff\0b", 4);

	(void)state;
	assert_int_equal(json_string_length(v), 6);
	assert_memory_equal(json_string_value(v), "a\xef\xbf\xbd\0b", 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_whole_value_and_nothing_else),
		cmocka_unit_test(doubled_keys_and_nul_and_bad_utf8_are_refused),
		cmocka_unit_test(depth_64_passes_and_65_does_not),
		cmocka_unit_test(brackets_in_strings_are_no_depth),
		cmocka_unit_test(dumping_is_compact),
		cmocka_unit_test(bytes_become_a_string_with_replacement_characters),
	};
	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
