/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "master/datadir.h"
#include "master/role.h"
#include "master/roleenv.h"
#include "tests/unit/testdir.h"

static char root[64];

static int make_root(void **state)
{
	(void)state;
	test_folder(root, sizeof(root), "datadir");
	return chmod(root, 0755);
}

static int remove_root(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	return io_rmtree(root, &e);
}

static void load(struct conf *c)
{
	struct err e = ERR_INIT;
	char path[128];

	snprintf(path, sizeof(path), "%s/data", root);
	setenv("DATA_DIR", path, 1);
	snprintf(path, sizeof(path), "%s/run", root);
	setenv("RUN_DIR", path, 1);
	setenv("EDGE_USER", "nobody", 1);
	if (conf_load(NULL, c, &e) < 0)
		fail_msg("%s", e.msg);
}

static void a_parent_that_others_cannot_pass_is_named(void **state)
{
	struct err e = ERR_INIT;
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/private", root);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/private/clone/data", root);
	assert_int_equal(datadir_check_parents(path, &e), -1);
	assert_int_equal(e.kind, ERR_DENIED);
	assert_non_null(strstr(e.msg, "/private may not be passed"));
	assert_non_null(strstr(e.msg, "DATA_DIR"));
}

static void the_folder_keeps_its_instance_id(void **state)
{
	struct datadir d = DATADIR_INIT;
	struct conf c = {0};
	struct err e = ERR_INIT;
	char first[9];

	(void)state;
	load(&c);
	assert_int_equal(datadir_open(&c, &d, &e), 0);
	memcpy(first, d.instance, sizeof(first));
	assert_int_equal(strspn(first, "0123456789abcdef"), 8);
	datadir_close(&d, true);
	assert_int_equal(datadir_open(&c, &d, &e), 0);
	assert_string_equal(first, d.instance);
	datadir_close(&d, true);
	conf_release(&c);
}

static void a_second_server_is_refused_by_pid(void **state)
{
	struct datadir d = DATADIR_INIT, other = DATADIR_INIT;
	struct conf c = {0};
	struct err e = ERR_INIT;
	pid_t pid = 0;
	char want[32];

	(void)state;
	load(&c);
	assert_int_equal(datadir_open(&c, &d, &e), 0);
	assert_int_equal(datadir_open(&c, &other, &e), -1);
	assert_int_equal(e.kind, ERR_CONFLICT);
	snprintf(want, sizeof(want), "pid %d", (int)getpid());
	assert_non_null(strstr(e.msg, want));
	e = (struct err)ERR_INIT;
	assert_int_equal(datadir_owner(c.data_dir, &pid, &e), 0);
	assert_int_equal(pid, getpid());
	datadir_close(&d, true);
	assert_int_equal(datadir_owner(c.data_dir, &pid, &e), 0);
	assert_int_equal(pid, 0);
	conf_release(&c);
}

/* The folder is of a file system like that; said in words for who runs the server. */
static void told_of(unsigned long flags, const char *options, const char *words)
{
	struct datadir d = DATADIR_INIT;
	struct conf c = {0};
	struct err e = ERR_INIT;

	load(&c);
	mkdir(c.data_dir, 0755);
	assert_int_equal(mount("x", c.data_dir, "tmpfs", flags, options), 0);
	assert_int_equal(datadir_open(&c, &d, &e), -1);
	assert_int_equal(umount(c.data_dir), 0);
	if (!strstr(e.msg, words) || !strstr(e.msg, c.data_dir))
		fail_msg("%s", e.msg);
	conf_release(&c);
}

static void a_folder_that_cannot_be_written_comes_with_advice(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	told_of(MS_RDONLY, "mode=755", "Read-only file system; make it writable");
	told_of(0, "mode=755,nr_inodes=1", "No space left on device; make room");
}

static void artifacts_and_database_are_the_edges_groups_to_read(void **state)
{
	struct datadir d = DATADIR_INIT;
	struct conf c = {0};
	struct err e = ERR_INIT;
	struct stat st;
	char path[160];

	(void)state;
	load(&c);
	assert_int_equal(datadir_open(&c, &d, &e), 0);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", c.data_dir, i ? "db" : "artifacts");
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 02750);
		assert_int_equal(st.st_gid, d.edge_gid);
	}
	datadir_close(&d, true);
	conf_release(&c);
}

static bool has(char **env, const char *pair)
{
	for (char **p = env; *p; p++)
		if (strcmp(*p, pair) == 0)
			return true;
	return false;
}

static void an_edge_gets_the_settings_and_no_credential(void **state)
{
	char *own[] = {(char *)"PATH=/bin", (char *)"DOCKER_HOST=tcp://x",
		       (char *)"AWS_SECRET_ACCESS_KEY=s",
		       (char *)"KUBERNETES_SERVICE_HOST=k", NULL};
	struct conf c = {0};
	struct err e = ERR_INIT;
	char **edge = NULL, **runner = NULL;

	(void)state;
	setenv("TOOL_DESC_RUN_SANDBOX_APPEND", "it's \"quoted\" $HOME", 1);
	setenv("PORT", "18499", 1);
	load(&c);
	if (roleenv_make(ROLE_EDGE, &c, "/run/x", own, &edge, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(roleenv_make(ROLE_RUNNER, &c, "/run/x", own, &runner, &e), 0);
	assert_true(has(edge, "PATH=/bin") && has(runner, "PATH=/bin"));
	assert_true(has(edge, "RUN_DIR=/run/x") && has(edge, "PORT=18499"));
	assert_true(has(edge, "TOOL_DESC_RUN_SANDBOX_APPEND=it's \"quoted\" $HOME"));
	assert_true(has(runner, "DOCKER_HOST=tcp://x"));
	assert_false(has(edge, "DOCKER_HOST=tcp://x"));
	assert_false(has(edge, "KUBERNETES_SERVICE_HOST=k"));
	assert_false(has(edge, "AWS_SECRET_ACCESS_KEY=s"));
	assert_false(has(runner, "AWS_SECRET_ACCESS_KEY=s"));
	strv_free(edge);
	strv_free(runner);
	conf_release(&c);
	unsetenv("TOOL_DESC_RUN_SANDBOX_APPEND");
	unsetenv("PORT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_parent_that_others_cannot_pass_is_named),
		cmocka_unit_test(the_folder_keeps_its_instance_id),
		cmocka_unit_test(a_second_server_is_refused_by_pid),
		cmocka_unit_test(a_folder_that_cannot_be_written_comes_with_advice),
		cmocka_unit_test(artifacts_and_database_are_the_edges_groups_to_read),
		cmocka_unit_test(an_edge_gets_the_settings_and_no_credential),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
