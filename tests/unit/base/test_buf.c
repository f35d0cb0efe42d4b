/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"

static void an_empty_buf_is_an_empty_string(void **state)
{
	AUTO_BUF b = BUF_INIT(10);

	(void)state;
	assert_string_equal(b.p, "");
	assert_int_equal(b.len, 0);
	assert_true(buf_ok(&b));
}

static void appends_grow_and_keep_nul_bytes(void **state)
{
	AUTO_BUF b = BUF_INIT(1000);

	(void)state;
	buf_add(&b, "a\0b", 3);
	buf_printf(&b, "%d", 42);
	buf_puts(&b, "");
	assert_int_equal(b.len, 5);
	assert_memory_equal(b.p, "a\0b42", 6);
}

static void over_the_limit_is_sticky_and_drops_the_whole_append(void **state)
{
	AUTO_BUF b = BUF_INIT(4);

	(void)state;
	buf_puts(&b, "abcd");
	assert_true(buf_ok(&b));
	buf_puts(&b, "e");
	assert_false(buf_ok(&b));
	assert_string_equal(b.p, "abcd");
	buf_printf(&b, "%s", "");
	assert_false(buf_ok(&b));
}

static void release_leaves_a_usable_buf_with_its_limit(void **state)
{
	struct buf b = BUF_INIT(3);

	(void)state;
	buf_puts(&b, "abcdef");
	buf_release(&b);
	assert_true(buf_ok(&b));
	buf_puts(&b, "xyz");
	assert_string_equal(b.p, "xyz");
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_buf_is_an_empty_string),
		cmocka_unit_test(appends_grow_and_keep_nul_bytes),
		cmocka_unit_test(over_the_limit_is_sticky_and_drops_the_whole_append),
		cmocka_unit_test(release_leaves_a_usable_buf_with_its_limit),
	};
	return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
