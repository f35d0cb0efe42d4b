/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/auto.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "master/notify.h"
#include "master/role.h"
#include "master/roleenv.h"

static void a_decent_life_is_followed_by_a_start_at_once(void **state)
{
	struct role r = {
		.state = ROLE_RUNNING, .pid = 7, .started_ms = 0, .quick_deaths = 3};

	(void)state;
	assert_int_equal(role_died(&r, ROLE_DECENT_LIFE_MS), 0);
	assert_int_equal(r.state, ROLE_WAITING);
	assert_int_equal(r.pid, 0);
	assert_int_equal(r.quick_deaths, 0);
}

static void quick_deaths_wait_longer_and_longer_up_to_a_bound(void **state)
{
	struct role r = {0};
	int64_t last = -1;

	(void)state;
	for (int i = 0; i < 20; i++) {
		r.state = ROLE_RUNNING;
		int64_t d = role_died(&r, 10);
		assert_true(d >= last && d <= ROLE_DELAY_MAX_MS);
		assert_int_equal(r.start_at_ms, 10 + d);
		last = d;
	}
	assert_int_equal(last, ROLE_DELAY_MAX_MS);
	assert_true(r.quick_deaths >= ROLE_CRASH_LOOP);
}

static void a_role_that_had_served_is_back_within_a_second(void **state)
{
	struct role r = {.state = ROLE_RUNNING, .ready = true, .quick_deaths = 50};

	(void)state;
	assert_int_equal(role_died(&r, 10), ROLE_DELAY_MAX_SERVED_MS);
}

static void a_wanted_leave_is_no_crash(void **state)
{
	struct role r = {.state = ROLE_LEAVING, .quick_deaths = 9};

	(void)state;
	assert_int_equal(role_died(&r, 1), 0);
	assert_int_equal(r.quick_deaths, 0);
}

/* Runs a shell as a role; what it prints to descriptor 4 comes back. */
static void run_shell(const char *script, char *out, size_t size)
{
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
	char *envp[] = {(char *)"ONLY=this", NULL};
	struct err e = ERR_INIT;
	int p[2], null, status;
	pid_t pid;
	ssize_t n;

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	for (int i = 0; i < 2; i++) {
		int high = fcntl(p[i], F_DUPFD_CLOEXEC, 20);
		close(p[i]);
		p[i] = high;
	}
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	/* a source that lies on another one's place */
	assert_int_equal(dup2(p[1], 3), 3);
	const int fds[] = {null, p[1]};
	const struct role_exec x = {argv, envp, fds, 2};
	assert_int_equal(role_spawn("/bin/sh", &x, &pid, &e), 0);
	close(p[1]);
	close(3);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	n = read(p[0], out, size - 1);
	assert_true(n >= 0);
	out[n] = '\0';
	close(p[0]);
	close(null);
}

static void a_role_has_its_descriptors_and_no_other(void **state)
{
	char out[256];
	int extra = open("/dev/null", O_RDONLY); /* not even CLOEXEC */

	(void)state;
	run_shell(
		"for f in 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$f ] && echo $f; done >&4; "
		"exit 0",
		out, sizeof(out));
	assert_string_equal(out, "3\n4\n");
	close(extra);
}

static void a_role_has_its_environment_and_no_other(void **state)
{
	char out[4096];

	(void)state;
	setenv("DOCKER_SECRET", "x", 1);
	run_shell("tr '\\0' '\\n' </proc/$$/environ >&4", out, sizeof(out));
	assert_string_equal(out, "ONLY=this\n");
}

static bool has(char **env, const char *pair)
{
	for (; *env; env++)
		if (strcmp(*env, pair) == 0)
			return true;
	return false;
}

/* Without JOURNAL_STREAM a role's lines would come to the journal without their level. */
static void a_role_knows_who_reads_its_log(void **state)
{
	char *given[] = {(char *)"JOURNAL_STREAM=8:12345",
			 (char *)"DOCKER_HOST=unix:///x", (char *)"SECRET=x", NULL};
	struct conf c = {0};
	struct err e = ERR_INIT;
	char **env = NULL;

	(void)state;
	assert_int_equal(conf_load("/dev/null", &c, &e), 0);
	assert_int_equal(roleenv_make(ROLE_EDGE, &c, "/run/x", given, &env, &e), 0);
	assert_true(has(env, "JOURNAL_STREAM=8:12345"));
	assert_true(has(env, "RUN_DIR=/run/x"));
	assert_false(has(env, "DOCKER_HOST=unix:///x"));
	assert_false(has(env, "SECRET=x"));
	strv_free(env);
	conf_release(&c);
}

static void systemd_is_told_over_an_abstract_socket(void **state)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char name[64], got[32] = {0};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int n = snprintf(name, sizeof(name), "@mcp-notify-test-%d", (int)getpid());

	(void)state;
	memcpy(a.sun_path, name, (size_t)n);
	a.sun_path[0] = '\0';
	assert_int_equal(
		bind(fd, (struct sockaddr *)&a,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n)),
		0);
	setenv("NOTIFY_SOCKET", name, 1);
	notify_systemd("READY=1");
	unsetenv("NOTIFY_SOCKET");
	notify_systemd("STOPPING=1");
	assert_int_equal(recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT), 7);
	assert_string_equal(got, "READY=1");
	assert_int_equal(recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT), -1);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_decent_life_is_followed_by_a_start_at_once),
		cmocka_unit_test(quick_deaths_wait_longer_and_longer_up_to_a_bound),
		cmocka_unit_test(a_role_that_had_served_is_back_within_a_second),
		cmocka_unit_test(a_wanted_leave_is_no_crash),
		cmocka_unit_test(a_role_has_its_descriptors_and_no_other),
		cmocka_unit_test(a_role_has_its_environment_and_no_other),
		cmocka_unit_test(a_role_knows_who_reads_its_log),
		cmocka_unit_test(systemd_is_told_over_an_abstract_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
