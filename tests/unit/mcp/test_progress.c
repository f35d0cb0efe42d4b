/* SPDX-License-Identifier: MIT */
#include "fake.h"
#include "mcp/eventid.h"
#include "mcp/progress.h"

static void note(struct progress *p, enum store_event_type type, const char *data)
{
	struct store_event ev = {
		.type = type, .command_index = 1, .data = data, .n = strlen(data)};

	progress_note(p, &ev);
}

static void tells(struct progress *p, const char *message)
{
	AUTO_BUF b = BUF_INIT(4096);
	AUTO_JSON *v = NULL;

	progress_add(p, 1500, &b);
	v = parsed(b.p, b.len);
	assert_string_equal(str_at(v, "method"), "notifications/progress");
	assert_string_equal(str_at(at(v, "params"), "message"), message);
	assert_true(json_real_value(at(at(v, "params"), "progress")) == 1.5);
}

static void the_latest_line_is_told_without_what_steers_a_screen(void **state)
{
	AUTO_JSON *params = json_pack("{s:{s:s}}", "_meta", "progressToken", "t");
	struct progress p;

	(void)state;
	progress_init(&p, params);
	p.steps = 3;
	tells(&p, "waiting to start");
	note(&p, STORE_EVENT_SANDBOX_PROGRESS, "{\"message\":\"a\\u0007 b\"}");
	tells(&p, "waiting to start: a b");
	note(&p, STORE_EVENT_SANDBOX_PROGRESS, "no json");
	tells(&p, "waiting to start: a b");
	note(&p, STORE_EVENT_COMMAND_STARTED, "");
	tells(&p, "command 2 of 3 runs");
	note(&p, STORE_EVENT_COMMAND_STDOUT, "first\nsec");
	tells(&p, "command 2 of 3: sec");
	note(&p, STORE_EVENT_COMMAND_STDERR, "ond\n\n\n");
	tells(&p, "command 2 of 3: second");
	note(&p, STORE_EVENT_COMMAND_STDOUT, "10 %\r  20 %\r");
	tells(&p, "command 2 of 3: 20 %");
	note(&p, STORE_EVENT_COMMAND_STDOUT, "\033[31mred\033[0m \a\x7f");
	tells(&p, "command 2 of 3: [31mred[0m ");
	note(&p, STORE_EVENT_COMMAND_STARTED, "");
	tells(&p, "command 2 of 3 runs");
	note(&p, STORE_EVENT_COMMAND_STDOUT, "\xff\xc3");
	tells(&p, "command 2 of 3: \357\277\275\357\277\275");
}

static void long_lines_and_odd_tokens_stay_bounded(void **state)
{
	char line[2 * PROGRESS_LINE_MAX] = "", token[2000];
	AUTO_JSON *none = json_pack("{s:{s:f}}", "_meta", "progressToken", 1.5);
	AUTO_JSON *zero = json_pack("{s:{s:i}}", "_meta", "progressToken", 0);
	AUTO_BUF b = BUF_INIT(4096);
	AUTO_JSON *v = NULL, *big = NULL;
	struct progress p;

	(void)state;
	memset(line, 'y', sizeof(line) - 1);
	memset(token, 'z', sizeof(token) - 1);
	token[sizeof(token) - 1] = '\0';
	big = json_pack("{s:{s:s}}", "_meta", "progressToken", token);
	progress_init(&p, big);
	assert_null(p.token);
	progress_init(&p, none);
	assert_null(p.token);
	progress_init(&p, NULL);
	assert_null(p.token);
	progress_init(&p, zero);
	assert_non_null(p.token);
	note(&p, STORE_EVENT_COMMAND_STDOUT, line);
	progress_add(&p, 0, &b);
	v = parsed(b.p, b.len);
	assert_true(strlen(str_at(at(v, "params"), "message")) < PROGRESS_LINE_MAX + 50);
}

static void progress_only_grows(void **state)
{
	struct progress p = {.began_mono = 1000, .last_ms = -1};

	(void)state;
	assert_int_equal(progress_elapsed(&p, 1000), 0);
	assert_int_equal(progress_elapsed(&p, 1000), 1);
	assert_int_equal(progress_elapsed(&p, 500), 2); /* the clock was set back */
	assert_int_equal(progress_elapsed(&p, 2000), 1000);
}

static void event_ids_come_back_as_they_were(void **state)
{
	AUTO_JSON *doc = json_pack("[s, i, {}]", "a \"b\" \xc3\xa9", 0);
	AUTO_BUF b = BUF_INIT(4096);
	struct eventid x = {.run_id = "run_0123456789abcdef0123456789abcdef",
			    .place = 77,
			    .until_ms = 1234567890123,
			    .id = json_array_get(doc, 0),
			    .token = json_array_get(doc, 1)};
	struct eventid y = {0};
	struct err e = ERR_INIT;

	(void)state;
	eventid_add(&x, &b);
	assert_int_equal(strcspn(b.p, " \r\n"), b.len); /* fits a header */
	assert_int_equal(eventid_parse(b.p, &y, &e), 0);
	assert_string_equal(y.run_id, x.run_id);
	assert_int_equal(y.place, 77);
	assert_int_equal(y.until_ms, 1234567890123);
	assert_true(json_equal((json_t *)y.id, (json_t *)x.id));
	assert_true(json_equal((json_t *)y.token, (json_t *)x.token));
	json_decref(y.doc);
}

static void what_is_no_event_id_is_refused(void **state)
{
#define RUN "run_0123456789abcdef0123456789abcdef"
	static const char *const bad[] = {"",
					  "1",
					  ".",
					  "..",
					  RUN,
					  RUN ".1",
					  RUN ".1.",
					  RUN ".x.WzEsbnVsbCwwXQ",
					  RUN ".-1.WzEsbnVsbCwwXQ",
					  "run_x.1.WzEsbnVsbCwwXQ",
					  RUN ".1.WzEsbnVsbCwwX", /* no JSON */
					  RUN ".1.W25 1bGwsbnVsbCwwXQ",
					  RUN ".1.e30",          /* {} */
					  RUN ".1.WzEsMS41LDBd", /* [1,1.5,0] */
					  RUN ".1.WzEsbnVsbF0",  /* [1,null] */
					  RUN ".1.W251bGwsMSwwXQ" /* [null,1,0] */};
	struct eventid x = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err e = ERR_INIT;

		if (eventid_parse(bad[i], &x, &e) == 0)
			fail_msg("%s was taken", bad[i]);
		assert_int_equal(e.kind, ERR_INVALID);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_latest_line_is_told_without_what_steers_a_screen),
		cmocka_unit_test(long_lines_and_odd_tokens_stay_bounded),
		cmocka_unit_test(progress_only_grows),
		cmocka_unit_test(event_ids_come_back_as_they_were),
		cmocka_unit_test(what_is_no_event_id_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
