/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static struct fixture f;
static const char box[] = "mcp-sbx-faults-00000001";
enum { AT_ONCE = 8, KILLS = 12 };

static int group_setup(void **state)
{
	(void)state;
	fixture_init(&f, "bridge");
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	fixture_remove(&f, box);
	fixture_release(&f);
	return 0;
}

static void *create_one(void *arg)
{
	struct sandbox_info i = {0};
	struct err e = ERR_INIT;
	struct sandbox_spec spec = {.name = arg,
				    .identifier = "x",
				    .tenant = "default",
				    .memory_mb = 256,
				    .fresh = true};
	int rc = f.ops->create(f.b, &spec, &i, &e);

	if (rc < 0)
		fprintf(stderr, "# %s\n", e.msg);
	sandbox_info_release(&i);
	return rc < 0 ? NULL : arg;
}

static void eight_sandboxes_can_be_made_at_once(void **state)
{
	char names[AT_ONCE][64];
	pthread_t t[AT_ONCE];
	void *ret;
	int i;

	(void)state;
	for (i = 0; i < AT_ONCE; i++) {
		snprintf(names[i], sizeof names[i], "mcp-sbx-many-%08d", i);
		assert_int_equal(pthread_create(&t[i], NULL, create_one, names[i]), 0);
	}
	for (i = 0; i < AT_ONCE; i++) {
		assert_int_equal(pthread_join(t[i], &ret), 0);
		assert_non_null(ret);
	}
	for (i = 0; i < AT_ONCE; i++) {
		AUTO_FREE char *out = fixture_sh(&f, names[i], "hostname");

		assert_int_equal(strncmp(out, names[i], strlen(names[i])), 0);
	}
	for (i = 0; i < AT_ONCE; i++)
		fixture_remove(&f, names[i]);
}

/* This program as a server of its own: opens, says so, and makes the sandbox. */
static int be_killed(void)
{
	struct err e = ERR_INIT;

	f.ops = backend_find("local");
	fixture_conf(&f, xstrdup(getenv("FAULTS_DATA_DIR")), getenv("FAULTS_INSTANCE"));
	if (fixture_open(&f, &e) < 0 || write(1, "o", 1) != 1)
		return 1;
	create_one((void *)(uintptr_t)box);
	pause();
	return 0;
}

/* A server that is killed so many milliseconds into a create. */
static void killed_after(int ms)
{
	struct timespec t = {.tv_nsec = ms * 1000000L};
	int fds[2], status;
	char c;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	setenv("FAULTS_DATA_DIR", f.conf.data_dir, 1);
	setenv("FAULTS_INSTANCE", f.instance, 1);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(fds[1], 1);
		execl("/proc/self/exe", "test_faults", "be-killed", NULL);
		_exit(127);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 1);
	nanosleep(&t, NULL);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	close(fds[0]);
}

static int running_now(void)
{
	struct sandbox_list l = {0};
	struct err e = ERR_INIT;
	int n = 0;
	size_t i;

	assert_int_equal(f.ops->list(f.b, &l, &e), 0);
	for (i = 0; i < l.n; i++)
		n += l.v[i].running && strcmp(l.v[i].name, box) == 0;
	sandbox_list_release(&l);
	return n;
}

static void a_server_killed_while_it_makes_a_sandbox_leaves_nothing_half(void **state)
{
	struct sandbox_info info = {0};
	struct err e = ERR_INIT;
	int i;

	(void)state;
	for (i = 0; i < KILLS; i++) {
		f.ops->close(f.b);
		f.b = NULL;
		killed_after(i * 8);
		if (fixture_open(&f, &e) < 0)
			fail_msg("%s", e.msg);
		if (running_now() == 0) {
			fixture_create(&f, box, false, &info);
			sandbox_info_release(&info);
		}
		{
			AUTO_FREE char *out = fixture_sh(&f, box, "echo here");

			assert_string_equal(out, "here\n[0]");
		}
		fixture_remove(&f, box);
	}
}

static void a_hostile_tree_is_removed_whole(void **state)
{
	static const char text[] =
		"cd /root && ln -s / all && ln -s /etc/passwd p && mkfifo f && "
		"python3 - <<'EOF'\n"
		"import os\n"
		"for i in range(2000):\n"
		"    os.mkdir('d' * 100); os.chdir('d' * 100)\n"
		"open(b'\\xff\\n\\x01', 'w').close()\n"
		"EOF\n"
		"chmod 0 /root; echo ready";
	struct sandbox_info info = {0};
	AUTO_FREE char *out = NULL;
	bool existed;
	struct err e = ERR_INIT;
	AUTO_FREE char *trash = xasprintf("%s/trash", f.conf.data_dir);

	(void)state;
	fixture_create(&f, box, true, &info);
	sandbox_info_release(&info);
	out = fixture_sh(&f, box, text);
	assert_string_equal(out, "ready\n[0]");
	assert_int_equal(f.ops->remove(f.b, box, &existed, &e), 0);
	f.ops->close(f.b); /* waits for the removal in hand */
	f.b = NULL;
	assert_int_equal(fixture_open(&f, &e), 0);
	f.ops->close(f.b);
	f.b = NULL;
	assert_int_equal(rmdir(trash), 0); /* it is empty */
	assert_true(io_exists("/etc/passwd"));
	assert_int_equal(fixture_open(&f, &e), 0);
}

static pid_t uplink_pid(void)
{
	AUTO_FREE char *path = xasprintf("%s/gateway/pasta", f.conf.run_dir);
	AUTO_BUF text = BUF_INIT(256);
	struct err e = ERR_INIT;
	pid_t pid;

	assert_int_equal(io_read_file(path, &text, &e), 0);
	pid = (pid_t)strtol(text.p, NULL, 10);
	assert_true(pid > 1);
	return pid;
}

/* Distributions ship an AppArmor profile of passt that forbids what is not its own. */
static void the_uplink_is_asked_to_open_no_file_of_ours(void **state)
{
	AUTO_FREE char *path = xasprintf("/proc/%d/cmdline", (int)uplink_pid());
	AUTO_BUF text = BUF_INIT(65536);
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(io_read_file(path, &text, &e), 0);
	assert_memory_equal(text.p, "pasta", sizeof "pasta");
	assert_null(memmem(text.p, text.len, f.conf.run_dir, strlen(f.conf.run_dir)));
}

static void a_killed_uplink_is_started_again(void **state)
{
	struct timespec t = {.tv_nsec = 100000000};
	struct sandbox_info info = {0};
	struct err e = ERR_INIT;

	(void)state;
	kill(uplink_pid(), SIGKILL);
	nanosleep(&t, NULL);
	assert_int_equal(f.ops->probe(f.b, &e), 0);
	fixture_create(&f, box, true, &info);
	sandbox_info_release(&info);
	{
		AUTO_FREE char *out = fixture_sh(&f, box, "cat /proc/net/route | wc -l");

		assert_string_equal(out, "3\n[0]");
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eight_sandboxes_can_be_made_at_once),
		cmocka_unit_test(
			a_server_killed_while_it_makes_a_sandbox_leaves_nothing_half),
		cmocka_unit_test(a_hostile_tree_is_removed_whole),
		cmocka_unit_test(the_uplink_is_asked_to_open_no_file_of_ours),
		cmocka_unit_test(a_killed_uplink_is_started_again),
	};

	if (!fixture_can())
		return 0;
	if (argc > 1 && strcmp(argv[1], "be-killed") == 0)
		return be_killed();
	return FIXTURE_RUN(tests, group_setup, group_teardown);
}
