/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "edge/origin.h"

static struct conf conf_of(const char *hosts, const char *origins, const char *url)
{
	return (struct conf){.allowed_hosts = (char *)hosts,
			     .cors_allow_origins = (char *)origins,
			     .public_url = (char *)url};
}

static void loopback_names_and_listed_hosts_pass(void **state)
{
	static const struct {
		const char *host;
		bool passes;
	} cases[] = {
		{"localhost", true},
		{"LocalHost:80", true},
		{"127.0.0.1:8080", true},
		{"127.9.9.9", true},
		{"[::1]", true},
		{"[::1]:1", true},
		{"a.example", true},
		{"A.EXAMPLE:443", true},
		{"pub.example", true},
		{"b.example", false},
		{"localhost.b.example", false},
		{"127.0.0.1.b.example", false},
		{"", false},
		{":80", false},
		{"[::1", false},
		{"[::1]x", false},
		{"a.example/", false},
		{"a.example\r\n", false},
		{"[::2]", false},
		{"0.0.0.0", false},
	};
	struct conf c = conf_of("x.example, a.example", "", "https://pub.example/base");

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (host_is_allowed(&c, cases[i].host) != cases[i].passes)
			fail_msg("%s", cases[i].host);
	assert_true(host_is_allowed(&c, NULL));
	c = conf_of("*", "", "");
	assert_true(host_is_allowed(&c, "b.example"));
}

static void an_origin_passes_by_its_host_or_by_the_list(void **state)
{
	struct conf c = conf_of("", "https://ui.example,null", "");

	(void)state;
	assert_true(origin_is_allowed(&c, NULL));
	assert_true(origin_is_allowed(&c, "http://localhost:3000"));
	assert_true(origin_is_allowed(&c, "https://ui.example"));
	assert_false(origin_is_allowed(&c, "http://ui.example"));
	assert_false(origin_is_allowed(&c, "https://ui.example.evil.example"));
	assert_false(origin_is_allowed(&c, "localhost"));
	assert_false(origin_is_allowed(&c, "http://"));
	assert_false(origin_is_allowed(&c, "http://localhost@evil.example"));
}

static void only_listed_origins_get_headers(void **state)
{
	struct conf c = conf_of("", "https://ui.example", "");
	AUTO_BUF b = BUF_INIT(1024);

	(void)state;
	cors_add_headers(&c, "http://localhost:3000", &b);
	assert_string_equal(b.p, "Vary: Origin\r\n");
	cors_add_headers(&c, "https://ui.example", &b);
	assert_non_null(
		strstr(b.p, "Access-Control-Allow-Origin: https://ui.example\r\n"));
	assert_non_null(strstr(b.p, "Mcp-Session-Id"));
}

static void a_header_never_repeats_a_line_end(void **state)
{
	struct conf c = conf_of("", "https://ui.example\r\nX: y", "");
	AUTO_BUF b = BUF_INIT(1024);

	(void)state;
	cors_add_headers(&c, "https://ui.example\r\nX: y", &b);
	assert_null(strstr(b.p, "X: y"));
}

static void a_preflight_grants_what_the_protocol_sends_and_no_more(void **state)
{
	static const char *const granted[] = {"Content-Type",  "Accept",
					      "Authorization", "Mcp-Session-Id",
					      "Last-Event-ID", "Mcp-Protocol-Version",
					      "Mcp-Method",    "Mcp-Name",
					      "mcp-param-a",   "Mcp-Param-B_c"};
	struct conf c = conf_of("", "https://ui.example", "");
	AUTO_BUF b = BUF_INIT(4096);

	(void)state;
	cors_add_preflight(
		&c, "https://ui.example",
		"content-type, mcp-param-a,Mcp-Param-B_c , x-other, mcp-param-,"
		" mcp-param-a b, mcp-param-a:b, mcp-param-\r\nX: y",
		&b);
	for (size_t i = 0; i < sizeof(granted) / sizeof(granted[0]); i++)
		assert_non_null(strstr(b.p, granted[i]));
	assert_null(strstr(b.p, "x-other"));
	assert_null(strstr(b.p, "X: y"));
	assert_null(strstr(b.p, "a b"));
	assert_null(strstr(b.p, "a:b"));
	buf_release(&b);
	cors_add_preflight(&c, "http://localhost", "mcp-param-a", &b);
	assert_int_equal(b.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loopback_names_and_listed_hosts_pass),
		cmocka_unit_test(an_origin_passes_by_its_host_or_by_the_list),
		cmocka_unit_test(only_listed_origins_get_headers),
		cmocka_unit_test(a_header_never_repeats_a_line_end),
		cmocka_unit_test(a_preflight_grants_what_the_protocol_sends_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
