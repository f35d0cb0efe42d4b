/* SPDX-License-Identifier: MIT */
#include "fixture.h"

static struct fixture f;
static const char box[] = "mcp-sbx-none-00000001";

static void a_sandbox_without_network_has_loopback_only(void **state)
{
	static const char text[] =
		"tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' \\n'; wc -l "
		"</proc/net/route; "
		"python3 - <<'EOF'\n"
		"import socket\n"
		"s = socket.create_server(('127.0.0.1', 8081))\n"
		"print(socket.create_connection(('127.0.0.1', 8081)).getpeername()[1])\n"
		"print(socket.socket().connect_ex(('203.0.113.9', 80)))\n"
		"EOF";
	struct sandbox_info i = {0};
	AUTO_FREE char *gateway = NULL;
	AUTO_FREE char *out = NULL;

	(void)state;
	fixture_init(&f, "none");
	gateway = xasprintf("%s/gateway", f.conf.run_dir);
	fixture_create(&f, box, true, &i);
	sandbox_info_release(&i);
	out = fixture_sh(&f, box, text);
	assert_string_equal(out, "lo1\n8081\n101\n[0]"); /* 101: ENETUNREACH */
	assert_false(io_exists(gateway));
	fixture_remove(&f, box);
	fixture_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sandbox_without_network_has_loopback_only),
	};

	if (!fixture_can())
		return 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
