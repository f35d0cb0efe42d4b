/* SPDX-License-Identifier: MIT */
#include "fake.h"

#include "mcp/cursor.h"
#include "mcp/uris.h"

#define ID "run_0123456789abcdef0123456789abcdef"

static void uris_are_read_as_they_are_made(void **state)
{
	AUTO_JSON *run = uri_run(ID);
	AUTO_JSON *file = uri_artifact(ID, "a b/\xc3\xbc%/x?#");
	struct uri u;

	(void)state;
	assert_true(uri_parse(json_string_value(run), &u));
	assert_int_equal(u.kind, URI_RUN);
	assert_string_equal(u.run_id, ID);
	assert_string_equal(json_string_value(file),
			    "sandbox://runs/" ID "/artifacts/a%20b/%C3%BC%25/x%3F%23");
	assert_true(uri_parse(json_string_value(file), &u));
	assert_int_equal(u.kind, URI_ARTIFACT);
	assert_string_equal(u.path, "a b/\xc3\xbc%/x?#");
	assert_true(uri_parse("sandbox://runs/" ID "/commands/12/stderr", &u));
	assert_int_equal(u.kind, URI_OUTPUT);
	assert_int_equal(u.command, 12);
	assert_int_equal(u.stream, STORE_STDERR);
	assert_true(uri_parse("sandbox://latest/c%201/artifacts/x/y", &u));
	assert_int_equal(u.kind, URI_LATEST);
	assert_string_equal(u.identifier, "c 1");
	assert_string_equal(u.path, "x/y");
}

static void what_is_no_uri_of_ours_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"sandbox://runs/",
		"sandbox://runs/run_x",
		"sandbox://runs/" ID "x",
		"sandbox://runs/" ID "/",
		"sandbox://runs/" ID "/commands/1",
		"sandbox://runs/" ID "/commands/-1/stdout",
		"sandbox://runs/" ID "/commands/1/stdin",
		"sandbox://runs/" ID "/commands/99999999999999999999/stdout",
		"sandbox://runs/" ID "/artifacts/",
		"sandbox://runs/" ID "/artifacts/a%0",
		"sandbox://runs/" ID "/artifacts/a%00b",
		"sandbox://runs/" ID "/artifacts/a%zz",
		"sandbox://latest//artifacts/x",
		"sandbox://latest/c/artifacts/",
		"sandbox://latest/c",
		"http://runs/" ID,
	};
	struct uri u;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (uri_parse(bad[i], &u))
			fail_msg("taken: %s", bad[i]);
}

static void pictures_are_known_by_their_bytes(void **state)
{
	(void)state;
	assert_string_equal(mime_of_image("\x89PNG\r\n\x1a\n", 8), "image/png");
	assert_string_equal(mime_of_image("\xff\xd8\xff\xe0", 4), "image/jpeg");
	assert_null(mime_of_image("\x89PNG", 4));
	assert_null(mime_of_image("<svg>", 5));
	assert_string_equal(mime_of("a.b/x"), "application/octet-stream");
	assert_string_equal(mime_of("a/x.TXT"), "text/plain");
}

static void a_cursor_comes_back_as_its_key_or_is_refused(void **state)
{
	AUTO_JSON *made = cursor_make("chat \xc3\xbc");
	AUTO_JSON *number = json_integer(5);
	AUTO_JSON *bad = json_string("/w==");
	AUTO_FREE char *key = NULL;
	char *none = NULL;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(cursor_take(made, &key, &e), 0);
	assert_string_equal(key, "chat \xc3\xbc");
	assert_int_equal(cursor_take(NULL, &none, &e), 0);
	assert_null(none);
	assert_int_equal(cursor_take(number, &none, &e), -1);
	assert_int_equal(cursor_take(bad, &none, &e), -1); /* no UTF-8 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uris_are_read_as_they_are_made),
		cmocka_unit_test(what_is_no_uri_of_ours_is_refused),
		cmocka_unit_test(pictures_are_known_by_their_bytes),
		cmocka_unit_test(a_cursor_comes_back_as_its_key_or_is_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
