/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"
#include "conf/conf.h"

static int collect(void *arg, const char *key, const char *value, struct err *e)
{
	(void)e;
	buf_printf(arg, "%s=<%s>", key, value);
	return 0;
}

static void expect(const char *text, const char *want)
{
	AUTO_BUF b = BUF_INIT(1000);
	struct err e = ERR_INIT;

	if (conf_parse_env_text(text, strlen(text), collect, &b, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	assert_string_equal(b.p, want);
}

static void expect_bad(const char *text, const char *line)
{
	AUTO_BUF b = BUF_INIT(1000);
	struct err e = ERR_INIT;

	assert_int_equal(conf_parse_env_text(text, strlen(text), collect, &b, &e), -1);
	assert_int_equal(e.kind, ERR_INVALID);
	assert_non_null(strstr(e.msg, line));
}

static void bare_values_lose_blanks_and_comments(void **state)
{
	(void)state;
	expect("A=1\nB = two words # comment\nC=a#b\nD=\nE=#x\n",
	       "A=<1>B=<two words>C=<a#b>D=<>E=<>");
	expect("  export\tA=1", "A=<1>");
	expect("export=1\n", "export=<1>");
}

static void crlf_blank_lines_comments_and_a_byte_order_mark_are_fine(void **state)
{
	(void)state;
	expect("\xef\xbb\xbf# hello\r\n\r\n \t\r\nA=1\r\nB='x'\r\n", "A=<1>B=<x>");
	expect("", "");
	expect("\n\n", "");
}

static void single_quotes_keep_everything(void **state)
{
	(void)state;
	expect("A='a \\n \"$x\" # y'  # c\n", "A=<a \\n \"$x\" # y>");
	expect("A='one\ntwo'\nB=1\n", "A=<one\ntwo>B=<1>");
}

static void double_quotes_have_escapes_and_expand_nothing(void **state)
{
	(void)state;
	expect("A=\"a\\n\\t\\\\\\\"\\$x\\`$HOME\"", "A=<a\n\t\\\"$x`$HOME>");
}

static void faults_name_their_line(void **state)
{
	(void)state;
	expect_bad("A=1\nnonsense\n", "line 2");
	expect_bad("1A=1\n", "line 1");
	expect_bad("A-B=1\n", "line 1");
	expect_bad("A='x\ny\nz", "line 1: the closing quote");
	expect_bad("A=\"\\x\"\n", "line 1");
	expect_bad("A='x' y\n", "line 1");
	expect_bad("A='x\n' y\n", "line 2");
	expect_bad("=1\n", "line 1");
	expect_bad("export A\n", "line 1");
	expect_bad("A=\"x\\", "line 1");
}

static int refuse(void *arg, const char *key, const char *value, struct err *e)
{
	(void)arg;
	(void)value;
	return err_set(e, ERR_INVALID, "no %s", key);
}

static void a_refusal_by_the_taker_gets_the_line(void **state)
{
	static const char text[] = "\n\nA=1\n";
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(conf_parse_env_text(text, strlen(text), refuse, NULL, &e), -1);
	assert_string_equal(e.msg, "line 3: no A");
}

static void a_nul_byte_is_refused(void **state)
{
	AUTO_BUF b = BUF_INIT(1000);
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(conf_parse_env_text("A=\0x", 4, collect, &b, &e), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bare_values_lose_blanks_and_comments),
		cmocka_unit_test(
			crlf_blank_lines_comments_and_a_byte_order_mark_are_fine),
		cmocka_unit_test(single_quotes_keep_everything),
		cmocka_unit_test(double_quotes_have_escapes_and_expand_nothing),
		cmocka_unit_test(faults_name_their_line),
		cmocka_unit_test(a_refusal_by_the_taker_gets_the_line),
		cmocka_unit_test(a_nul_byte_is_refused),
	};
	return cmocka_run_group_tests_name("envfile", tests, NULL, NULL);
}
