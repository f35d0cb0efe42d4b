/* SPDX-License-Identifier: MIT */
#include "fake.h"

/* The modern era: what is asked of a request, and what every result carries. */
#define P    "io.modelcontextprotocol/"
#define CAPS "\"" P "clientCapabilities\":{}"
#define META "\"_meta\":{\"" P "protocolVersion\":\"2026-07-28\"," CAPS "}"
#define REQ(method, params)                                                              \
	"{\"jsonrpc\":\"2.0\",\"id\":\"m\",\"method\":\"" method                         \
	"\",\"params\":{" params "}}"
#define CALL(name) REQ("tools/call", META ",\"name\":\"" name "\",\"arguments\":{}")

static const struct {
	const char *body, *version, *method, *name;
	int status, code; /* code 0: a result */
} cases[] = {
	{REQ("server/discover", META), "2026-07-28", "server/discover", NULL, 200, 0},
	{REQ("tools/list", META), " 2026-07-28 ", "tools/list ", NULL, 200, 0},
	{REQ("tools/list", META), "2026-07-28", "tools/list", "unasked", 200, 0},
	/* _meta */
	{REQ("tools/list", ""), "2026-07-28", "tools/list", NULL, 400, -32602},
	{REQ("tools/list", "\"_meta\":{" CAPS "}"), "2026-07-28", "tools/list", NULL, 400,
	 -32602},
	{REQ("tools/list", "\"_meta\":{\"" P "protocolVersion\":\"2026-07-28\"}"),
	 "2026-07-28", "tools/list", NULL, 400, -32602},
	{REQ("tools/list", "\"_meta\":{\"" P "protocolVersion\":3," CAPS "}"),
	 "2026-07-28", "tools/list", NULL, 400, -32602},
	{REQ("tools/list", "\"_meta\":{\"" P "protocolVersion\":\"2026-07-28\",\"" P
			   "clientCapabilities\":[]}"),
	 "2026-07-28", "tools/list", NULL, 400, -32602},
	/* headers */
	{REQ("tools/list", META), NULL, "tools/list", NULL, 400, -32020},
	{REQ("tools/list", META), "2025-11-25", "tools/list", NULL, 400, -32020},
	{REQ("tools/list", META), "2026-07-28", NULL, NULL, 400, -32020},
	{REQ("tools/list", META), "2026-07-28", "tools/call", NULL, 400, -32020},
	{REQ("tools/list", META), "2026-07-28", "TOOLS/LIST", NULL, 400, -32020},
	{CALL("none"), "2026-07-28", "tools/call", NULL, 400, -32020},
	{CALL("none"), "2026-07-28", "tools/call", "run_sandbox", 400, -32020},
	{CALL("none"), "2026-07-28", "tools/call", "none", 200, -32602},
	{CALL("none"), "2026-07-28", "tools/call", "=?base64?bm9uZQ==?=", 200, -32602},
	{CALL("none"), "2026-07-28", "tools/call", "=?base64?bm9uZQ?=", 400, -32020},
	{CALL("none"), "2026-07-28", "tools/call", "=?base64?!!?=", 400, -32020},
	{CALL("none"), "2026-07-28", "tools/call", "=?base64?=", 400, -32020},
	{REQ("tools/call", META), "2026-07-28", "tools/call", "x", 200, -32602},
	/* versions */
	{REQ("tools/list",
	     "\"_meta\":{\"" P "protocolVersion\":\"2030-01-01\"," CAPS "}"),
	 "2030-01-01", "tools/list", NULL, 400, -32022},
	{REQ("tools/list",
	     "\"_meta\":{\"" P "protocolVersion\":\"2025-11-25\"," CAPS "}"),
	 "2025-11-25", "tools/list", NULL, 400, -32022},
	{REQ("tools/list", ""), "2030-01-01", "tools/list", NULL, 400, -32022},
	/* methods of the other era, and none */
	{REQ("initialize", META), "2026-07-28", "initialize", NULL, 404, -32601},
	{REQ("ping", META), "2026-07-28", "ping", NULL, 404, -32601},
	{REQ("tasks/list", META), "2026-07-28", "tasks/list", NULL, 404, -32601},
	{REQ("nope", META), "2026-07-28", "nope", NULL, 404, -32601},
	/* what needs a declaration */
	{REQ("tasks/get", META ",\"taskId\":\"x\""), "2026-07-28", "tasks/get", "x", 400,
	 -32021},
	{REQ("tasks/get", META ",\"taskId\":\"x\""), "2026-07-28", "tasks/get", "y", 400,
	 -32020},
	/* no batches, no answers from clients */
	{"[" REQ("tools/list", META) "]", "2026-07-28", "tools/list", NULL, 400, -32600},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", "2026-07-28", NULL, NULL, 400,
	 -32600},
};

static struct mcp_http http_of(size_t i)
{
	struct mcp_http in = fake_http(NULL, cases[i].body);

	in.protocol_version = cases[i].version;
	in.method = cases[i].method;
	in.name = cases[i].name;
	return in;
}

static void requests_are_held_to_their_headers(void **state)
{
	struct mcp_server *s = fake_server();
	struct fake_store f = {0};
	struct mcp_reads r = fake_reads(&f);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mcp_http in = http_of(i);
		struct mcp_call *c = NULL;
		AUTO_JSON *reply = NULL;
		const json_t *error;
		int code = 0;

		assert_int_equal(mcp_post(s, &r, &in, &c), MCP_REPLY);
		reply = reply_json(c);
		error = json_object_get(reply, "error");
		if (error)
			code = (int)json_integer_value(at(error, "code"));
		if (mcp_call_reply(c).status != cases[i].status || code != cases[i].code)
			fail_msg("%s\ngave %d %s", cases[i].body,
				 mcp_call_reply(c).status, mcp_call_reply(c).body);
		if (json_object_get(reply, "id"))
			assert_true(cases[i].body[0] == '{');
		assert_null(mcp_call_reply(c).session_id);
		mcp_call_free(c);
	}
	assert_int_equal(f.session_reads, 0);
	mcp_server_free(s);
}

static json_t *ask(struct mcp_server *s, const char *body, const char *method,
		   const char *name)
{
	struct fake_store f = {0};
	struct mcp_reads r = fake_reads(&f);
	struct mcp_http in = fake_http(SESSION_NEW, body);
	struct mcp_call *c = NULL;
	json_t *reply;

	in.protocol_version = "2026-07-28";
	in.method = method;
	in.name = name;
	assert_int_equal(mcp_post(s, &r, &in, &c), MCP_REPLY);
	assert_string_equal(mcp_call_session(c), "");
	reply = reply_json(c);
	mcp_call_free(c);
	return reply;
}

static void check_result(const json_t *result, bool cached)
{
	const json_t *info = at(at(result, "_meta"), P "serverInfo");

	assert_string_equal(str_at(result, "resultType"), "complete");
	assert_string_equal(str_at(info, "name"), "mcp-sandboxd");
	assert_int_equal(json_object_get(result, "ttlMs") != NULL, cached);
	assert_int_equal(json_object_get(result, "cacheScope") != NULL, cached);
}

static void every_result_says_its_kind_and_who_made_it(void **state)
{
	struct mcp_server *s = fake_server();
	AUTO_JSON *list = ask(s, REQ("tools/list", META), "tools/list", NULL);
	AUTO_JSON *bad = ask(s, CALL("run_sandbox"), "tools/call", "run_sandbox");
	const json_t *tool = json_array_get(at(at(list, "result"), "tools"), 0);

	(void)state;
	check_result(at(list, "result"), true);
	assert_null(json_object_get(tool, "execution")); /* gone in this version */
	check_result(at(bad, "result"), false);
	assert_true(json_is_true(at(at(bad, "result"), "isError")));
	mcp_server_free(s);
}

static void discover_tells_modern_versions_and_what_we_can(void **state)
{
	struct mcp_server *s = fake_server();
	AUTO_JSON *reply = ask(s, REQ("server/discover", META), "server/discover", NULL);
	const json_t *result = at(reply, "result");
	const json_t *versions = at(result, "supportedVersions");

	(void)state;
	check_result(result, true);
	assert_int_equal(json_array_size(versions), 1);
	assert_string_equal(json_string_value(json_array_get(versions, 0)), "2026-07-28");
	assert_non_null(json_object_get(at(result, "capabilities"), "tools"));
	at(at(at(result, "capabilities"), "extensions"), P "tasks");
	assert_true(strlen(str_at(result, "instructions")) > 0);
	mcp_server_free(s);
}

#define DELETE(id)                                                                       \
	REQ("tools/call", META ",\"name\":\"delete_sandbox\",\"arguments\":{" id "}")
#define SAYS(id) DELETE("\"identifier\":\"" id "\"")

static const struct {
	const char *body, *header;
	bool passes;
} mirrors[] = {
	{SAYS("Hello"), "Hello", true},
	{SAYS("Hello"), "=?base64?SGVsbG8=?=", true},
	{SAYS("Hello"), "=?base64?SGVsbG8?=", false},
	{SAYS("Hello"), "=?base64?SGVs!!!bG8=?=", false},
	{SAYS("SGVsbG8="), "SGVsbG8=", true},
	{SAYS("=?base64?SGVsbG8="), "=?base64?SGVsbG8=", true},
	{SAYS("Hello"), "hello", false},
	{SAYS("Hello"), NULL, false},
	{DELETE(""), "Hello", false},
	{DELETE(""), NULL, true},
};

static void an_identifier_is_repeated_where_that_is_wanted(void **state)
{
	struct conf conf = fake_conf();
	struct fake_store f = {0};
	struct mcp_reads r = fake_reads(&f);
	struct mcp_server *s = NULL;
	struct err e = ERR_INIT;
	AUTO_JSON *list = NULL;

	(void)state;
	conf.mirror_identifier = true;
	assert_int_equal(mcp_server_new(&conf, &s, &e), 0);
	for (size_t i = 0; i < sizeof(mirrors) / sizeof(mirrors[0]); i++) {
		struct mcp_http in = fake_http(NULL, mirrors[i].body);
		struct mcp_call *c;

		in.protocol_version = "2026-07-28";
		in.method = "tools/call";
		in.name = "delete_sandbox";
		in.identifier = mirrors[i].header;
		if ((mcp_post(s, &r, &in, &c) == MCP_SEND ||
		     mcp_call_reply(c).status == 200) != mirrors[i].passes)
			fail_msg("case %zu: %s", i, mcp_call_reply(c).body);
		if (!mirrors[i].passes)
			assert_non_null(strstr(mcp_call_reply(c).body, "-32020"));
		mcp_call_free(c);
	}
	list = ask(s, REQ("tools/list", META), "tools/list", NULL);
	const json_t *tool = json_array_get(at(at(list, "result"), "tools"), 0);
	const json_t *id = at(at(at(tool, "inputSchema"), "properties"), "identifier");
	assert_string_equal(str_at(id, "x-mcp-header"), "Identifier");
	mcp_server_free(s);
}

static void refusals_carry_what_would_help(void **state)
{
	struct mcp_server *s = fake_server();
	AUTO_JSON *caps =
		ask(s, REQ("tasks/get", META ",\"taskId\":\"x\""), "tasks/get", "x");
	const json_t *need = at(at(at(caps, "error"), "data"), "requiredCapabilities");

	(void)state;
	at(at(need, "extensions"), P "tasks");
	mcp_server_free(s);
}

static void the_body_decides_the_era_then_the_header(void **state)
{
	struct mcp_server *s = fake_server();
	struct fake_store f = {0};
	struct mcp_reads r = fake_reads(&f);
	struct mcp_http in = fake_http(
		SESSION_NEW, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	struct mcp_call *c = NULL;

	(void)state;
	in.protocol_version = "2025-11-25";
	in.method = "ping"; /* claude.ai sends it in the legacy era too */
	assert_int_equal(mcp_post(s, &r, &in, &c), MCP_REPLY);
	assert_int_equal(mcp_call_reply(c).status, 200);
	mcp_call_free(c);
	assert_int_equal(mcp_delete(s, &r, &in, &c), MCP_SEND);
	mcp_call_free(c);
	in.protocol_version = "2026-07-28";
	assert_int_equal(mcp_delete(s, &r, &in, &c), MCP_REPLY);
	assert_int_equal(mcp_call_reply(c).status, 405);
	mcp_call_free(c);
	mcp_server_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_held_to_their_headers),
		cmocka_unit_test(every_result_says_its_kind_and_who_made_it),
		cmocka_unit_test(discover_tells_modern_versions_and_what_we_can),
		cmocka_unit_test(an_identifier_is_repeated_where_that_is_wanted),
		cmocka_unit_test(refusals_carry_what_would_help),
		cmocka_unit_test(the_body_decides_the_era_then_the_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
