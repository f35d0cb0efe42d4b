/* SPDX-License-Identifier: MIT */
#include "harness.h"

static pid_t relay_pid;

/* The agent's own socket, reached through `connect`. */
static void through_the_relay(void)
{
	struct stat st;
	int pair[2];

	for (int i = 0; stat(h.socket, &st) < 0; i++) {
		assert_true(i < PATIENCE_MS / 10);
		usleep(10000); /* another process makes it, and its folder */
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	relay_pid = fork();
	assert_true(relay_pid >= 0);
	if (relay_pid == 0) {
		dup2(pair[1], 0);
		dup2(pair[1], 1);
		execl(h.binary, h.binary, "connect", "--socket", h.socket, (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	h.c.fd = pair[0];
}

/* In a folder that is there. */
static void an_agent_that_does_not_listen_yet_is_waited_for(void **state)
{
	char folder[48], aside[64], path[64];
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), peer;

	(void)state;
	test_folder(folder, sizeof(folder), "relay");
	snprintf(aside, sizeof(aside), "%s/aside", folder);
	snprintf(path, sizeof(path), "%s/socket", folder);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", aside);
	relay_pid = fork();
	if (relay_pid == 0) {
		execl(h.binary, h.binary, "connect", "--socket", path, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 1), 0);
	usleep(100000); /* it has looked in vain by then */
	assert_int_equal(rename(aside, path), 0);
	peer = accept(fd, NULL, NULL);
	assert_true(peer >= 0);
	close(peer);
	close(fd);
	waitpid(relay_pid, NULL, 0);
	unlink(path);
	rmdir(folder);
}

static void commands_run_through_connect(void **state)
{
	struct ap_msg m;
	struct result r;
	int status;

	(void)state;
	if (geteuid() != 0)
		skip();
	through_the_relay();
	assert_true(client_next(&m, PATIENCE_MS));
	assert_int_equal(m.type, AP_HELLO);
	m = ap_hello_init();
	client_send(&m);
	m = (struct ap_msg){.type = AP_RESUME};
	client_send(&m);
	r = run_sh("head -c 500000 /dev/zero; echo end >&2");
	assert_int_equal(r.len[0], 500000);
	assert_string_equal(r.out[1], "end\n");
	result_free(&r);
	close(h.c.fd);
	h.c.fd = -1;
	assert_int_equal(waitpid(relay_pid, &status, 0), relay_pid);
	assert_int_equal(status, 0);
}

static void only_root_may_look_and_connect(void **state)
{
	struct stat st;
	char dir[100];

	(void)state;
	if (geteuid() != 0)
		skip();
	snprintf(dir, sizeof(dir), "%s/private", h.dir);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(h.socket, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* Even where the way is open, another uid is turned away unheard. */
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(chmod(h.socket, 0666), 0);
	if (fork() == 0) {
		struct sockaddr_un a = {.sun_family = AF_UNIX};
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		char c;

		snprintf(a.sun_path, sizeof(a.sun_path), "%s", h.socket);
		_exit(setuid(65534) < 0 ||
		      connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
		      read(fd, &c, 1) != 0);
	}
	int status;

	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
	unlink(h.socket);
	rmdir(dir);
}

/* `quiet` in the pid namespace of ns_pid; what it said is in out. Its exit status. */
static int quiet_in(pid_t ns_pid, char out[64])
{
	char path[64];
	int pair[2], ns, status;
	ssize_t n;
	pid_t pid;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)ns_pid);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(ns >= 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	if (pid == 0) {
		if (setns(ns, CLONE_NEWPID) < 0)
			_exit(126);
		pid = fork(); /* only a child is in it */
		if (pid == 0) {
			dup2(pair[1], 1);
			/* Its /proc is of another namespace: no leak is found there. */
			setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
			execl(h.binary, h.binary, "quiet", "--socket", h.socket,
			      (char *)NULL);
			_exit(127);
		}
		waitpid(pid, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 125);
	}
	close(ns);
	close(pair[1]);
	n = read(pair[0], out, 63);
	out[n > 0 ? n : 0] = '\0';
	close(pair[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static void begin_session(void)
{
	struct ap_msg m;

	through_the_relay();
	assert_true(client_next(&m, PATIENCE_MS));
	assert_int_equal(m.type, AP_HELLO);
	m = ap_hello_init();
	client_send(&m);
	m = (struct ap_msg){.type = AP_RESUME};
	client_send(&m);
}

static void end_session(void)
{
	close(h.c.fd);
	h.c.fd = -1;
	waitpid(relay_pid, NULL, 0);
}

/* The first process of a pid namespace that has nothing to do with the agent. */
static int idle(void *arg)
{
	(void)arg;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (pause() < 0)
		;
	return 0;
}

static void quiet_ends_nobody_where_the_agent_is_not_pid_1(void **state)
{
	static char stack[65536] __attribute__((aligned(16)));
	char out[64];
	pid_t pid;
	int status;

	(void)state;
	if (geteuid() != 0)
		skip();
	pid = clone(idle, stack + sizeof(stack), CLONE_NEWPID | SIGCHLD, NULL);
	assert_true(pid > 0);
	assert_int_equal(quiet_in(pid, out), 1);
	assert_string_equal(out, "");
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

static void quiet_ends_all_but_the_agent(void **state)
{
	struct result r;
	char out[64];

	(void)state;
	if (geteuid() != 0)
		skip();
	begin_session();
	r = run_sh("(trap '' TERM; exec setsid sleep 77) >/dev/null 2>&1 &"
		   "setsid sleep 78 >/dev/null 2>&1 &");
	result_free(&r);
	await_output("pgrep -c -x sleep", "2\n");
	assert_int_equal(quiet_in(h.pid, out), 0);
	assert_string_equal(out, "ok\n");
	end_session();
	begin_session();
	r = run_sh("pgrep -c -x sleep; true");
	assert_string_equal(r.out[0], "0\n");
	result_free(&r);
	end_session();
}

static int start_with_own_socket(void **state)
{
	h.own_socket = true;
	return agent_start(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_run_through_connect),
		cmocka_unit_test(an_agent_that_does_not_listen_yet_is_waited_for),
		cmocka_unit_test(quiet_ends_nobody_where_the_agent_is_not_pid_1),
		cmocka_unit_test(quiet_ends_all_but_the_agent),
		cmocka_unit_test(only_root_may_look_and_connect),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, start_with_own_socket, agent_stop);
}
