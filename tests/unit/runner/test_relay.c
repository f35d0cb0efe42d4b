/* SPDX-License-Identifier: MIT */
#include "rig.h"

/* What edges tell each other through the runner, and sessions that name themselves later.
 */

/* The next message that is no hello. */
static struct edgemsg next_message(struct rig *t)
{
	for (;;) {
		struct pollfd p = {.fd = t->pair[0], .events = POLLIN};
		struct edgemsg m = {0};
		struct err e = ERR_INIT;
		int eof = 0;

		assert_int_equal(1, poll(&p, 1, WAIT_MS));
		assert_int_equal(1, edgemsg_recv(t->pair[0], &m, &eof, &e));
		if (m.type != MSG_HELLO)
			return m;
		edgemsg_release(&m);
	}
}

static void a_message_goes_to_every_edge_the_sender_too(void **state)
{
	struct rig *t = *state;
	json_t *body = json_pack("{s:s, s:s, s:s}", "session_id",
				 "0123456789abcdef0123456789abcdef", "kind", "anything",
				 "text", "as it is");
	uint64_t id = rig_send(t, MSG_RELAY, json_incref(body));
	struct edgemsg relayed = next_message(t), ok = next_message(t);

	assert_int_equal(MSG_RELAYED, relayed.type);
	assert_true(json_equal(body, relayed.body));
	assert_int_equal(MSG_OK, ok.type);
	assert_true(ok.id == id);
	edgemsg_release(&relayed);
	edgemsg_release(&ok);
	json_decref(body);
}

static void one_that_names_no_session_is_refused(void **state)
{
	static const char *const bad[] = {"", "x", "../0123456789abcdef0123456789abc",
					  "0123456789ABCDEF0123456789abcdef"};
	struct rig *t = *state;
	enum edgemsg_type got;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t id =
			rig_send(t, MSG_RELAY, json_pack("{s:s}", "session_id", bad[i]));

		json_decref(rig_answer(t, id, &got));
		assert_int_equal(MSG_ERR, got);
	}
	json_decref(rig_answer(t, rig_send(t, MSG_RELAYED, json_object()), &got));
	assert_int_equal(MSG_ERR, got);
}

/* The pair outlives an edge: what a broken one sent must not close it to the next. */
static void an_empty_packet_does_not_end_the_pair(void **state)
{
	struct rig *t = *state;

	assert_int_equal(0, send(t->pair[0], "", 0, 0));
	json_decref(rig_ask(t, MSG_STATUS, json_object()));
}

static json_t *session(const char *version, const char *name)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "tenant", "default", "session_id",
			 "0123456789abcdef0123456789abcdef", "protocol_version", version,
			 "client_name", name, "client_version", "1");
}

static void a_session_takes_the_version_of_a_later_initialize(void **state)
{
	struct rig *t = *state;
	AUTO_STORE_SESSION row = {0};
	struct err e = ERR_INIT;

	json_decref(rig_ask(t, MSG_SESSION_OPEN, session("2024-11-05", "")));
	json_decref(rig_ask(t, MSG_SESSION_OPEN, session("2025-11-25", "editor")));
	assert_int_equal(0, store_read_session(t->reader, "default",
					       "0123456789abcdef0123456789abcdef", &row,
					       &e));
	assert_string_equal("2025-11-25", row.protocol_version);
	assert_string_equal("editor", row.client_name);
}

#define SESSION "0123456789abcdef0123456789abcdef"

static void what_a_session_wants_to_hear_is_kept_and_bounded(void **state)
{
	static const struct {
		enum edgemsg_type type;
		const char *session, *key, *value;
	} bad[] = {
		{MSG_SUBSCRIBE, "x", "uri", "sandbox://a"},
		{MSG_SUBSCRIBE, SESSION, "uri", ""},
		{MSG_SUBSCRIBE, "ffffffffffffffffffffffffffffffff", "uri", "sandbox://a"},
		{MSG_SESSION_LEVEL, SESSION, "level", ""},
		{MSG_SESSION_LEVEL, SESSION, "level", "a level that is far too long"},
		{MSG_SESSION_LEVEL, "ffffffffffffffffffffffffffffffff", "level", "info"},
	};
	struct rig *t = *state;
	AUTO_STORE_SESSION row = {0};
	AUTO_STORE_WORDS uris = {0};
	struct err e = ERR_INIT;
	enum edgemsg_type got;

	json_decref(rig_ask(t, MSG_SESSION_OPEN, session("2025-11-25", "editor")));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		json_t *body = json_pack("{s:s, s:s, s:s, s:b}", "tenant", "default",
					 "session_id", bad[i].session, bad[i].key,
					 bad[i].value, "on", 1);

		json_decref(rig_answer(t, rig_send(t, bad[i].type, body), &got));
		assert_int_equal(MSG_ERR, got);
	}
	json_decref(rig_ask(t, MSG_SESSION_LEVEL,
			    json_pack("{s:s, s:s, s:s}", "tenant", "default",
				      "session_id", SESSION, "level", "info")));
	for (int on = 1; on >= 0; on--) {
		json_decref(rig_ask(t, MSG_SUBSCRIBE,
				    json_pack("{s:s, s:s, s:s, s:b}", "tenant", "default",
					      "session_id", SESSION, "uri", "sandbox://a",
					      "on", on)));
		store_words_release(&uris);
		assert_int_equal(
			0, store_read_subscriptions(t->reader, SESSION, 10, &uris, &e));
		assert_int_equal(on, uris.n);
	}
	assert_int_equal(0, store_read_session(t->reader, "default", SESSION, &row, &e));
	assert_string_equal("info", row.log_level);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_message_goes_to_every_edge_the_sender_too),
		TEST(one_that_names_no_session_is_refused),
		TEST(an_empty_packet_does_not_end_the_pair),
		TEST(a_session_takes_the_version_of_a_later_initialize),
		TEST(what_a_session_wants_to_hear_is_kept_and_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
