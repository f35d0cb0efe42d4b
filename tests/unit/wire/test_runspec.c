/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "wire/runspec.h"

static const struct runspec_limits lim = {
	.max_commands = 3,
	.max_ttl_s = 1000,
	.default_ttl_s = 60,
	.default_timeout_ms = 5000,
	.default_await_timeout_ms = 30000,
};

static json_t *json(const char *text)
{
	struct err e = ERR_INIT;
	json_t *v = NULL;

	if (json_parse(text, strlen(text), &v, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	return v;
}

static void parse(const char *text, struct run_spec *s)
{
	AUTO_JSON *args = json(text);
	struct err e = ERR_INIT;

	if (runspec_parse(args, &lim, s, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
}

/* The arguments with one command. */
#define CMD(c) "{\"identifier\":\"i\",\"commands\":[" c "]}"
#define OPT(o) "{\"identifier\":\"i\",\"commands\":[{\"shell\":\"x\"}],\"options\":" o "}"

static void the_defaults_are_filled_in(void **state)
{
	AUTO_RUNSPEC s = {0};

	(void)state;
	parse(CMD("{\"shell\":\"ls\"}"), &s);
	assert_string_equal(s.identifier, "i");
	assert_int_equal(s.ncommands, 1);
	assert_string_equal(s.commands[0].shell, "ls");
	assert_null(s.commands[0].argv);
	assert_string_equal(s.commands[0].cwd, "/workspace");
	assert_int_equal(strv_len(s.commands[0].env), 0);
	assert_non_null(s.commands[0].env);
	assert_int_equal(s.commands[0].timeout_ms, 5000);
	assert_int_equal(s.ttl_s, 60);
	assert_int_equal(s.await_timeout_ms, 30000);
	assert_false(s.as_root || s.continue_on_error || s.lock_sandbox ||
		     s.await_completion || s.commands[0].allow_failure);
}

static void every_option_is_taken(void **state)
{
	AUTO_RUNSPEC s = {0};

	(void)state;
	parse("{\"identifier\":\"chat/1 \xc3\xa4\",\"commands\":[{\"argv\":[\"a\",\"\"],"
	      "\"cwd\":\"/x\",\"env\":{\"A\":\"2\"},\"timeout_ms\":7.0,"
	      "\"allow_failure\":true},{\"shell\":\"y\"}],"
	      "\"options\":{\"ttl_seconds\":9,\"default_cwd\":\"/d\","
	      "\"default_env\":[\"A=1\",\"B=x=y\"],\"as_user\":\"root\","
	      "\"continue_on_error\":true,\"lock_sandbox\":true,"
	      "\"await_completion\":true,\"await_timeout_ms\":8}}",
	      &s);
	assert_int_equal(s.ncommands, 2);
	assert_string_equal(s.commands[0].argv[0], "a");
	assert_string_equal(s.commands[0].argv[1], "");
	assert_null(s.commands[0].argv[2]);
	assert_string_equal(s.commands[0].cwd, "/x");
	assert_string_equal(s.commands[0].env[0], "A=2");
	assert_string_equal(s.commands[0].env[1], "B=x=y");
	assert_null(s.commands[0].env[2]);
	assert_string_equal(s.commands[1].env[0], "A=1");
	assert_string_equal(s.commands[1].cwd, "/d");
	assert_int_equal(s.commands[0].timeout_ms, 7);
	assert_int_equal(s.ttl_s, 9);
	assert_int_equal(s.await_timeout_ms, 8);
	assert_true(s.as_root && s.continue_on_error && s.lock_sandbox &&
		    s.await_completion && s.commands[0].allow_failure);
}

/* What some clients send with argv for "no shell". */
static void a_background_command_has_no_limit_unless_it_is_told(void **state)
{
	AUTO_RUNSPEC s = {0};
	char id[ID_RUN_LEN + 1], other[ID_RUN_LEN + 1];

	(void)state;
	parse("{\"identifier\":\"i\",\"commands\":[{\"shell\":\"x\",\"background\":true,"
	      "\"stdin\":\"in\"},{\"shell\":\"x\",\"background\":true,\"timeout_ms\":9,"
	      "\"stdin\":\"\"}]}",
	      &s);
	assert_true(s.commands[0].background);
	assert_int_equal(s.commands[0].timeout_ms, 0);
	assert_string_equal(s.commands[0].input, "in");
	assert_int_equal(s.commands[1].timeout_ms, 9);
	assert_null(s.commands[1].input);
	runspec_background_id("run_0123456789abcdef0123456789abcdef", 0, id);
	runspec_background_id("run_0123456789abcdef0123456789abcdef", 1, other);
	assert_true(id_is_run(id) && id_is_run(other));
	assert_string_not_equal(id, other);
}

static void an_empty_shell_beside_argv_is_no_shell(void **state)
{
	static const char *const same[] = {
		CMD("{\"shell\":null,\"argv\":[\"ls\"]}"),
		CMD("{\"shell\":false,\"argv\":[\"ls\"]}"),
		CMD("{\"shell\":\"\",\"argv\":[\"ls\"]}"),
		CMD("{\"shell\":\"/bin/bash\",\"argv\":[\"ls\"]}"),
		CMD("{\"shell\":\"sh\",\"argv\":[\"ls\"],\"cwd\":null,\"env\":null}"),
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof same / sizeof *same; i++) {
		AUTO_RUNSPEC s = {0};

		parse(same[i], &s);
		assert_null(s.commands[0].shell);
		assert_string_equal(s.commands[0].argv[0], "ls");
		assert_null(s.commands[0].argv[1]);
	}
}

static void a_shell_with_its_own_flags_is_the_program(void **state)
{
	AUTO_RUNSPEC s = {0};

	(void)state;
	parse(CMD("{\"shell\":\"/bin/sh\",\"argv\":[\"-c\",\"ls\"]}"), &s);
	assert_string_equal(s.commands[0].argv[0], "/bin/sh");
	assert_string_equal(s.commands[0].argv[1], "-c");
	assert_string_equal(s.commands[0].argv[2], "ls");
}

static void an_empty_argv_beside_shell_is_no_argv(void **state)
{
	AUTO_RUNSPEC s = {0};

	(void)state;
	parse(CMD("{\"shell\":\"ls\",\"argv\":[]}"), &s);
	assert_string_equal(s.commands[0].shell, "ls");
}

/* Each is refused with words that name the argument and the rule. */
static const struct {
	const char *args, *name, *rule;
} bad[] = {
	{"[]", "arguments", "must be an object"},
	{"{\"commands\":[{\"shell\":\"x\"}]}", "identifier", "missing"},
	{"{\"identifier\":null,\"commands\":[]}", "identifier", "missing"},
	{"{\"identifier\":5,\"commands\":[]}", "identifier", "must be a string"},
	{"{\"identifier\":\"\",\"commands\":[]}", "identifier", "1 to 256"},
	{"{\"identifier\":\"a\\nb\",\"commands\":[]}", "identifier", "control"},
	{"{\"identifier\":\"a\\u0085b\",\"commands\":[]}", "identifier", "control"},
	{"{\"identifier\":\"i\"}", "commands", "missing"},
	{"{\"identifier\":\"i\",\"commands\":[]}", "commands", "empty"},
	{"{\"identifier\":\"i\",\"commands\":\"ls\"}", "commands", "array"},
	{"{\"identifier\":\"i\",\"commands\":{}}", "commands", "array"},
	{CMD("1,2,3,4"), "commands", "at most 3"},
	{CMD("\"ls\""), "commands[0]", "{\"shell\""},
	{CMD("5"), "commands[0]", "must be an object"},
	{CMD("{}"), "commands[0]", "neither shell nor argv"},
	{CMD("{\"shell\":\"\"}"), "commands[0]", "neither shell nor argv"},
	{CMD("{\"argv\":[]}"), "commands[0]", "neither shell nor argv"},
	{CMD("{\"shell\":\"ls\",\"argv\":[\"ls\"]}"), "commands[0]", "exactly one"},
	{CMD("{\"shell\":true}"), "commands[0].shell", "must be a string"},
	{CMD("{\"shell\":[\"ls\"]}"), "commands[0].shell", "must be a string"},
	{CMD("{\"argv\":\"ls -l\"}"), "commands[0].argv", "use shell"},
	{CMD("{\"argv\":[\"\"]}"), "commands[0].argv[0]", "the program to run"},
	{CMD("{\"argv\":[\"\",\"x\"]}"), "commands[0].argv[0]", "is empty"},
	{CMD("{\"argv\":[\"ls\",5]}"), "commands[0].argv[1]", "double quotes"},
	{CMD("{\"shell\":\"x\"},{\"shell\":\"x\",\"cwd\":\"a/b\"}"), "commands[1].cwd",
	 "absolute"},
	{CMD("{\"shell\":\"x\",\"cwd\":\"\"}"), "commands[0].cwd", "absolute"},
	{CMD("{\"shell\":\"x\",\"cwd\":5}"), "commands[0].cwd", "must be a string"},
	{CMD("{\"shell\":\"x\",\"env\":\"A=1\"}"), "commands[0].env", "object"},
	{CMD("{\"shell\":\"x\",\"env\":{\"A\":1}}"), "commands[0].env.A",
	 "double quotes"},
	{CMD("{\"shell\":\"x\",\"env\":{\"1A\":\"\"}}"), "commands[0].env", "\"1A\""},
	{CMD("{\"shell\":\"x\",\"env\":{\"A-B\":\"\"}}"), "commands[0].env",
	 "letters, digits"},
	{CMD("{\"shell\":\"x\",\"env\":{\"\":\"\"}}"), "commands[0].env",
	 "no environment name"},
	{CMD("{\"shell\":\"x\",\"env\":[\"A\"]}"), "commands[0].env[0]", "NAME=VALUE"},
	{CMD("{\"shell\":\"x\",\"env\":[\"=A\"]}"), "commands[0].env[0]",
	 "no environment name"},
	{CMD("{\"shell\":\"x\",\"env\":[1]}"), "commands[0].env[0]", "string"},
	{CMD("{\"shell\":\"x\",\"timeout_ms\":0}"), "commands[0].timeout_ms",
	 "1 to 86400000"},
	{CMD("{\"shell\":\"x\",\"timeout_ms\":86400001}"), "commands[0].timeout_ms",
	 "1 to 86400000"},
	{CMD("{\"shell\":\"x\",\"timeout_ms\":1.5}"), "commands[0].timeout_ms", "whole"},
	{CMD("{\"shell\":\"x\",\"timeout_ms\":1e300}"), "commands[0].timeout_ms",
	 "whole"},
	{CMD("{\"shell\":\"x\",\"timeout_ms\":\"5\"}"), "commands[0].timeout_ms",
	 "not a string"},
	{CMD("{\"shell\":\"x\",\"allow_failure\":\"yes\"}"), "commands[0].allow_failure",
	 "true or false"},
	{CMD("{\"shell\":\"x\",\"timeout\":5}"), "commands[0].timeout",
	 "shell, argv, cwd, env, stdin, timeout_ms, allow_failure, background"},
	{OPT("[]"), "options", "must be an object"},
	{OPT("{\"ttl_seconds\":0}"), "options.ttl_seconds", "1 to 1000"},
	{OPT("{\"ttl_seconds\":1001}"), "options.ttl_seconds", "1 to 1000"},
	{OPT("{\"default_cwd\":\"x\"}"), "options.default_cwd", "absolute"},
	{OPT("{\"default_env\":[\"9=1\"]}"), "options.default_env[0]", "name"},
	{OPT("{\"as_user\":\"nobody\"}"), "options.as_user", "\"sandbox\" or \"root\""},
	{OPT("{\"as_user\":0}"), "options.as_user", "string"},
	{OPT("{\"await_completion\":1}"), "options.await_completion", "true or false"},
	{OPT("{\"await_timeout_ms\":-1}"), "options.await_timeout_ms", "from 1"},
	{OPT("{\"awaitCompletion\":true}"), "options.awaitCompletion",
	 "await_completion"},
	{"{\"identifier\":\"i\",\"commands\":[],\"ttl_seconds\":5}", "ttl_seconds",
	 "in options"},
};

static void bad_arguments_are_refused_in_words(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		AUTO_JSON *args = json(bad[i].args);
		AUTO_RUNSPEC s = {0};
		struct err e = ERR_INIT;

		if (runspec_parse(args, &lim, &s, &e) == 0)
			fail_msg("%s passed", bad[i].args);
		assert_int_equal(e.kind, ERR_INVALID);
		assert_null(s.identifier);
		if (strncmp(e.msg, bad[i].name, strlen(bad[i].name)) != 0 &&
		    strcmp(bad[i].name, "arguments") != 0)
			fail_msg("%s: %s", bad[i].args, e.msg);
		if (!strstr(e.msg, bad[i].rule))
			fail_msg("%s: %s", bad[i].args, e.msg);
	}
}

static char *repeated(const char *what, size_t n)
{
	size_t i, len = strlen(what);
	char *s = xmalloc(len * n + 1);

	for (i = 0; i < n; i++)
		memcpy(s + i * len, what, len);
	s[len * n] = '\0';
	return s;
}

static void an_identifier_is_counted_in_characters(void **state)
{
	char *fits = repeated("\xf0\x9f\x98\x80", 256), *over = repeated("a", 257);
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(identifier_check(fits, &e), 0);
	assert_int_equal(identifier_check(over, &e), -1);
	free(fits);
	free(over);
}

static void nul_bytes_are_refused(void **state)
{
	AUTO_JSON *args = json_pack("{s:s, s:[{s:[s%]}]}", "identifier", "i", "commands",
				    "argv", "a\0b", (size_t)3);
	AUTO_RUNSPEC s = {0};
	struct err e = ERR_INIT;

	(void)state;
	assert_non_null(args);
	assert_int_equal(runspec_parse(args, &lim, &s, &e), -1);
	assert_non_null(strstr(e.msg, "commands[0].argv[0] must not hold a NUL byte"));
}

static int parse_one(const char *key, json_t *value, struct err *e)
{
	AUTO_JSON *args = json(CMD("{}"));
	AUTO_RUNSPEC s = {0};
	json_t *cmd = json_array_get(json_object_get(args, "commands"), 0);

	json_put(cmd, key, value);
	if (strcmp(key, "env") == 0)
		json_put(cmd, "shell", json_string("x"));
	return runspec_parse(args, &lim, &s, e);
}

static void sizes_are_bounded_by_what_the_kernel_takes(void **state)
{
	char *fits = repeated("x", 131071), *over = repeated("x", 131072);
	char *script = repeated("true\n", 1000000);
	struct err e = ERR_INIT, arg = ERR_INIT, var = ERR_INIT;

	(void)state;
	assert_int_equal(parse_one("argv", json_pack("[s]", fits), &e), 0);
	assert_int_equal(parse_one("shell", json_string(script), &e), 0);
	assert_int_equal(parse_one("argv", json_pack("[s]", over), &arg), -1);
	assert_non_null(strstr(arg.msg, "commands[0].argv[0] is too long"));
	assert_int_equal(parse_one("env", json_pack("{s:s}", "A", fits), &var), -1);
	assert_non_null(strstr(var.msg, "too long"));
	free(fits);
	free(over);
	free(script);
}

static json_t *many_entries(int n, size_t size)
{
	json_t *env = json_object();
	char *value = repeated("x", size), key[16];
	int i;

	for (i = 0; i < n; i++) {
		snprintf(key, sizeof key, "K%d", i);
		json_put(env, key, json_string(value));
	}
	free(value);
	return env;
}

static void an_environment_is_bounded_in_number_and_bytes(void **state)
{
	struct err e = ERR_INIT, number = ERR_INIT, bytes = ERR_INIT;

	(void)state;
	assert_int_equal(parse_one("env", many_entries(4096, 1), &e), 0);
	assert_int_equal(parse_one("env", many_entries(4097, 1), &number), -1);
	assert_non_null(strstr(number.msg, "at most 4096 entries"));
	assert_int_equal(parse_one("env", many_entries(20, 60000), &bytes), -1);
	assert_non_null(strstr(bytes.msg, "1048576 bytes"));
}

/* Each within its own bound, and more than execve() takes. */
static void argv_and_environment_are_bounded_together(void **state)
{
	AUTO_JSON *args = json(CMD("{}"));
	AUTO_RUNSPEC s = {0};
	json_t *cmd = json_array_get(json_object_get(args, "commands"), 0);
	json_t *argv = json_array();
	char *arg = repeated("x", 104000);
	struct err e = ERR_INIT;

	(void)state;
	for (int i = 0; i < 10; i++)
		json_array_append_new(argv, json_string(arg));
	json_put(cmd, "argv", argv);
	json_put(cmd, "env", many_entries(17, 60000));
	assert_int_equal(-1, runspec_parse(args, &lim, &s, &e));
	assert_non_null(strstr(e.msg, "commands[0].argv and commands[0].env"));
	assert_non_null(strstr(e.msg, "Write the data to a file"));
	free(arg);
}

static void the_environments_of_all_commands_are_bounded_together(void **state)
{
	const struct runspec_limits many = {.max_commands = 100,
					    .max_ttl_s = 1,
					    .default_ttl_s = 1,
					    .default_timeout_ms = 1,
					    .default_await_timeout_ms = 1};
	AUTO_JSON *args = json(OPT("{}"));
	json_t *commands = json_object_get(args, "commands");
	AUTO_RUNSPEC s = {0};
	struct err e = ERR_INIT;
	int i;

	(void)state;
	json_put(json_object_get(args, "options"), "default_env",
		 many_entries(10, 100000));
	for (i = 0; i < 50; i++)
		json_array_append_new(commands, json_pack("{s:s}", "shell", "x"));
	assert_int_equal(runspec_parse(args, &many, &s, &e), -1);
	assert_non_null(strstr(e.msg, "all commands together"));
}

static void references_take_an_identifier_and_a_ttl(void **state)
{
	AUTO_JSON *args = json("{\"identifier\":\"i\",\"options\":{\"ttl_seconds\":5}}");
	AUTO_JSON *plain = json("{\"identifier\":\"i\"}");
	struct sandbox_ref r = {0};
	struct err e = ERR_INIT, no_options = ERR_INIT;

	(void)state;
	assert_int_equal(sandboxref_parse(args, true, &lim, &r, &e), 0);
	assert_int_equal(r.ttl_s, 5);
	sandboxref_release(&r);
	assert_int_equal(sandboxref_parse(plain, true, &lim, &r, &e), 0);
	assert_int_equal(r.ttl_s, 60);
	sandboxref_release(&r);
	assert_int_equal(sandboxref_parse(args, false, &lim, &r, &no_options), -1);
	assert_string_equal(no_options.msg,
			    "options is not known here; what can be sent: identifier");
}

static void what_is_in_the_wrong_place_is_told_where_it_belongs(void **state)
{
	static const struct {
		const char *args, *words;
	} wrong[] = {
		{"{\"identifier\":\"i\",\"as_user\":\"root\",\"commands\":[]}",
		 "as_user is not known here; send as_user in options"},
		{"{\"identifier\":\"i\",\"commands\":[{\"shell\":\"x\","
		 "\"await_completion\":true}]}",
		 "commands[0].await_completion is not known here; send "
		 "await_completion in options"},
		{"{\"identifier\":\"i\",\"commands\":[],\"options\":{\"cwd\":\"/\"}}",
		 "options.cwd is not known here; send cwd in each of commands"},
		{"{\"identifier\":\"i\",\"commands\":[],\"user\":\"root\"}",
		 "user is not known here; what can be sent: identifier, commands, "
		 "options"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		AUTO_JSON *args = json(wrong[i].args);
		struct run_spec s = {0};
		struct err e = ERR_INIT;

		assert_int_equal(runspec_parse(args, &lim, &s, &e), -1);
		assert_string_equal(e.msg, wrong[i].words);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_defaults_are_filled_in),
		cmocka_unit_test(what_is_in_the_wrong_place_is_told_where_it_belongs),
		cmocka_unit_test(a_background_command_has_no_limit_unless_it_is_told),
		cmocka_unit_test(every_option_is_taken),
		cmocka_unit_test(an_empty_shell_beside_argv_is_no_shell),
		cmocka_unit_test(a_shell_with_its_own_flags_is_the_program),
		cmocka_unit_test(an_empty_argv_beside_shell_is_no_argv),
		cmocka_unit_test(bad_arguments_are_refused_in_words),
		cmocka_unit_test(an_identifier_is_counted_in_characters),
		cmocka_unit_test(nul_bytes_are_refused),
		cmocka_unit_test(sizes_are_bounded_by_what_the_kernel_takes),
		cmocka_unit_test(an_environment_is_bounded_in_number_and_bytes),
		cmocka_unit_test(argv_and_environment_are_bounded_together),
		cmocka_unit_test(the_environments_of_all_commands_are_bounded_together),
		cmocka_unit_test(references_take_an_identifier_and_a_ttl),
	};
	return cmocka_run_group_tests_name("runspec", tests, NULL, NULL);
}
