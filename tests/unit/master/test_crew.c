/* SPDX-License-Identifier: MIT */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "master/crew.h"
#include "tests/unit/testdir.h"

/*
 * The crew executes this program again as its roles: an edge or runner that says
 * ready and waits for TERM, USR1 or the end of the life pipe. A runner sends back
 * the packets of its first edge.
 */
enum { PATIENCE_MS = 60000 }; /* then it hangs */

static volatile sig_atomic_t told;

static void on_signal(int sig)
{
	told = sig;
}

static int role_main(char **argv)
{
	char packet[64];
	struct sigaction sa = {.sa_handler = on_signal};
	bool is_runner = strcmp(argv[2], "runner") == 0;
	struct pollfd p[2] = {
		{.fd = ROLEFD_LIFE},
		{.fd = is_runner ? ROLEFD_RUNNER_EDGES : -1, .events = POLLIN}};

	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	if (write(ROLEFD_READY, "r", 1) != 1)
		return 1;
	close(ROLEFD_READY);
	while (!told && poll(p, 2, -1) > 0 && !p[0].revents) {
		ssize_t n = recv(p[1].fd, packet, sizeof(packet), 0);

		if (n <= 0 || send(p[1].fd, packet, (size_t)n, 0) != n)
			return 1;
	}
	return 0;
}

static char root[64];
static struct datadir dir;
static struct crew crew;

static void load(struct conf *c)
{
	struct err e = ERR_INIT;

	if (conf_load(NULL, c, &e) < 0)
		fail_msg("%s", e.msg);
}

static void turn(void)
{
	struct pollfd p[1 + ROLE_EDGES_MAX];
	int status;
	pid_t pid;

	crew_tick(&crew, clock_mono_ms());
	for (int i = 0; i < crew.nroles; i++)
		p[i] = (struct pollfd){.fd = crew.roles[i].ready_fd, .events = POLLIN};
	poll(p, (nfds_t)crew.nroles, 10);
	for (int i = 0; i < crew.nroles; i++)
		if (p[i].fd >= 0 && p[i].revents)
			crew_read_ready(&crew.roles[i]);
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		assert_true(crew_reap(&crew, pid, status, clock_mono_ms()));
}

static void turn_until(bool (*done)(const struct crew *))
{
	const int64_t end = clock_mono_ms() + PATIENCE_MS;

	while (!done(&crew) && clock_mono_ms() < end)
		turn();
	assert_true(done(&crew));
}

static int start(void **state)
{
	struct conf c = {0};
	struct err e = ERR_INIT;

	(void)state;
	load(&c);
	if (crew_open(&crew, &c, &dir, environ, &e) < 0)
		fail_msg("%s", e.msg);
	turn_until(crew_ready);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	crew_stop(&crew, PATIENCE_MS, clock_mono_ms());
	turn_until(crew_gone);
	crew_close(&crew);
	return 0;
}

static void edges_stay_until_the_runner_has_stopped(void **state)
{
	struct role *runner = NULL;
	pid_t edge = 0;
	int status;

	(void)state;
	for (int i = 0; i < crew.nroles; i++)
		if (crew.roles[i].kind == ROLE_RUNNER)
			runner = &crew.roles[i];
		else
			edge = crew.roles[i].pid;
	assert_int_equal(kill(runner->pid, SIGSTOP), 0); /* it takes its time */
	crew_stop(&crew, PATIENCE_MS, clock_mono_ms());
	for (int i = 0; i < 20; i++)
		turn();
	assert_int_equal(waitpid(edge, &status, WNOHANG), 0);
	assert_int_equal(kill(runner->pid, SIGCONT), 0);
	turn_until(crew_gone);
}

static void what_dies_is_started_again(void **state)
{
	pid_t old[3];

	(void)state;
	for (int i = 0; i < crew.nroles; i++) {
		old[i] = crew.roles[i].pid;
		assert_int_equal(kill(old[i], SIGKILL), 0);
	}
	while (crew_ready(&crew)) /* until the deaths are seen */
		turn();
	turn_until(crew_ready);
	for (int i = 0; i < crew.nroles; i++)
		assert_int_not_equal(crew.roles[i].pid, old[i]);
}

static void what_was_sent_to_a_dead_role_is_read_by_the_next(void **state)
{
	char back[16] = {0};
	struct pollfd p = {.fd = crew.edge_end[0], .events = POLLIN};

	(void)state;
	kill(crew.roles[0].pid, SIGSTOP);
	assert_int_equal(send(crew.edge_end[0], "kept", 4, 0), 4);
	kill(crew.roles[0].pid, SIGKILL);
	while (crew_ready(&crew))
		turn();
	turn_until(crew_ready);
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(recv(p.fd, back, sizeof(back), 0), 4);
	assert_string_equal(back, "kept");
}

static void a_replaced_role_is_no_crash_and_starts_at_once(void **state)
{
	pid_t old = crew.roles[0].pid;

	(void)state;
	crew_replace(&crew.roles[0], clock_mono_ms());
	assert_false(crew_ready(&crew));
	turn_until(crew_ready);
	assert_int_not_equal(crew.roles[0].pid, old);
	assert_int_equal(crew.roles[0].quick_deaths, 0);
}

static void a_role_that_does_not_leave_is_killed(void **state)
{
	pid_t old = crew.roles[1].pid;

	(void)state;
	kill(old, SIGSTOP); /* TERM waits */
	crew_replace(&crew.roles[1], clock_mono_ms());
	crew.roles[1].kill_at_ms = clock_mono_ms() + 50;
	turn_until(crew_ready);
	assert_int_not_equal(crew.roles[1].pid, old);
}

static void a_new_configuration_replaces_all_roles(void **state)
{
	struct conf c = {0};
	struct err e = ERR_INIT;
	pid_t runner = crew.roles[0].pid, edge = crew.roles[1].pid;

	(void)state;
	setenv("DEFAULT_PIDS", "333", 1);
	load(&c);
	assert_int_equal(crew_reconfigure(&crew, &c, clock_mono_ms(), &e), 0);
	assert_int_equal(crew.conf.default_pids, 333);
	turn_until(crew_ready);
	assert_int_not_equal(crew.roles[0].pid, runner);
	assert_int_not_equal(crew.roles[1].pid, edge);
	unsetenv("DEFAULT_PIDS");
}

static void what_cannot_change_is_refused_by_name_and_nothing_happens(void **state)
{
	static const char *const fixed[][2] = {{"EDGE_PROCESSES", "1"},
					       {"SANDBOX_BACKEND", "docker"},
					       {"DOCKER_HOST", "unix:///run/other.sock"},
					       {"KUBERNETES_CONTEXT", "other"},
					       {"KUBERNETES_SANDBOX_NAMESPACE", "other"},
					       {"KUBERNETES_LABEL_PREFIX", "other."}};
	pid_t runner = crew.roles[0].pid;

	(void)state;
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		struct conf c = {0};
		struct err e = ERR_INIT;

		setenv(fixed[i][0], fixed[i][1], 1);
		load(&c);
		assert_int_equal(crew_reconfigure(&crew, &c, clock_mono_ms(), &e), -1);
		unsetenv(fixed[i][0]);
		setenv("EDGE_PROCESSES", "2", 1);
		if (!strstr(e.msg, fixed[i][0]) || !strstr(e.msg, "restart it"))
			fail_msg("%s: %s", fixed[i][0], e.msg);
		assert_int_equal(crew.roles[0].pid, runner);
		assert_true(crew_ready(&crew));
		conf_release(&c);
	}
}

static int make_root(void **state)
{
	struct conf c = {0};
	struct err e = ERR_INIT;
	char path[128];

	(void)state;
	test_folder(root, sizeof(root), "crew");
	if (chmod(root, 0755) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/data", root);
	setenv("DATA_DIR", path, 1);
	snprintf(path, sizeof(path), "%s/run", root);
	setenv("RUN_DIR", path, 1);
	setenv("EDGE_USER", "nobody", 1);
	setenv("EDGE_PROCESSES", "2", 1);
	log_init("test", LOG_LEVEL_ERROR);
	load(&c);
	if (datadir_open(&c, &dir, &e) < 0)
		fail_msg("%s", e.msg);
	conf_release(&c);
	return 0;
}

static int remove_root(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	datadir_close(&dir, true);
	return io_rmtree(root, &e);
}

#define WITH_CREW(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WITH_CREW(what_dies_is_started_again),
		WITH_CREW(what_was_sent_to_a_dead_role_is_read_by_the_next),
		WITH_CREW(a_replaced_role_is_no_crash_and_starts_at_once),
		WITH_CREW(a_role_that_does_not_leave_is_killed),
		WITH_CREW(a_new_configuration_replaces_all_roles),
		WITH_CREW(edges_stay_until_the_runner_has_stopped),
		WITH_CREW(what_cannot_change_is_refused_by_name_and_nothing_happens),
	};

	if (argc > 2 && strcmp(argv[1], "role") == 0)
		return role_main(argv);
	return cmocka_run_group_tests(tests, make_root, remove_root);
}
