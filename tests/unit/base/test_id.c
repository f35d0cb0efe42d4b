/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/id.h"
#include "base/sha256.h"

static void new_ids_have_their_form_and_differ(void **state)
{
	char a[ID_RUN_LEN + 1], b[ID_RUN_LEN + 1], s[ID_HEX_LEN + 1];

	(void)state;
	id_new_run(a);
	id_new_run(b);
	id_new_session(s);
	assert_true(id_is_run(a) && id_is_run(b));
	assert_true(id_is_hex(s, ID_HEX_LEN));
	assert_string_not_equal(a, b);
}

static void only_the_exact_form_is_an_id(void **state)
{
	static const char *const bad[] = {
		"",
		"run_",
		"run_0123456789abcdef0123456789abcde",
		"run_0123456789abcdef0123456789abcdef0",
		"run_0123456789ABCDEF0123456789abcdef",
		"RUN_0123456789abcdef0123456789abcdef",
		"run_0123456789abcdef0123456789abcd/.",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(id_is_run(bad[i]));
	assert_true(id_is_run("run_0123456789abcdef0123456789abcdef"));
}

static void bytes_come_back_from_their_digits(void **state)
{
	const uint8_t in[] = {0x00, 0x0f, 0xf0, 0x9a, 0xff};
	uint8_t out[sizeof in];
	char hex[2 * sizeof in + 1];

	(void)state;
	id_hex_encode(in, sizeof in, hex);
	assert_string_equal(hex, "000ff09aff");
	id_hex_decode(hex, sizeof in, out);
	assert_memory_equal(in, out, sizeof in);
}

static void sha256_is_the_published_one(void **state)
{
	char out[SHA256_HEX_LEN + 1];

	(void)state; /* FIPS 180-2, B.1 */
	sha256_hex("abc", 3, out);
	assert_string_equal(out, "ba7816bf8f01cfea414140de5dae2223"
				 "b00361a396177a9cb410ff61f20015ad");
	sha256_hex("", 0, out);
	assert_string_equal(out, "e3b0c44298fc1c149afbf4c8996fb924"
				 "27ae41e4649b934ca495991b7852b855");
}

/* RFC 4231, cases 2 and 6: a short key, and one longer than a block. */
static void the_hmac_is_the_published_one(void **state)
{
	static const char want[] = "what do ya want for nothing?";
	static const char large[] =
		"Test Using Larger Than Block-Size Key - Hash Key First";
	char out[SHA256_HEX_LEN + 1], key[131];

	(void)state;
	sha256_hmac_hex("Jefe", 4, want, strlen(want), out);
	assert_string_equal(out, "5bdcc146bf60754e6a042426089575c7"
				 "5a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof(key));
	sha256_hmac_hex(key, sizeof(key), large, strlen(large), out);
	assert_string_equal(out, "60e431591ee0b67f0d8a26aacbf5b77f"
				 "8e0bc6213728c5140546040f0ee37f54");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_ids_have_their_form_and_differ),
		cmocka_unit_test(only_the_exact_form_is_an_id),
		cmocka_unit_test(bytes_come_back_from_their_digits),
		cmocka_unit_test(sha256_is_the_published_one),
		cmocka_unit_test(the_hmac_is_the_published_one),
	};
	return cmocka_run_group_tests_name("id", tests, NULL, NULL);
}
