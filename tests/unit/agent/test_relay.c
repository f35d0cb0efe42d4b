/* SPDX-License-Identifier: MIT */
#include "harness.h"

static pid_t relay_pid;

/* The agent's own socket, reached through `connect`. */
static void through_the_relay(void)
{
	struct stat st;
	int pair[2];

	for (int i = 0; i < 200 && stat(h.socket, &st) < 0; i++)
		usleep(10000); /* another process makes it */
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

static void commands_run_through_connect(void **state)
{
	struct ap_msg m;
	struct result r;
	int status;

	(void)state;
	if (geteuid() != 0)
		skip();
	through_the_relay();
	assert_true(client_next(&m, 5000));
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

static int start_with_own_socket(void **state)
{
	h.own_socket = true;
	return agent_start(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_run_through_connect),
		cmocka_unit_test(only_root_may_look_and_connect),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, start_with_own_socket, agent_stop);
}
