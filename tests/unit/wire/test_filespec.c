/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "wire/filespec.h"

static int parse(enum file_op op, const char *args, struct file_spec *s, struct err *e)
{
	AUTO_JSON *v = NULL;

	if (json_parse(args, strlen(args), &v, e) < 0)
		fail_msg("%s: %s", args, e->msg);
	return filespec_parse(v, op, s, e);
}

#define ID "{\"identifier\":\"a\","

static void paths_are_made_absolute_and_plain(void **state)
{
	static const struct {
		const char *args, *path;
	} cases[] = {
		{ID "\"path\":\"x\"}", "/workspace/x"},
		{ID "\"path\":\"/a//b/./c/\"}", "/a/b/c"},
		{ID "\"path\":\"/\"}", "/"},
		{ID "\"path\":\".\"}", "/workspace"},
		{"{\"identifier\":\"a\"}", "/workspace"},
		{ID "\"path\":\"..x/y..\"}", "/workspace/..x/y.."},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_FILESPEC s = {0};
		struct err e = ERR_INIT;

		if (parse(FILE_LIST, cases[i].args, &s, &e) < 0)
			fail_msg("%s", e.msg);
		assert_string_equal(s.path, cases[i].path);
	}
}

static void values_that_are_left_out_have_their_defaults(void **state)
{
	AUTO_FILESPEC r = {0}, w = {0}, l = {0};
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(parse(FILE_READ, ID "\"path\":\"x\"}", &r, &e), 0);
	assert_int_equal(r.max_bytes, FILE_READ_DEFAULT);
	assert_false(r.as_root);
	assert_int_equal(
		parse(FILE_WRITE, ID "\"path\":\"x\",\"base64\":\"AAE=\"}", &w, &e), 0);
	assert_int_equal(w.data_len, 2);
	assert_memory_equal(w.data, "\0\1", 2);
	assert_int_equal(w.mode, -1);
	assert_int_equal(parse(FILE_LIST, ID "\"cursor\":\"YS9i\"}", &l, &e), 0);
	assert_string_equal(l.after, "a/b");
	assert_int_equal(l.depth, 1);
}

static void what_breaks_a_rule_is_refused_with_its_name(void **state)
{
	static const struct {
		enum file_op op;
		const char *args, *words;
	} cases[] = {
		{FILE_READ, "{\"path\":\"x\"}", "identifier"},
		{FILE_READ, "{\"identifier\":\"a\"}", "path is missing"},
		{FILE_READ, ID "\"path\":\"/\"}", "not /"},
		{FILE_READ, ID "\"path\":\"a/../b\"}", ".."},
		{FILE_READ, ID "\"path\":5}", "path must be a string"},
		{FILE_READ, ID "\"path\":\"x\",\"offset\":-1}", "offset"},
		{FILE_READ, ID "\"path\":\"x\",\"max_bytes\":5000000}", "max_bytes"},
		{FILE_READ, ID "\"path\":\"x\",\"text\":\"\"}", "text"},
		{FILE_READ, ID "\"path\":\"x\",\"as_user\":\"bob\"}", "as_user"},
		{FILE_WRITE, ID "\"path\":\"x\"}", "exactly one"},
		{FILE_WRITE, ID "\"path\":\"x\",\"text\":\"\",\"base64\":\"\"}",
		 "exactly one"},
		{FILE_WRITE, ID "\"path\":\"x\",\"text\":{}}", "text must be a string"},
		{FILE_WRITE, ID "\"path\":\"x\",\"base64\":\"A\"}", "base64"},
		{FILE_WRITE, ID "\"path\":\"x\",\"text\":\"\",\"mode\":\"1777\"}",
		 "mode"},
		{FILE_WRITE, ID "\"path\":\"x\",\"text\":\"\",\"mode\":\"\"}", "mode"},
		{FILE_LIST, ID "\"depth\":0}", "depth"},
		{FILE_LIST, ID "\"cursor\":\"AA==\"}", "cursor"},
		{FILE_LIST, ID "\"cursor\":\"*\"}", "cursor"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_FILESPEC s = {0};
		struct err e = ERR_INIT;

		if (parse(cases[i].op, cases[i].args, &s, &e) == 0)
			fail_msg("taken: %s", cases[i].args);
		assert_int_equal(e.kind, ERR_INVALID);
		if (!strstr(e.msg, cases[i].words))
			fail_msg("%s: %s", cases[i].args, e.msg);
	}
}

static void a_path_that_is_too_long_is_refused(void **state)
{
	static char args[6000];
	AUTO_FILESPEC s = {0};
	struct err e = ERR_INIT;
	int n = snprintf(args, sizeof(args), ID "\"path\":\"/");

	(void)state;
	memset(args + n, 'x', 5000);
	memcpy(args + n + 5000, "\"}", 3);
	assert_int_equal(parse(FILE_READ, args, &s, &e), -1);
	assert_non_null(strstr(e.msg, "longer than"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_made_absolute_and_plain),
		cmocka_unit_test(values_that_are_left_out_have_their_defaults),
		cmocka_unit_test(what_breaks_a_rule_is_refused_with_its_name),
		cmocka_unit_test(a_path_that_is_too_long_is_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
