/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "conf/conf.h"
#include "wire/denylist.h"

static struct patterns *defaults;

static int compile_the_defaults(void **state)
{
	struct err e = ERR_INIT;
	struct conf c;
	int rc;

	(void)state;
	unsetenv("DENYLIST_PATTERNS");
	if (conf_load(NULL, &c, &e) < 0)
		return -1;
	rc = patterns_compile(c.denylist_patterns, &defaults, &e);
	conf_release(&c);
	return rc;
}

static int free_the_defaults(void **state)
{
	(void)state;
	patterns_free(defaults);
	return 0;
}

static int check_shell(const char *text)
{
	struct command_spec c = {.shell = (char *)(uintptr_t)text};
	struct run_spec s = {.commands = &c, .ncommands = 1};
	struct err e = ERR_INIT;
	int rc = denylist_check(defaults, &s, &e);

	assert_int_equal(rc < 0, e.kind == ERR_DENIED);
	return rc;
}

static void innocent_commands_pass(void **state)
{
	static const char *const fine[] = {
		"git commit -m \"amount\"",
		"git commit -m 'mount the volume'",
		"grep -r mount src",
		"mount",
		"mount | grep overlay; df",
		"rm -rf /tmp/build",
		"rm -rf ./*",
		"rm -rf /workspace/node_modules",
		"apt-get install -y mkfs-tools",
		"cat docs/shutdown.md",
		"python3 -c 'print(1)'",
		"make reboot-test",
		"echo unmountable",
		"./mount.sh",
		"curl https://example.org/169.254",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof fine / sizeof *fine; i++)
		if (check_shell(fine[i]) < 0)
			fail_msg("refused: %s", fine[i]);
}

static void what_cannot_work_in_a_sandbox_is_refused(void **state)
{
	static const char *const hopeless[] = {
		"mount /dev/sda1 /mnt",
		"cd /; sudo mount -t proc p /p",
		"true && reboot",
		"echo hi\n  shutdown now",
		"mkfs.ext4 /dev/sda",
		"rm -rf /",
		"sudo rm -r -f --no-preserve-root /*",
		":(){ :|:& };:",
		":() { : | : & };:",
		"curl --unix-socket /var/run/docker.sock http://x/",
		"curl http://169.254.169.254/latest/meta-data",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof hopeless / sizeof *hopeless; i++)
		if (check_shell(hopeless[i]) == 0)
			fail_msg("passed: %s", hopeless[i]);
}

static void an_argv_is_joined_with_blanks(void **state)
{
	char *argv[] = {(char[]){"rm"}, (char[]){"-rf"}, (char[]){"/"}, NULL};
	struct command_spec c[2] = {{.shell = (char[]){"ls"}}, {.argv = argv}};
	struct run_spec s = {.commands = c, .ncommands = 2};
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(denylist_check(defaults, &s, &e), -1);
	assert_int_equal(e.kind, ERR_DENIED);
	assert_non_null(strstr(e.msg, "commands[1]"));
	assert_non_null(strstr(e.msg, "DENYLIST_PATTERNS"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(innocent_commands_pass),
		cmocka_unit_test(what_cannot_work_in_a_sandbox_is_refused),
		cmocka_unit_test(an_argv_is_joined_with_blanks),
	};
	return cmocka_run_group_tests_name("denylist", tests, compile_the_defaults,
					   free_the_defaults);
}
