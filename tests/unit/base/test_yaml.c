/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/json.h"
#include "base/yaml.h"

static const struct {
	const char *yaml, *json;
} good[] = {
	{"", "null"},
	{"# only words\n", "null"},
	{"a: 1\nb:\n- x\n- y: [1, 2.5]\n", "{\"a\":1,\"b\":[\"x\",{\"y\":[1,2.5]}]}"},
	{"{\"json\": [true, null, \"x\"]}", "{\"json\":[true,null,\"x\"]}"},
	{"[~, null, '', \"\", 'null']", "[null,null,\"\",\"\",\"null\"]"},
	{"[true, FALSE, yes, on, 'true']", "[true,false,\"yes\",\"on\",\"true\"]"},
	{"[0644, 0x1f, 0o17, -3, +3, 08, 0]", "[420,31,15,-3,3,8.0,0]"},
	{"[1e3, .5, 1., -, ., 1e, 1.2.3, 0x]",
	 "[1000.0,0.5,1.0,\"-\",\".\",\"1e\",\"1.2.3\",\"0x\"]"},
	{"[.inf, 12:30, 250m, 2026-01-01]",
	 "[\".inf\",\"12:30\",\"250m\",\"2026-01-01\"]"},
	{"a: |\n  x\n  y\nb: >-\n  x\n  y\n", "{\"a\":\"x\\ny\\n\",\"b\":\"x y\"}"},
	{"1: a\nnull: b\n", "{\"1\":\"a\",\"null\":\"b\"}"},
	{"---\na: &anchor 1\n...\n", "{\"a\":1}"},
};

static void yaml_is_read_as_json(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof good / sizeof *good; i++) {
		AUTO_BUF text = BUF_INIT(1000);
		AUTO_JSON *v = NULL;
		struct err e = ERR_INIT;

		if (yaml_parse(good[i].yaml, strlen(good[i].yaml), &v, &e) < 0)
			fail_msg("%s: %s", good[i].yaml, e.msg);
		json_dump_buf(v, &text);
		assert_string_equal(text.p, good[i].json);
	}
}

static void what_is_refused_is_said_with_its_line(void **state)
{
	static const struct {
		const char *yaml, *words;
	} bad[] = {
		{"a: &x 1\nb: *x\n", "line 2: an alias"},
		{"a: 1\na: 2\n", "line 2: a key that was there"},
		{"a: !!str 1\n", "line 1: a tag"},
		{"a: !x [1]\n", "line 1: a tag"},
		{"a: !x {b: 1}\n", "line 1: a tag"},
		{"<<: {a: 1}\n", "merge key"},
		{"? [a]\n: 1\n", "line 1: a key that is no scalar"},
		{"a: 1\n---\nb: 2\n", "line 2: a second document"},
		{"a: [1\n", "line 2"},
		{"a: 'x\n", "line 2"},
		{"\ta: 1\n", "line 1"},
		{"a: 99999999999999999999\n", "too large"},
		{"a: 1e999\n", "too large"},
		{"a: \"x\\0y\"\n", "NUL"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		AUTO_JSON *v = NULL;
		struct err e = ERR_INIT;

		if (yaml_parse(bad[i].yaml, strlen(bad[i].yaml), &v, &e) == 0)
			fail_msg("passed: %s", bad[i].yaml);
		if (!strstr(e.msg, bad[i].words))
			fail_msg("%s: %s", bad[i].yaml, e.msg);
	}
}

static void depth_and_size_are_bounded(void **state)
{
	AUTO_BUF deep = BUF_INIT(1000), much = BUF_INIT(2 << 20);
	json_t *v = NULL;
	struct err e = ERR_INIT;
	int i;

	(void)state;
	for (i = 0; i < 65; i++)
		buf_puts(&deep, "[");
	assert_int_equal(yaml_parse(deep.p, deep.len, &v, &e), -1);
	assert_non_null(strstr(e.msg, "nested too deep"));
	e = (struct err)ERR_INIT;
	for (i = 0; i < 110000; i++)
		buf_puts(&much, "- 1\n");
	assert_int_equal(yaml_parse(much.p, much.len, &v, &e), -1);
	assert_non_null(strstr(e.msg, "too many values"));
	e = (struct err)ERR_INIT;
	while (much.len <= 1 << 20)
		buf_puts(&much, "- 1\n");
	assert_int_equal(yaml_parse(much.p, much.len, &v, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(yaml_is_read_as_json),
		cmocka_unit_test(what_is_refused_is_said_with_its_line),
		cmocka_unit_test(depth_and_size_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
