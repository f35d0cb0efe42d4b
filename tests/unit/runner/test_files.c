/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include "base/base64.h"
#include "wire/filespec.h"

/* args: JSON text with ' for ". */
static json_t *file_body(const char *args)
{
	json_t *body = rig_run_body("run_x", args);

	json_object_del(body, "run_id");
	return body;
}

static json_t *ok(struct rig *t, enum edgemsg_type type, const char *args)
{
	return rig_ask(t, type, file_body(args));
}

/* The kind of the failure; its words go to `words`. */
static char words[600];
static const char *failure(struct rig *t, enum edgemsg_type type, const char *args)
{
	enum edgemsg_type got;
	json_t *answer = rig_answer(t, rig_send(t, type, file_body(args)), &got);
	static char kind[32];

	assert_int_equal(got, MSG_ERR);
	snprintf(kind, sizeof(kind), "%s", json_get_string(answer, "kind"));
	snprintf(words, sizeof(words), "%s", json_get_string(answer, "message"));
	json_decref(answer);
	return kind;
}

static void expect_data(const json_t *answer, const char *want, size_t n)
{
	const char *data = json_get_string(answer, "data");
	AUTO_BUF b = BUF_INIT(1 << 24);
	struct err e = ERR_INIT;

	assert_int_equal(0, base64_decode(&b, data, strlen(data), &e));
	assert_int_equal(b.len, n);
	assert_memory_equal(b.p, want, n);
}

#define AS_ROOT "'as_user':'root'"

static void writing_makes_a_sandbox_and_reading_does_not(void **state)
{
	struct rig *t = *state;
	json_t *a;

	assert_string_equal(
		failure(t, MSG_FILE_READ, "{'identifier':'f','path':'/x'," AS_ROOT "}"),
		"not_found");
	assert_non_null(strstr(words, "write_file"));
	assert_string_equal(failure(t, MSG_FILE_LIST, "{'identifier':'f'}"), "not_found");
	a = ok(t, MSG_FILE_WRITE,
	       "{'identifier':'f','path':'a/b.txt','text':'hi\\n'," AS_ROOT "}");
	assert_string_equal(json_get_string(a, "path"), "/workspace/a/b.txt");
	assert_int_equal(json_integer_value(json_object_get(a, "size")), 3);
	json_decref(a);
	a = ok(t, MSG_FILE_READ,
	       "{'identifier':'f','path':'/workspace/a/./b.txt'," AS_ROOT "}");
	expect_data(a, "hi\n", 3);
	json_decref(a);
	a = ok(t, MSG_FILE_READ,
	       "{'identifier':'f','path':'a/b.txt','offset':1,'max_bytes':2," AS_ROOT
	       "}");
	expect_data(a, "i\n", 2);
	assert_int_equal(json_integer_value(json_object_get(a, "size")), 3);
	json_decref(a);
}

static void megabytes_go_both_ways(void **state)
{
	struct rig *t = *state;
	size_t n = 3 * 1024 * 1024;
	AUTO_FREE char *data = xmalloc(n);
	AUTO_BUF b = BUF_INIT(1 << 24);
	json_t *a, *body = file_body("{'identifier':'f','path':'big'," AS_ROOT "}");

	for (size_t i = 0; i < n; i++)
		data[i] = (char)(i * 7 + i / 251);
	base64_add(&b, data, n);
	json_object_set_new(json_object_get(body, "args"), "base64", json_string(b.p));
	json_decref(rig_ask(t, MSG_FILE_WRITE, body));
	a = ok(t, MSG_FILE_READ,
	       "{'identifier':'f','path':'big','max_bytes':4194304," AS_ROOT "}");
	expect_data(a, data, n);
	json_decref(a);
}

static void a_listing_is_sorted_and_comes_in_pages(void **state)
{
	struct rig *t = *state;
	char id[ID_RUN_LEN + 1], args[400];
	AUTO_BUF cursor = BUF_INIT(1000);
	const json_t *list;
	json_t *a;

	rig_run(t, id,
		"{'identifier':'f','commands':[{'shell':'mkdir -p many/deep && cd many "
		"&& "
		"seq -f %03g 0 249 | xargs touch && touch deep/x'}],"
		"'options':{" AS_ROOT "}}");
	assert_int_equal(STORE_RUN_COMPLETED, rig_wait(t, id));
	a = ok(t, MSG_FILE_LIST, "{'identifier':'f','path':'many'," AS_ROOT "}");
	list = json_object_get(a, "entries");
	assert_int_equal(json_array_size(list), FILE_PAGE);
	assert_int_equal(json_integer_value(json_object_get(a, "total")), 251);
	assert_true(json_is_true(json_object_get(a, "more")));
	assert_string_equal(json_get_string(json_array_get(list, 7), "path"), "007");
	json_decref(a);
	base64url_add(&cursor, "199", 3);
	snprintf(args, sizeof(args),
		 "{'identifier':'f','path':'many','depth':2,'cursor':'%s'," AS_ROOT "}",
		 cursor.p);
	a = ok(t, MSG_FILE_LIST, args);
	list = json_object_get(a, "entries");
	assert_int_equal(json_array_size(list), 52);
	assert_string_equal(json_get_string(json_array_get(list, 51), "path"), "deep/x");
	assert_false(json_is_true(json_object_get(a, "more")));
	json_decref(a);
}

static void what_cannot_be_done_is_said_in_words(void **state)
{
	static const struct {
		enum edgemsg_type type;
		const char *args, *kind, *words;
	} cases[] = {
		{MSG_FILE_READ, "{'identifier':'f','path':'/none'," AS_ROOT "}",
		 "not_found", "/none: there is no such file"},
		{MSG_FILE_READ, "{'identifier':'f','path':'/tmp'," AS_ROOT "}", "invalid",
		 "list_files"},
		{MSG_FILE_READ, "{'identifier':'f','path':'/dev/null'," AS_ROOT "}",
		 "invalid", "no regular file"},
		{MSG_FILE_READ, "{'identifier':'f','path':'a/../b'}", "invalid", ".."},
		{MSG_FILE_LIST, "{'identifier':'f','path':'/etc/passwd'," AS_ROOT "}",
		 "invalid", "no folder"},
		{MSG_FILE_WRITE,
		 "{'identifier':'f','path':'/proc/x','text':''," AS_ROOT "}", NULL,
		 "/proc/x"},
		{MSG_FILE_WRITE, "{'identifier':'f','path':'/tmp','text':''," AS_ROOT "}",
		 "invalid", "folder"},
		{MSG_FILE_WRITE, "{'identifier':'f','path':'x'}", "invalid", "text"},
		{MSG_FILE_WRITE, "{'identifier':'f','path':'x','text':'','mode':'9'}",
		 "invalid", "octal"},
		{MSG_FILE_WRITE, "{'identifier':'f','path':'x','base64':'*'}", "invalid",
		 "base64"},
	};
	struct rig *t = *state;

	json_decref(ok(t, MSG_FILE_WRITE,
		       "{'identifier':'f','path':'y','text':''," AS_ROOT "}"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *kind = failure(t, cases[i].type, cases[i].args);

		if (cases[i].kind)
			assert_string_equal(kind, cases[i].kind);
		if (!strstr(words, cases[i].words))
			fail_msg("%s: %s", cases[i].args, words);
	}
}

static void a_delete_ends_what_waits_for_files(void **state)
{
	struct rig *t = *state;
	enum edgemsg_type got;
	json_t *a;
	uint64_t id;

	fake_create_delay_ms = 0;
	json_decref(ok(t, MSG_FILE_WRITE,
		       "{'identifier':'f','path':'x','text':'1'," AS_ROOT "}"));
	json_decref(rig_ask(t, MSG_DELETE, file_body("{'identifier':'f'}")));
	assert_string_equal(
		failure(t, MSG_FILE_READ, "{'identifier':'f','path':'x'," AS_ROOT "}"),
		"not_found");
	/* Written anew, in a new sandbox. */
	id = rig_send(t, MSG_FILE_WRITE,
		      file_body("{'identifier':'f','path':'z','text':'2'," AS_ROOT "}"));
	a = rig_answer(t, id, &got);
	assert_int_equal(got, MSG_OK);
	json_decref(a);
	assert_string_equal(
		failure(t, MSG_FILE_READ, "{'identifier':'f','path':'x'," AS_ROOT "}"),
		"not_found");
	assert_non_null(strstr(words, "no such file"));
}

static void files_are_there_after_the_runner_was_replaced(void **state)
{
	struct rig *t = *state;
	json_t *a;

	json_decref(ok(t, MSG_FILE_WRITE,
		       "{'identifier':'f','path':'x','text':'1'," AS_ROOT "}"));
	rig_end(t, SIGKILL);
	rig_start(t);
	for (;;) { /* busy until the backend is compared with the store */
		enum edgemsg_type got;

		a = rig_answer(
			t,
			rig_send(t, MSG_FILE_READ,
				 file_body("{'identifier':'f','path':'x'," AS_ROOT "}")),
			&got);
		if (got == MSG_OK)
			break;
		assert_string_equal(json_get_string(a, "kind"), "busy");
		json_decref(a);
		usleep(20000);
	}
	expect_data(a, "1", 1);
	json_decref(a);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(writing_makes_a_sandbox_and_reading_does_not),
		TEST(megabytes_go_both_ways),
		TEST(a_listing_is_sorted_and_comes_in_pages),
		TEST(what_cannot_be_done_is_said_in_words),
		TEST(a_delete_ends_what_waits_for_files),
		TEST(files_are_there_after_the_runner_was_replaced),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
