/* SPDX-License-Identifier: MIT */
#include "fake.h"

#include "base/utf8.h"
#include "mcp/run_words.h"

/* ' stands for " so that the cases can be read. */
static json_t *object(const char *text)
{
	AUTO_FREE char *copy = strdup(text);
	char *p;

	for (p = copy; *p; p++)
		if (*p == '\'')
			*p = '"';
	return parsed(copy, strlen(copy));
}

static const struct {
	const char *run;
	const char *words;
} finals[] = {
	{"{'state':'completed','commands':[{'state':'completed','exit_code':0}]}",
	 "completed: exit code 0\n"},
	{"{'state':'failed','error':'commands[0] failed','commands':[{'state':'failed',"
	 "'exit_code':null,'signal':'SIGKILL','oom':true,"
	 "'reason':'The sandbox has 1024 MiB.'}]}",
	 "failed: killed by SIGKILL, out of memory\ncommands[0] failed\n"
	 "The sandbox has 1024 MiB.\n"},
	{"{'state':'failed','commands':[{'state':'timed_out','timeout_ms':500,"
	 "'stdout':'x','stdout_bytes':1,'stdout_kept_bytes':1}]}",
	 "failed: timed out after 500 ms\nstdout:\nx\n"},
	{"{'state':'failed','error':'command 0: exit code "
	 "3','commands':[{'state':'failed',"
	 "'exit_code':3,'reason':'exit code 3'}]}",
	 "failed: exit code 3\n"},
	{"{'state':'failed','error':'command 0: exit code "
	 "3','commands':[{'state':'failed',"
	 "'exit_code':3,'reason':'exit code "
	 "3','shell':'a'},{'state':'queued','shell':'b'}]}",
	 "failed: 0 of 2 commands completed\ncommand 0: exit code 3\n"
	 "commands[0] a: exit code 3\ncommands[1] b: not run\n"},
	{"{'state':'failed','error':'command 0: nosuch cannot be run','commands':[{"
	 "'state':'failed','reason':'nosuch cannot be run'}]}",
	 "failed\nnosuch cannot be run\n"},
	{"{'state':'completed','commands':[{'state':'completed','exit_code':0,"
	 "'stdout':'\\u0001\\ufffdab\\u0002\\ufffd','stdout_bytes':6,'stdout_url':'/"
	 "u'}]}",
	 "completed: exit code 0\nstdout: 6 bytes, no text: /u\n"},
	{"{'state':'canceled','error':'the sandbox was deleted',"
	 "'commands':[{'state':'canceled'}]}",
	 "canceled\nthe sandbox was deleted\n"},
	{"{'state':'canceled','error':'the sandbox was deleted','commands':[{'state':"
	 "'canceled','reason':'canceled: the sandbox was deleted'}]}",
	 "canceled\nthe sandbox was deleted\n"},
	{"{'state':'canceled','error':'canceled in the database','commands':[{'state':"
	 "'canceled','reason':'canceled: canceled in the database'}]}",
	 "canceled in the database\n"},
	{"{'state':'canceled','error':'canceled in the database','commands':[{'state':"
	 "'canceled','reason':'canceled: canceled in the database','shell':'a'},"
	 "{'state':'queued','shell':'b'}]}",
	 "canceled: 0 of 2 commands completed\ncanceled in the database\n"
	 "commands[0] a: canceled\ncommands[1] b: not run\n"},
	{"{'state':'failed','commands':[{'state':'completed','exit_code':0,"
	 "'shell':'cd /tmp\\nmake'},{'state':'failed','exit_code':2,"
	 "'argv':['make','test'],'stderr':'no\\n','background_left':1},"
	 "{'state':'queued','shell':'x'}]}",
	 "failed: 1 of 3 commands completed\n"
	 "commands[0] cd /tmp ...: exit code 0\n"
	 "commands[1] make test: exit code 2\n"
	 "1 background process of it still runs\nstderr:\nno\n"
	 "commands[2] x: not run\n"},
	{"{'state':'completed','commands':[{'state':'completed','exit_code':0}],"
	 "'artifacts':[{'path':'a','size':1,'url':'/artifacts/i/r/"
	 "a'}],'artifacts_total':2,"
	 "'artifacts_skipped':[{'path':'l','reason':'a symbolic link'}],"
	 "'artifacts_skipped_total':1,'artifacts_error':'too many'}",
	 "completed: exit code 0\nartifacts (2):\n- a (1 byte) /artifacts/i/r/a\n"
	 "- and 1 more, see status_url\nartifacts skipped (1):\n- l: a symbolic link\n"
	 "artifacts: too many\n"},
	{"{'state':'completed','commands':[{'state':'completed','exit_code':0,"
	 "'stdout':'abc','stdout_truncated':true,'stdout_bytes':900,"
	 "'stdout_kept_bytes':3,'stdout_url':'/u'}]}",
	 "completed: exit code 0\nstdout (not all of 900 bytes; the first 3 were kept: "
	 "/u):\nabc\n"},
};

static void endings_are_told_first_and_truly(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(finals) / sizeof(finals[0]); i++) {
		AUTO_JSON *run = object(finals[i].run);
		AUTO_BUF b = BUF_INIT(100000);

		run_words_final(&b, run);
		assert_string_equal(b.p, finals[i].words);
	}
}

static void long_output_is_cut_in_the_middle(void **state)
{
	AUTO_BUF text = BUF_INIT(200000);
	AUTO_BUF b = BUF_INIT(200000);
	AUTO_JSON *run = NULL;
	int i;

	(void)state;
	for (i = 0; i < 30000; i++)
		buf_printf(&text, "\xc3\xa9");
	run = json_pack("{s:s, s:[{s:s, s:i, s:s, s:i, s:i, s:s}]}", "state", "completed",
			"commands", "state", "completed", "exit_code", 0, "stdout",
			text.p, "stdout_bytes", 60000, "stdout_kept_bytes", 60000,
			"stdout_url", "/raw");
	run_words_final(&b, run);
	assert_true(buf_ok(&b));
	assert_in_range(b.len, 16000, 17000);
	assert_true(utf8_is_valid(b.p, b.len));
	assert_non_null(strstr(b.p, "stdout (not all of 60000 bytes; whole: /raw):\n"));
	assert_non_null(strstr(b.p, "\n[...]\n"));
}

static void a_nul_ends_nothing(void **state)
{
	AUTO_JSON *run = json_pack("{s:s, s:[{s:s, s:i, s:s%}]}", "state", "completed",
				   "commands", "state", "completed", "exit_code", 0,
				   "stdout", "first file\0second file\0", (size_t)23);
	AUTO_BUF b = BUF_INIT(1000);

	(void)state;
	run_words_final(&b, run);
	assert_string_equal(b.p, "completed: exit code 0\nstdout:\nfirst file\xef\xbf\xbd"
				 "second file\xef\xbf\xbd\n");
}

static void a_hundred_talking_commands_stay_bounded(void **state)
{
	AUTO_JSON *commands = json_array();
	AUTO_JSON *run = NULL;
	AUTO_BUF b = BUF_INIT((size_t)256 * 1024);
	char text[5000];
	int i;

	(void)state;
	memset(text, 't', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (i = 0; i < 100; i++)
		json_array_append_new(commands,
				      json_pack("{s:s, s:s, s:i, s:s, s:s}", "shell",
						text, "state", "completed", "exit_code",
						0, "stdout", text, "stderr", text));
	run = json_pack("{s:s, s:O}", "state", "completed", "commands", commands);
	run_words_final(&b, run);
	assert_true(buf_ok(&b));
	assert_true(b.len < 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(endings_are_told_first_and_truly),
		cmocka_unit_test(long_output_is_cut_in_the_middle),
		cmocka_unit_test(a_nul_ends_nothing),
		cmocka_unit_test(a_hundred_talking_commands_stay_bounded),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
