/* SPDX-License-Identifier: MIT */
#include "fake.h"

#include "base/buf.h"
#include "base/mem.h"

/* Requests that are answered at once, and DELETE; tools are in test_tools.c. */
#define REQ(id, method, params)                                                          \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method                        \
	"\",\"params\":" params "}"
#define PING(id)        "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"ping\"}"
#define NOTE            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"
#define BAD_NOTE        "{\"jsonrpc\":\"2.0\",\"method\":\"note\",\"params\":[1]}"
#define ERROR(id, code) "{\"jsonrpc\":\"2.0\"" id ",\"error\":{\"code\":" code ","

struct exchange {
	const char *session;
	const char *body;
	int status;
	const char *reply; /* how it begins */
};

static const struct exchange exchanges[] = {
	{SESSION_NEW, PING("1"), 200, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"},
	{SESSION_NEW, PING("0"), 200, "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}"},
	{SESSION_NEW, PING("\"a\\\"b\""), 200,
	 "{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"b\",\"result\":{}}"},
	{SESSION_NEW, PING("9223372036854775807"), 200,
	 "{\"jsonrpc\":\"2.0\",\"id\":9223372036854775807,\"result\":{}}"},
	{SESSION_NEW, NOTE, 202, ""},
	{SESSION_NEW, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/none-such\"}", 202,
	 ""},
	{SESSION_NEW, "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}", 202, ""},
	{SESSION_NEW, "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}", 202, ""},
	/* who asks */
	{NULL, PING("1"), 400, ERROR(",\"id\":1", "-32000")},
	{NULL, NOTE, 400, ERROR("", "-32000")},
	{SESSION_NEW, BAD_NOTE, 400, ERROR("", "-32600")},
	{"", PING("1"), 404, ERROR(",\"id\":1", "-32001")},
	{"zz", PING("1"), 404, ERROR(",\"id\":1", "-32001")},
	{"../../etc/passwd", PING("1"), 404, ERROR(",\"id\":1", "-32001")},
	{"44444444444444444444444444444444", PING("7"), 404,
	 ERROR(",\"id\":7", "-32001")},
	{"44444444444444444444444444444444", NOTE, 404, ERROR("", "-32001")},
	{SESSION_BAD, PING("1"), 503, ERROR(",\"id\":1", "-32603")},
	/* what is no message */
	{SESSION_NEW, "", 400, ERROR("", "-32700")},
	{SESSION_NEW, "{", 400, ERROR("", "-32700")},
	{SESSION_NEW, PING("1") "x", 400, ERROR("", "-32700")},
	{SESSION_NEW, PING("1") PING("2"), 400, ERROR("", "-32700")},
	{SESSION_NEW, "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}", 400,
	 ERROR("", "-32700")},
	{SESSION_NEW, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\\u0000\"}", 400,
	 ERROR("", "-32700")},
	{SESSION_NEW, PING("99999999999999999999"), 400, ERROR("", "-32700")},
	{SESSION_NEW, "\xff", 400, ERROR("", "-32700")},
	{SESSION_NEW, PING("null"), 400, ERROR("", "-32600")},
	{SESSION_NEW, PING("1.5"), 400, ERROR("", "-32600")},
	{SESSION_NEW, "1", 400, ERROR("", "-32600")},
	{SESSION_NEW, REQ("3", "ping", "[]"), 400, ERROR(",\"id\":3", "-32600")},
	{SESSION_MID, PING("null"), 400, ERROR(",\"id\":null", "-32600")},
	/* methods */
	{SESSION_NEW, REQ("1", "nope", "{}"), 200, ERROR(",\"id\":1", "-32601")},
	{SESSION_NEW, REQ("1", "Ping", "{}"), 200, ERROR(",\"id\":1", "-32601")},
	{SESSION_NEW, REQ("1", "prompts/list", "{}"), 200, ERROR(",\"id\":1", "-32601")},
	{SESSION_NEW, REQ("1", "tools/list", "{\"cursor\":\"x\"}"), 200,
	 ERROR(",\"id\":1", "-32602")},
	{SESSION_NEW, REQ("1", "tools/list", "{\"cursor\":5}"), 200,
	 ERROR(",\"id\":1", "-32602")},
	{SESSION_NEW, REQ("1", "tools/list", "{\"cursor\":\"\"}"), 200,
	 "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":["},
	{SESSION_NEW, REQ("1", "tools/call", "{}"), 200, ERROR(",\"id\":1", "-32602")},
	{SESSION_NEW, REQ("1", "tools/call", "{\"name\":1}"), 200,
	 ERROR(",\"id\":1", "-32602")},
	{SESSION_NEW, REQ("1", "tools/call", "{\"name\":\"rm\"}"), 200,
	 ERROR(",\"id\":1", "-32602")},
	{SESSION_NEW,
	 REQ("1", "tools/call", "{\"name\":\"run_sandbox\",\"arguments\":3}"), 200,
	 ERROR(",\"id\":1", "-32602")},
	{NULL, REQ("1", "initialize", "{}"), 200, ERROR(",\"id\":1", "-32602")},
	/* batches */
	{SESSION_NEW, "[" PING("1") "]", 400, ERROR("", "-32600")},
	{SESSION_MID, "[]", 400, ERROR(",\"id\":null", "-32600")},
	{SESSION_MID, "[" PING("1") "," NOTE "," PING("\"b\"") "]", 200,
	 "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},"
	 "{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"result\":{}}]"},
	{SESSION_MID, "[" NOTE "," NOTE "]", 202, ""},
	{SESSION_MID, "[" PING("1") "," BAD_NOTE "]", 200,
	 "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]"},
	{SESSION_MID, "[" PING("1") ",3]", 200,
	 "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},"
	 "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600"},
	{SESSION_MID,
	 "[" REQ("1", "initialize", "{\"protocolVersion\":\"2025-03-26\"}") "]", 200,
	 "[" ERROR(",\"id\":1", "-32600")},
	{NULL, "[" PING("1") "]", 400, ERROR("", "-32000")},
};

static const struct {
	struct exchange x;
	const char *version, *type;
} headed[] = {
	{{SESSION_NEW, PING("1"), 200, "{"}, "2025-06-18", "application/json"},
	{{SESSION_NEW, PING("1"), 200, "{"}, NULL, "Application/JSON; charset=utf-8"},
	{{SESSION_NEW, PING("1"), 200, "{"}, NULL, "application/json ;charset=utf-8"},
	{{SESSION_NEW, PING("1"), 200, "{"}, NULL, NULL},
	{{SESSION_NEW, PING("1"), 415, ERROR("", "-32000")}, NULL, "application/jsonx"},
	{{SESSION_NEW, PING("1"), 415, ERROR("", "-32000")}, NULL, "application/json-p"},
	{{SESSION_NEW, PING("1"), 415, ERROR("", "-32000")}, NULL, "application/json x"},
	/* a version of no handshake: what the modern era answers */
	{{SESSION_NEW, PING("1"), 400, ERROR(",\"id\":1", "-32602")}, "2026-07-28", NULL},
	{{SESSION_NEW, PING("1"), 400, ERROR(",\"id\":1", "-32022")}, "nonsense", NULL},
	{{SESSION_NEW, PING("1"), 400, ERROR(",\"id\":1", "-32022")}, "", NULL},
	{{SESSION_NEW, PING("1"), 415, ERROR("", "-32000")}, NULL, "text/plain"},
};

/* On standard output there is no status: a message is all that can be said. */
static const struct exchange lines[] = {
	{NULL, NOTE, 202, ""},
	{NULL, BAD_NOTE, 202, ""},
	{NULL, "{\"jsonrpc\":\"1.0\",\"method\":\"note\"}", 202, ""},
	{NULL, "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}", 202, ""},
	{NULL, "[" NOTE "," NOTE "]", 202, ""},
	{NULL,
	 "{\"jsonrpc\":\"2.0\",\"method\":\"note\",\"params\":{\"_meta\":{"
	 "\"io.modelcontextprotocol/protocolVersion\":\"1999-01-01\"}}}",
	 202, ""},
	{SESSION_NEW, BAD_NOTE, 202, ""},
	{SESSION_BAD, NOTE, 202, ""},
	{NULL, PING("1"), 400, ERROR(",\"id\":1", "-32000")},
	{NULL, "[" NOTE "," PING("1") "]", 400, ERROR("", "-32000")},
	{NULL, "{\"jsonrpc\":\"2.0\",\"method\":7}", 400, ERROR("", "-32000")},
	{SESSION_NEW, PING("null"), 400, ERROR("", "-32600")},
	{SESSION_NEW, "{}", 400, ERROR("", "-32600")},
	{SESSION_NEW, "[]", 400, ERROR("", "-32600")},
	{SESSION_NEW, "{", 400, ERROR("", "-32700")},
};

static void check(struct mcp_server *s, struct mcp_reads *r, const struct exchange *x,
		  const struct mcp_http *in)
{
	struct mcp_call *c = NULL;
	struct mcp_reply reply;

	assert_int_equal(mcp_post(s, r, in, &c), MCP_REPLY);
	reply = mcp_call_reply(c);
	if (reply.status != x->status ||
	    strncmp(reply.body, x->reply, strlen(x->reply)) != 0 ||
	    (x->reply[0] == '\0') != (reply.body_len == 0))
		fail_msg("%s\ngave %d %s", x->body, reply.status, reply.body);
	if (reply.body_len > 0)
		json_decref(reply_json(c));
	mcp_call_free(c);
}

static void nobody_answers_a_notification_on_standard_output(void **state)
{
	struct mcp_server *s = fake_server();
	struct fake_store f = {0};
	struct mcp_reads r = fake_reads(&f);

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct mcp_http in = fake_http(lines[i].session, lines[i].body);

		in.is_stdio = true;
		check(s, &r, &lines[i], &in);
	}
	mcp_server_free(s);
}

static void requests_get_their_replies(void **state)
{
	struct mcp_server *s = fake_server();
	struct fake_store f = {0};
	struct mcp_reads r = fake_reads(&f);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(exchanges) / sizeof(exchanges[0]); i++) {
		struct mcp_http in = fake_http(exchanges[i].session, exchanges[i].body);

		check(s, &r, &exchanges[i], &in);
	}
	for (i = 0; i < sizeof(headed) / sizeof(headed[0]); i++) {
		struct mcp_http in = fake_http(headed[i].x.session, headed[i].x.body);

		in.protocol_version = headed[i].version;
		in.content_type = headed[i].type;
		check(s, &r, &headed[i].x, &in);
	}
	mcp_server_free(s);
}

static void nesting_has_a_limit(void **state)
{
	static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\","
				   "\"params\":{\"a\":";
	struct mcp_server *s = fake_server();
	struct fake_store f = {0};
	struct mcp_reads r = fake_reads(&f);
	size_t depth;

	(void)state;
	for (depth = 61; depth <= 63; depth++) { /* and two around it */
		AUTO_BUF b = BUF_INIT(1000);
		struct mcp_call *c = NULL;
		struct mcp_http in;
		size_t i;

		buf_puts(&b, head);
		for (i = 0; i < depth; i++)
			buf_puts(&b, "[");
		for (i = 0; i < depth; i++)
			buf_puts(&b, "]");
		buf_puts(&b, "}}");
		in = fake_http(SESSION_NEW, b.p);
		assert_int_equal(mcp_post(s, &r, &in, &c), MCP_REPLY);
		assert_int_equal(mcp_call_reply(c).status, depth + 2 > 64 ? 400 : 200);
		mcp_call_free(c);
	}
	mcp_server_free(s);
}

/* It is repeated in many places. */
static void an_id_has_a_limit(void **state)
{
	struct mcp_server *s = fake_server();
	struct fake_store f = {0};
	struct mcp_reads r = fake_reads(&f);

	(void)state;
	for (int over = 0; over <= 1; over++) {
		AUTO_FREE char *body = xasprintf(
			"{\"jsonrpc\":\"2.0\",\"id\":\"%0*d\",\"method\":\"ping\"}",
			4096 + over, 7);
		const struct exchange x = {SESSION_NEW, body, over ? 400 : 200,
					   over ? ERROR("", "-32600") : "{"};
		struct mcp_http in = fake_http(SESSION_NEW, body);

		check(s, &r, &x, &in);
	}
	mcp_server_free(s);
}

/* Two bytes of text each, and a hundred times that in memory. */
static void a_body_of_very_many_values_is_refused_unparsed(void **state)
{
	struct mcp_server *s = fake_server();
	struct fake_store f = {0};
	struct mcp_reads r = fake_reads(&f);
	static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\","
				   "\"params\":{\"a\":[",
			  tail[] = "]}}";

	(void)state;
	for (int over = 0; over <= 1; over++) {
		AUTO_BUF b = BUF_INIT(SIZE_MAX);
		struct mcp_call *c = NULL;

		buf_puts(&b, head);
		/* n of them are 2 n + 6 brackets and commas */
		for (int i = 0; i < (MCP_VALUES_MAX - 6) / 2 + over; i++)
			buf_puts(&b, i ? ",[]" : "[]");
		buf_puts(&b, tail);
		struct mcp_http in = fake_http(SESSION_NEW, b.p);
		assert_int_equal(mcp_post(s, &r, &in, &c), MCP_REPLY);
		assert_int_equal(mcp_call_reply(c).status, over ? 413 : 200);
		mcp_call_free(c);
	}
	mcp_server_free(s);
}

static void what_the_store_says_stays_inside(void **state)
{
	struct mcp_server *s = fake_server();
	struct fake_store f = {0};
	struct mcp_reads r = fake_reads(&f);
	struct mcp_http in = fake_http(SESSION_BAD, PING("1"));
	struct mcp_call *c = NULL;

	(void)state;
	mcp_post(s, &r, &in, &c);
	assert_null(strstr(mcp_call_reply(c).body, "secret"));
	assert_true(mcp_call_reply(c).retry_after_s > 0);
	mcp_call_free(c);
	mcp_server_free(s);
}

struct negotiation {
	const char *wanted, *got;
};

static void initialize(struct mcp_server *s, struct mcp_reads *r, const char *session,
		       const struct negotiation *n)
{
	char body[512];
	struct mcp_http in;
	struct mcp_call *c = NULL;
	AUTO_JSON *reply = NULL;
	const json_t *m, *result;
	char id[64];

	snprintf(body, sizeof(body),
		 REQ("1", "initialize",
		     "{\"protocolVersion\":\"%s\",\"capabilities\":{},"
		     "\"clientInfo\":{\"name\":\"t\",\"version\":\"9\"}}"),
		 n->wanted);
	in = fake_http(session, body);
	in.protocol_version = n->wanted; /* some clients send it here already */
	assert_int_equal(mcp_post(s, r, &in, &c), MCP_SEND);
	assert_int_equal(mcp_call_message(c).type, MSG_SESSION_OPEN);
	m = mcp_call_message(c).body;
	assert_string_equal(str_at(m, "tenant"), "default");
	assert_string_equal(str_at(m, "protocol_version"), n->got);
	assert_string_equal(str_at(m, "client_name"), "t");
	assert_string_equal(str_at(m, "client_version"), "9");
	snprintf(id, sizeof(id), "%s", str_at(m, "session_id"));
	assert_int_equal(strlen(id), 32);
	assert_string_not_equal(id, SESSION_NEW);

	assert_int_equal(answer(c, r, MSG_OK, json_object()), MCP_REPLY);
	assert_int_equal(mcp_call_reply(c).status, 200);
	assert_string_equal(mcp_call_reply(c).session_id, id);
	reply = reply_json(c);
	result = at(reply, "result");
	assert_string_equal(str_at(result, "protocolVersion"), n->got);
	assert_int_equal(json_object_get(at(result, "capabilities"), "tasks") != NULL,
			 strcmp(n->got, "2025-11-25") == 0);
	assert_null(json_object_get(at(result, "capabilities"), "extensions"));
	assert_int_equal(json_object_size(at(at(result, "capabilities"), "tools")), 0);
	assert_string_equal(str_at(at(result, "serverInfo"), "name"), "mcp-sandboxd");
	assert_true(strlen(str_at(at(result, "serverInfo"), "version")) > 0);
	assert_true(strlen(str_at(at(result, "serverInfo"), "title")) > 0);
	assert_true(strlen(str_at(result, "instructions")) > 0);
	mcp_call_free(c);

	/* The new session serves without a look into the store. */
	in = fake_http(id, PING("2"));
	assert_int_equal(mcp_post(s, r, &in, &c), MCP_REPLY);
	assert_int_equal(mcp_call_reply(c).status, 200);
	mcp_call_free(c);
}

static void initialize_negotiates_and_opens_a_session(void **state)
{
	static const struct negotiation all[] = {
		{"2025-11-25", "2025-11-25"}, {"2025-06-18", "2025-06-18"},
		{"2025-03-26", "2025-03-26"}, {"2024-11-05", "2024-11-05"},
		{"2026-07-28", "2025-11-25"}, {"2024-10-07", "2025-11-25"},
		{"", "2025-11-25"},
	};
	struct mcp_server *s = fake_server();
	struct fake_store f = {0};
	struct mcp_reads r = fake_reads(&f);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		initialize(s, &r, NULL, &all[i]);
	assert_int_equal(f.session_reads, 0);
	/* A client that lost its session sends the dead id along. */
	initialize(s, &r, SESSION_NEW, &all[0]);
	initialize(s, &r, "44444444444444444444444444444444", &all[0]);
	mcp_server_free(s);
}

static void a_refused_initialize_says_when_to_come_again(void **state)
{
	struct mcp_server *s = fake_server();
	struct fake_store f = {0};
	struct mcp_reads r = fake_reads(&f);
	struct mcp_http in = fake_http(
		NULL, REQ("1", "initialize", "{\"protocolVersion\":\"2025-11-25\"}"));
	struct err busy = ERR_INIT;
	struct mcp_call *c = NULL;

	(void)state;
	assert_int_equal(mcp_post(s, &r, &in, &c), MCP_SEND);
	err_set(&busy, ERR_BUSY, "the runner does not keep up");
	assert_int_equal(mcp_call_fail(c, &r, &busy), MCP_REPLY);
	assert_int_equal(mcp_call_reply(c).status, 503);
	assert_true(mcp_call_reply(c).retry_after_s > 0);
	assert_null(mcp_call_reply(c).session_id);
	assert_non_null(strstr(mcp_call_reply(c).body, "does not keep up"));
	mcp_call_free(c);
	mcp_server_free(s);
}

static void a_client_without_manners_may_name_itself_anything(void **state)
{
	struct mcp_server *s = fake_server();
	struct fake_store f = {0};
	struct mcp_reads r = fake_reads(&f);
	char name[1000];
	char body[2000];
	struct mcp_http in;
	struct mcp_call *c = NULL;

	(void)state;
	memset(name, 'n', sizeof(name) - 3);
	snprintf(name + 199, sizeof(name) - 199, "\xc3\xa9rest");
	snprintf(body, sizeof(body),
		 REQ("1", "initialize",
		     "{\"protocolVersion\":\"2025-11-25\","
		     "\"clientInfo\":{\"name\":\"%s\",\"version\":7}}"),
		 name);
	in = fake_http(NULL, body);
	assert_int_equal(mcp_post(s, &r, &in, &c), MCP_SEND);
	/* Cut within a character, so the rest of it shows as U+FFFD. */
	assert_int_equal(strlen(str_at(mcp_call_message(c).body, "client_name")), 202);
	assert_string_equal(str_at(mcp_call_message(c).body, "client_version"), "");
	mcp_call_free(c); /* the client left */
	mcp_server_free(s);
}

static void delete_ends_the_session(void **state)
{
	struct mcp_server *s = fake_server();
	struct fake_store f = {0};
	struct mcp_reads r = fake_reads(&f);
	struct mcp_http in = fake_http(SESSION_NEW, "");
	struct mcp_call *c = NULL;

	(void)state;
	assert_int_equal(mcp_delete(s, &r, &in, &c), MCP_SEND);
	assert_int_equal(mcp_call_message(c).type, MSG_SESSION_CLOSE);
	assert_string_equal(str_at(mcp_call_message(c).body, "session_id"), SESSION_NEW);
	assert_int_equal(answer(c, &r, MSG_OK, json_pack("{s:b}", "closed", 1)),
			 MCP_SEND);
	/* Its stream, if there is one, ends wherever it is. */
	assert_int_equal(mcp_call_message(c).type, MSG_RELAY);
	assert_string_equal(str_at(mcp_call_message(c).body, "kind"), "closed");
	assert_int_equal(answer(c, &r, MSG_OK, json_object()), MCP_REPLY);
	assert_int_equal(mcp_call_reply(c).status, 204);
	assert_int_equal(mcp_call_reply(c).body_len, 0);
	mcp_call_free(c);

	f.closed = true; /* as the store is now; nothing may be cached */
	assert_int_equal(mcp_delete(s, &r, &in, &c), MCP_REPLY);
	assert_int_equal(mcp_call_reply(c).status, 404);
	mcp_call_free(c);
	in = fake_http(NULL, "");
	assert_int_equal(mcp_delete(s, &r, &in, &c), MCP_REPLY);
	assert_int_equal(mcp_call_reply(c).status, 400);
	mcp_call_free(c);
	mcp_server_free(s);
}

static void urls_are_based_on_what_is_known(void **state)
{
	static char public_url[] = "https://mcp.example/";
	struct conf conf = fake_conf();
	struct mcp_server *s = fake_server();
	struct err e = ERR_INIT;
	char url[64];

	(void)state;
	mcp_base_url(s, "https", "a.b:1", url, sizeof(url));
	assert_string_equal(url, "https://a.b:1");
	mcp_base_url(s, "ftp", "[::1]:8080", url, sizeof(url));
	assert_string_equal(url, "http://[::1]:8080");
	mcp_base_url(s, "http", "a\"><script>", url, sizeof(url));
	assert_string_equal(url, "");
	mcp_base_url(s, NULL, NULL, url, sizeof(url));
	assert_string_equal(url, "");
	mcp_base_url(s, "http", "a.b", url, 8);
	assert_string_equal(url, "");
	mcp_server_free(s);
	conf.public_url = public_url;
	assert_int_equal(mcp_server_new(&conf, &s, &e), 0);
	mcp_base_url(s, "http", "a.b:1", url, sizeof(url));
	assert_string_equal(url, "https://mcp.example");
	mcp_server_free(s);
}

static void a_fault_before_mcp_is_a_json_rpc_error_too(void **state)
{
	char *body = mcp_error_body(-32000, "too \"large\"");

	(void)state;
	assert_string_equal(body,
			    ERROR("", "-32000") "\"message\":\"too \\\"large\\\"\"}}");
	free(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_get_their_replies),
		cmocka_unit_test(nobody_answers_a_notification_on_standard_output),
		cmocka_unit_test(nesting_has_a_limit),
		cmocka_unit_test(an_id_has_a_limit),
		cmocka_unit_test(a_body_of_very_many_values_is_refused_unparsed),
		cmocka_unit_test(what_the_store_says_stays_inside),
		cmocka_unit_test(initialize_negotiates_and_opens_a_session),
		cmocka_unit_test(a_refused_initialize_says_when_to_come_again),
		cmocka_unit_test(a_client_without_manners_may_name_itself_anything),
		cmocka_unit_test(delete_ends_the_session),
		cmocka_unit_test(urls_are_based_on_what_is_known),
		cmocka_unit_test(a_fault_before_mcp_is_a_json_rpc_error_too),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
