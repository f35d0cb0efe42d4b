/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"

static const struct {
	const char *plain, *standard, *for_urls;
} pairs[] = {
	{"", "", ""},
	{"f", "Zg==", "Zg"},
	{"fo", "Zm8=", "Zm8"},
	{"foo", "Zm9v", "Zm9v"},
	{"foob", "Zm9vYg==", "Zm9vYg"},
	{"\xff\xef\xbe", "/+++", "_---"},
};

static void both_alphabets_go_there_and_back(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		AUTO_BUF a = BUF_INIT(100);
		AUTO_BUF b = BUF_INIT(100);
		AUTO_BUF back = BUF_INIT(100);

		base64_add(&a, pairs[i].plain, strlen(pairs[i].plain));
		base64url_add(&b, pairs[i].plain, strlen(pairs[i].plain));
		assert_string_equal(a.p, pairs[i].standard);
		assert_string_equal(b.p, pairs[i].for_urls);
		assert_int_equal(base64_decode(&back, a.p, a.len, &e), 0);
		assert_int_equal(base64_decode(&back, b.p, b.len, &e), 0);
		assert_int_equal(back.len, 2 * strlen(pairs[i].plain));
	}
}

static void what_is_no_base64_is_refused(void **state)
{
	static const char *const bad[] = {"=",    "A",      "AAAAA", "A===", "AA=A",
					  "AA A", "AA\nAA", "A*AA",  "AAAA="};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		AUTO_BUF b = BUF_INIT(100);
		struct err e = ERR_INIT;

		if (base64_decode(&b, bad[i], strlen(bad[i]), &e) == 0)
			fail_msg("%s was taken", bad[i]);
		assert_int_equal(e.kind, ERR_INVALID);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_alphabets_go_there_and_back),
		cmocka_unit_test(what_is_no_base64_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
