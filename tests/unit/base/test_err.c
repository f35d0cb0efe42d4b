/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"

static void the_first_report_wins(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(err_set(&e, ERR_LIMIT, "first %d", 1), -1);
	assert_int_equal(err_set(&e, ERR_BUSY, "second"), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_string_equal(e.msg, "first 1");
}

static void a_system_error_keeps_errno_and_says_it(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	errno = ENOENT;
	assert_int_equal(err_sys(&e, "open %s", "/x"), -1);
	assert_int_equal(e.sys, ENOENT);
	assert_int_equal(errno, ENOENT);
	assert_string_equal(e.msg, "open /x: No such file or directory");
}

static void wrap_puts_context_in_front_and_keeps_the_kind(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	err_set(&e, ERR_STORE, "disk full");
	err_wrap(&e, "save %s", "run");
	assert_string_equal(e.msg, "save run: disk full");
	assert_int_equal(e.kind, ERR_STORE);
}

static void a_message_too_long_is_cut_and_terminated(void **state)
{
	struct err e = ERR_INIT;
	char big[2000];

	(void)state;
	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	err_set(&e, ERR_INVALID, "%s", big);
	err_wrap(&e, "%s", big);
	assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
}

static void a_message_is_text_also_when_it_was_cut_or_holds_none(void **state)
{
	struct err e = ERR_INIT;
	char many[600];

	(void)state;
	for (size_t i = 0; i + 2 < sizeof many; i += 2)
		memcpy(many + i, "\xc3\xa9", 3);
	err_set(&e, ERR_INVALID, "x%s", many);
	assert_true(utf8_is_valid(e.msg, strlen(e.msg)));
	assert_true(strlen(e.msg) >= sizeof e.msg - 2);
	err_wrap(&e, "%.2s", many + 1);
	assert_true(utf8_is_valid(e.msg, strlen(e.msg)));
	e = (struct err)ERR_INIT;
	errno = ENOENT;
	err_sys(&e, "open %s", "a\xff/b");
	assert_string_equal("open a?/b: No such file or directory", e.msg);
}

static void every_kind_has_a_word_that_reads_back(void **state)
{
	int k;

	(void)state;
	for (k = 0; k < ERR_KIND_COUNT; k++)
		assert_int_equal(err_kind_parse(err_kind_name((enum err_kind)k)), k);
	assert_int_equal(err_kind_parse("nonsense"), ERR_SYSTEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_report_wins),
		cmocka_unit_test(a_system_error_keeps_errno_and_says_it),
		cmocka_unit_test(wrap_puts_context_in_front_and_keeps_the_kind),
		cmocka_unit_test(a_message_too_long_is_cut_and_terminated),
		cmocka_unit_test(a_message_is_text_also_when_it_was_cut_or_holds_none),
		cmocka_unit_test(every_kind_has_a_word_that_reads_back),
	};
	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
