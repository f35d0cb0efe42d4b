/* SPDX-License-Identifier: MIT */
#include "fake.h"

#include "mcp/jsonrpc.h"

struct envelope {
	const char *text;
	int rc;
	enum rpc_kind kind;
	bool has_id;
};

static const struct envelope envelopes[] = {
	{"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\"}", 0, RPC_IS_REQUEST, true},
	{"{\"jsonrpc\":\"2.0\",\"id\":-7,\"method\":\"x\",\"params\":{}}", 0,
	 RPC_IS_REQUEST, true},
	{"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"x\"}", 0, RPC_IS_REQUEST, true},
	{"{\"jsonrpc\":\"2.0\",\"method\":\"x\"}", 0, RPC_IS_NOTIFICATION, false},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", 0, RPC_IS_RESPONSE, false},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}", 0, RPC_IS_RESPONSE, false},
	{"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"x\"}", -1, 0, false},
	{"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"x\"}", -1, 0, false},
	{"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"x\"}", -1, 0, false},
	{"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"x\"}", -1, 0, false},
	{"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"x\"}", -1, 0, true},
	{"{\"jsonrpc\":2.0,\"id\":1,\"method\":\"x\"}", -1, 0, true},
	{"{\"id\":1,\"method\":\"x\"}", -1, 0, true},
	{"{\"jsonrpc\":\"2.0\",\"id\":1}", -1, 0, true},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", -1, 0, true},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":[]}", -1, 0, true},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":null}", -1, 0, true},
	{"[]", -1, 0, false},
	{"\"x\"", -1, 0, false},
	{"1", -1, 0, false},
	{"null", -1, 0, false},
};

static void envelopes_are_sorted(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(envelopes) / sizeof(envelopes[0]); i++) {
		const struct envelope *t = &envelopes[i];
		AUTO_JSON *m = parsed(t->text, strlen(t->text));
		struct err e = ERR_INIT;
		struct rpc_msg msg;
		int rc = rpc_classify(m, &msg, &e);

		if (rc != t->rc || (rc == 0 && msg.kind != t->kind) ||
		    (msg.id != NULL) != t->has_id || (rc < 0 && e.kind != ERR_INVALID))
			fail_msg("%s", t->text);
	}
}

static void strings_are_escaped_and_repaired(void **state)
{
	static const char in[] = "a\"\\\n\t\x01\x7f\xc3\xa9\xff\0z";
	AUTO_BUF b = BUF_INIT(1000);
	AUTO_JSON *v = NULL;

	(void)state;
	rpc_add_string(&b, in, sizeof(in) - 1);
	assert_string_equal(b.p,
			    "\"a\\\"\\\\\\n\\t\\u0001\x7f\xc3\xa9\xef\xbf\xbd\\u0000z\"");
	v = rpc_text(in, sizeof(in) - 1);
	assert_int_equal(json_string_length(v), sizeof(in) - 1 + 2);
}

static void what_is_escaped_reads_back_the_same(void **state)
{
	char all[256 - 1];
	AUTO_BUF b = BUF_INIT(10000);
	AUTO_JSON *v = NULL;
	size_t i, n = 0;

	(void)state;
	for (i = 1; i < 0x80; i++)
		all[n++] = (char)i;
	rpc_add_string(&b, all, n);
	v = parsed(b.p, b.len);
	assert_int_equal(json_string_length(v), n);
	assert_memory_equal(json_string_value(v), all, n);
}

static void an_error_without_an_id_omits_it_or_says_null(void **state)
{
	const struct rpc_error x = {.code = RPC_PARSE, .message = "x"};
	AUTO_BUF b = BUF_INIT(1000);

	(void)state;
	rpc_add_error(&b, NULL, RPC_OMIT_ID, &x);
	assert_string_equal(
		b.p,
		"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"x\"}}");
	buf_release(&b);
	rpc_add_error(&b, NULL, RPC_NULL_ID, &x);
	assert_non_null(strstr(b.p, "\"id\":null"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(envelopes_are_sorted),
		cmocka_unit_test(strings_are_escaped_and_repaired),
		cmocka_unit_test(what_is_escaped_reads_back_the_same),
		cmocka_unit_test(an_error_without_an_id_omits_it_or_says_null),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
