/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "net/httphead.h"

static const char upgraded[] = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\n"
			       "Content-Type: application/vnd.docker.raw-stream\r\n"
			       "Upgrade: tcp\r\n\r\n";

static enum httphead_result parse(const char *s, struct httphead *h)
{
	return httphead_parse(s, strlen(s), h);
}

static void an_upgrade_is_read_and_what_follows_is_not_part_of_it(void **state)
{
	char with_rest[sizeof upgraded + 3];
	struct httphead h;

	(void)state;
	memcpy(with_rest, upgraded, sizeof upgraded - 1);
	memcpy(with_rest + sizeof upgraded - 1, "\1\0\0", 4);
	assert_int_equal(httphead_parse(with_rest, sizeof upgraded + 2, &h), HTTPHEAD_OK);
	assert_int_equal(h.status, 101);
	assert_int_equal(h.len, sizeof upgraded - 1);
	assert_int_equal(h.content_length, -1);
	assert_true(h.is_raw_stream);
}

static void every_part_of_a_head_asks_for_more(void **state)
{
	struct httphead h;
	size_t n;

	(void)state;
	for (n = 0; n < sizeof upgraded - 1; n++)
		assert_int_equal(httphead_parse(upgraded, n, &h), HTTPHEAD_MORE);
}

static void a_refusal_has_its_length(void **state)
{
	struct httphead h;

	(void)state;
	assert_int_equal(parse("HTTP/1.1 409 Conflict\r\ncontent-length: 17\r\n\r\n", &h),
			 HTTPHEAD_OK);
	assert_int_equal(h.status, 409);
	assert_int_equal(h.content_length, 17);
	assert_false(h.is_raw_stream);
}

static void what_is_no_http_is_bad(void **state)
{
	static const char *const bad[] = {
		"SSH-2.0-OpenSSH_9.2\r\n\r\n",
		"HTTP/1.1 1x1 No\r\n\r\n",
		"HTTP/1.1 999 No\r\n\r\n",
		"HTTP/2 200\r\n\r\n",
		"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n",
	};
	struct httphead h;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		if (parse(bad[i], &h) != HTTPHEAD_BAD)
			fail_msg("passed: %s", bad[i]);
}

static void a_head_without_end_is_given_up(void **state)
{
	static char much[HTTPHEAD_MAX + 1];
	struct httphead h;

	(void)state;
	memset(much, 'x', sizeof much);
	assert_int_equal(httphead_parse(much, HTTPHEAD_MAX - 1, &h), HTTPHEAD_MORE);
	assert_int_equal(httphead_parse(much, sizeof much, &h), HTTPHEAD_BAD);
}

static void a_field_is_found_by_its_name(void **state)
{
	static const char head[] = "HTTP/1.1 101 Switching\r\nX-Up: 1\r\nUP:  two \r\n"
				   "up: three\r\nEmpty:\r\n\r\nup2: body";
	struct str v = {0};

	(void)state;
	assert_true(httphead_field(head, sizeof head - 1, "up", &v));
	assert_true(str_eq(v, "two"));
	assert_true(httphead_field(head, sizeof head - 1, "empty", &v));
	assert_int_equal(v.n, 0);
	assert_false(httphead_field(head, sizeof head - 1, "u", &v));
	assert_false(httphead_field(head, sizeof head - 1, "http/1.1 101", &v));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_upgrade_is_read_and_what_follows_is_not_part_of_it),
		cmocka_unit_test(every_part_of_a_head_asks_for_more),
		cmocka_unit_test(a_refusal_has_its_length),
		cmocka_unit_test(what_is_no_http_is_bad),
		cmocka_unit_test(a_head_without_end_is_given_up),
		cmocka_unit_test(a_field_is_found_by_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
