/* SPDX-License-Identifier: MIT */
#include <linux/io_uring.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "edge/lockdown.h"
#include "rig.h"

/* What a child does once it is locked down; its exit status tells. */
static int outcome(int (*what)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct err e = ERR_INIT;

		if (lockdown_user("nobody", &e) < 0 || lockdown_calls(&e) < 0)
			_exit(99);
		_exit(what());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int do_nothing(void)
{
	return 0;
}

static int do_fork(void)
{
	return (int)syscall(SYS_fork) * 0;
}

static int do_clone_process(void)
{
	return (int)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) * 0;
}

static int do_exec(void)
{
	char *argv[] = {(char *)"true", NULL};

	execv("/bin/true", argv);
	return 0;
}

static int do_ptrace(void)
{
	ptrace(PTRACE_ATTACH, getppid(), 0, 0);
	return 0;
}

static int do_setuid(void)
{
	return setuid(0) == 0 ? 0 : 1;
}

/* The errno of what must be refused; 0: it was possible. */
static int do_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0) < 0 ? errno : 0;
}

static int do_write_file(void)
{
	return open("/tmp/edge-lockdown-test", O_WRONLY | O_CREAT, 0600) < 0 ? errno : 0;
}

static int do_read_file(void)
{
	return open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 ? errno : 0;
}

static int do_map_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED
		       ? errno
		       : 0;
}

static int do_kill(void)
{
	return kill(getppid(), 0) < 0 ? errno : 0;
}

static int do_unlink(void)
{
	return unlink("/nonexistent") < 0 ? errno : 0;
}

static int pair[2]; /* made before the door is shut */

static int do_end_both_sides(void)
{
	return shutdown(pair[0], SHUT_RDWR) < 0 ? errno : 0;
}

static int do_end_own_side(void)
{
	return shutdown(pair[0], SHUT_WR) < 0 ? errno : 0;
}

static void spawning_and_becoming_another_kill_the_process(void **state)
{
	int (*const what[])(void) = {do_fork, do_clone_process, do_exec, do_ptrace,
				     do_setuid};

	(void)state;
	for (size_t i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
		int status = outcome(what[i]);

		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
			fail_msg("case %zu: status %x", i, (unsigned)status);
	}
}

static void sockets_files_and_code_cannot_be_made(void **state)
{
	int (*const what[])(void) = {do_socket, do_write_file, do_map_code,
				     do_kill,   do_unlink,     do_end_both_sides};

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	for (size_t i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
		int status = outcome(what[i]);

		if (!WIFEXITED(status) || WEXITSTATUS(status) != EPERM)
			fail_msg("case %zu: status %x", i, (unsigned)status);
	}
	assert_int_equal(outcome(do_nothing), 0);
	assert_int_equal(outcome(do_read_file), 0);
	assert_int_equal(outcome(do_end_own_side), 0);
	close(pair[0]);
	close(pair[1]);
}

/* A ring calls the kernel past all filters; libuv makes one with its loop, if it can. */
static void no_ring_can_be_had_before_the_loop_is_made(void **state)
{
	int status = 0;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		struct io_uring_params params = {0};
		struct err e = ERR_INIT;

		if (lockdown_user("nobody", &e) < 0)
			_exit(99);
		_exit(syscall(SYS_io_uring_setup, 4, &params) < 0 ? errno : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), ENOSYS);
}

static void find_line(pid_t pid, const char *name, char value[256])
{
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	assert_non_null(f);
	value[0] = '\0';
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0)
			snprintf(value, 256, "%s", line + strlen(name));
	fclose(f);
}

static void an_edge_has_no_right_it_does_not_need(void **state)
{
	static const struct {
		const char *name, *value;
	} cases[] = {
		{"Uid:\t", "65534\t65534\t65534\t65534\n"},
		{"Gid:\t", "65534\t65534\t65534\t65534\n"},
		{"Groups:\t", "65534 \n"},
		{"CapInh:\t", "0000000000000000\n"},
		{"CapPrm:\t", "0000000000000000\n"},
		{"CapEff:\t", "0000000000000000\n"},
		{"CapBnd:\t", "0000000000000000\n"},
		{"CapAmb:\t", "0000000000000000\n"},
		{"NoNewPrivs:\t", "1\n"},
		{"Seccomp:\t", "2\n"},
	};
	struct rig r;

	(void)state;
	if (geteuid() != 0)
		skip();
	rig_open(&r);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char value[256];

		find_line(r.pid, cases[i].name, value);
		if (strcmp(value, cases[i].value) != 0)
			fail_msg("%s%s", cases[i].name, value);
	}
	rig_close(&r);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(spawning_and_becoming_another_kill_the_process),
	cmocka_unit_test(sockets_files_and_code_cannot_be_made),
	cmocka_unit_test(no_ring_can_be_had_before_the_loop_is_made),
	cmocka_unit_test(an_edge_has_no_right_it_does_not_need),
};

RIG_MAIN(tests)
