/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/agentsock.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/unit/testdir.h"

#define AGENTSOCK_OWN "agent"

/*
 * The folder of a sandbox as its root may leave it. The listening process is this
 * test: its own control group stands for the sandbox's.
 */
static char top[64], folder[80], elsewhere[80];
static char parent[4096], child[4096];

/* Splits the group of this process into the parent and the last name. */
static void own_group(void)
{
	AUTO_BUF text = BUF_INIT(65536);
	struct err e = ERR_INIT;
	struct str rest, line;
	const char *path, *slash = NULL;
	int i;

	assert_int_equal(io_read_file("/proc/self/cgroup", &text, &e), 0);
	rest = (struct str){text.p, text.len};
	assert_true(str_cut(&rest, '\n', &line));
	path = line.p;
	for (i = 0; i < 2; i++)
		path = (const char *)memchr(path, ':', line.n) + 1;
	for (i = 0; path + i < line.p + line.n; i++)
		if (path[i] == '/')
			slash = path + i;
	assert_non_null(slash);
	snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
	snprintf(child, sizeof child, "%.*s", (int)(line.p + line.n - slash - 1),
		 slash + 1);
}

static const struct agentsock_own place = {folder, AGENTSOCK_OWN, ""};

static int setup(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	test_folder(top, sizeof top, "agentsock");
	snprintf(folder, sizeof folder, "%s/agent", top);
	snprintf(elsewhere, sizeof elsewhere, "%s/host", top);
	assert_int_equal(io_mkdirs(folder, 0700, &e), 0);
	assert_int_equal(io_mkdirs(elsewhere, 0700, &e), 0);
	own_group();
	return 0;
}

static int teardown(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	return io_rmtree(top, &e);
}

static int listen_in(const char *dir)
{
	AUTO_CLOSE int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err e = ERR_INIT;
	int fd = -1;

	assert_int_equal(agentsock_listen(dir_fd, AGENTSOCK_OWN, &fd, &e), 0);
	return fd;
}

static int connect_as(const char *group_parent, const char *group_child, struct err *e)
{
	AUTO_FREE char *group = xasprintf("%s/%s", group_parent, group_child);
	struct agentsock_own o = {folder, AGENTSOCK_OWN, group};
	AUTO_CLOSE int fd = -1;

	*e = (struct err)ERR_INIT;
	return agentsock_own_connect(&o, &fd, e);
}

static void an_agent_in_the_group_of_the_sandbox_is_connected_to(void **state)
{
	AUTO_CLOSE int fd = listen_in(folder);
	struct err e;

	(void)state;
	assert_int_equal(connect_as(parent, child, &e), 0);
}

static void who_listens_outside_of_the_group_is_refused(void **state)
{
	char other[] = "/mcp-sandboxd-00000000";
	AUTO_CLOSE int fd = listen_in(folder);
	struct err e;

	(void)state;
	assert_int_equal(connect_as(other, "mcp-sbx-a", &e), -1);
	assert_non_null(strstr(e.msg, "not of this sandbox"));
}

static void a_group_is_named_by_whole_words(void **state)
{
	static const char text[] = "3:memory:/mcp-sandboxd-1/mcp-sbx-a-12-34\n"
				   "0::/system.slice/docker-00ff.scope\n";
	static const struct {
		const char *group;
		bool is;
	} cases[] = {
		{"/mcp-sandboxd-1/mcp-sbx-a-12-34", true},
		{"/mcp-sandboxd-1/mcp-sbx-a-12", false},
		{"/mcp-sandboxd-1", true},
		{"00ff", true},
		{"00f", false},
		{"34\n0", false},
		{"nobody", false},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++)
		if (agentsock_names_group(text, sizeof text - 1, cases[i].group) !=
		    cases[i].is)
			fail_msg("%s", cases[i].group);
}

static void a_link_to_another_socket_is_not_followed(void **state)
{
	AUTO_CLOSE int fd = listen_in(elsewhere);
	AUTO_FREE char *from = xasprintf("%s/" AGENTSOCK_OWN, folder);
	AUTO_FREE char *to = xasprintf("%s/" AGENTSOCK_OWN, elsewhere);
	struct err e;

	(void)state;
	unlink(from);
	assert_int_equal(symlink(to, from), 0);
	assert_int_equal(connect_as(parent, child, &e), -1);
	assert_non_null(strstr(e.msg, "none"));
	/* Nor is the folder, if that were a link. */
	assert_int_equal(io_rmtree(folder, &e), 0);
	assert_int_equal(symlink(elsewhere, folder), 0);
	assert_int_equal(connect_as(parent, child, &e), -1);
	assert_int_equal(unlink(folder), 0);
	assert_int_equal(io_mkdirs(folder, 0700, &e), 0);
}

static void another_thing_in_its_place_is_refused(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/" AGENTSOCK_OWN, folder);
	struct err e;

	(void)state;
	unlink(path);
	assert_int_equal(connect_as(parent, child, &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(connect_as(parent, child, &e), -1);
	assert_int_equal(e.kind, ERR_BACKEND);
	unlink(path);
}

static void waiting_ends_when_the_socket_comes_to_its_name(void **state)
{
	AUTO_FREE char *from = xasprintf("%s/" AGENTSOCK_OWN, elsewhere);
	AUTO_FREE char *to = xasprintf("%s/" AGENTSOCK_OWN, folder);
	AUTO_CLOSE int fd = listen_in(elsewhere);
	struct err e = ERR_INIT;
	pid_t pid;

	(void)state;
	unlink(to);
	assert_int_equal(agentsock_own_wait(&place, getpid(), 20, &e), -1);
	assert_int_equal(e.kind, ERR_TIMEOUT);
	e = (struct err)ERR_INIT;
	pid = fork();
	if (pid == 0)
		_exit(rename(from, to) < 0);
	assert_int_equal(agentsock_own_wait(&place, getpid(), 60000, &e), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void waiting_ends_with_the_sandbox(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/" AGENTSOCK_OWN, folder);
	struct err e = ERR_INIT;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	unlink(path);
	assert_int_equal(agentsock_own_wait(&place, pid, 60000, &e), -1);
	assert_non_null(strstr(e.msg, "ended"));
	waitpid(pid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_agent_in_the_group_of_the_sandbox_is_connected_to),
		cmocka_unit_test(who_listens_outside_of_the_group_is_refused),
		cmocka_unit_test(a_group_is_named_by_whole_words),
		cmocka_unit_test(a_link_to_another_socket_is_not_followed),
		cmocka_unit_test(another_thing_in_its_place_is_refused),
		cmocka_unit_test(waiting_ends_when_the_socket_comes_to_its_name),
		cmocka_unit_test(waiting_ends_with_the_sandbox),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
