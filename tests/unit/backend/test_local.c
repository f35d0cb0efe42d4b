/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <sys/mount.h>

#include "backend/local/pidref.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/num.h"

static struct fixture f;
static const char box[] = "mcp-sbx-story-00000001";

static int group_setup(void **state)
{
	(void)state;
	fixture_init(&f, "bridge");
	fixture_remove(&f, box);
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	fixture_remove(&f, box);
	fixture_release(&f);
	return 0;
}

static bool is_listed(const char *name, bool *ret_running)
{
	struct sandbox_list l = {0};
	struct err e = ERR_INIT;
	bool found = false;
	size_t i;

	assert_int_equal(f.ops->list(f.b, &l, &e), 0);
	for (i = 0; i < l.n; i++)
		if (strcmp(l.v[i].name, name) == 0) {
			found = true;
			*ret_running = l.v[i].running;
		}
	sandbox_list_release(&l);
	return found;
}

static void a_sandbox_keeps_its_files_over_stop_and_create(void **state)
{
	struct sandbox_info i = {0};
	struct err e = ERR_INIT;
	uint64_t kills = 99;
	bool running = false;

	(void)state;
	fixture_create(&f, box, true, &i);
	assert_true(i.running);
	assert_true(i.fresh);
	sandbox_info_release(&i);
	{
		AUTO_FREE char *out = fixture_sh(&f, box, "echo kept >/root/x; id -u");

		assert_string_equal(out, "0\n[0]");
	}
	assert_true(is_listed(box, &running));
	assert_true(running);
	assert_int_equal(f.ops->oom_kills(f.b, box, &kills, &e), 0);
	assert_int_equal(kills, 0);
	assert_int_equal(f.ops->stop(f.b, box, &e), 0);
	assert_true(is_listed(box, &running));
	assert_false(running);
	fixture_create(&f, box, false, &i);
	assert_false(i.fresh);
	sandbox_info_release(&i);
	{
		AUTO_FREE char *out = fixture_sh(&f, box, "cat /root/x");

		assert_string_equal(out, "kept\n[0]");
	}
}

static void a_running_sandbox_is_adopted_by_the_next_server(void **state)
{
	struct err e = ERR_INIT;
	bool running = false;

	(void)state;
	f.ops->close(f.b);
	f.b = NULL;
	assert_int_equal(fixture_open(&f, &e), 0);
	assert_true(is_listed(box, &running));
	assert_true(running);
	{
		AUTO_FREE char *out = fixture_sh(&f, box, "cat /root/x");

		assert_string_equal(out, "kept\n[0]");
	}
}

/* Damaged by a crash of the machine, say: the files are the user's all the same. */
static void a_state_that_cannot_be_read_costs_no_files(void **state)
{
	AUTO_FREE char *path =
		xasprintf("%s/sandboxes/%s/state.json", f.conf.data_dir, box);
	AUTO_BUF good = BUF_INIT(65536);
	struct sandbox_info i = {0};
	struct sandbox_spec spec = {.name = box,
				    .identifier = "x",
				    .tenant = "default",
				    .cpu_cores = 1,
				    .memory_mb = 256,
				    .pids = 128};
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(f.ops->stop(f.b, box, &e), 0);
	assert_int_equal(io_read_file(path, &good, &e), 0);
	assert_int_equal(io_write_file_atomic(path, "", 0, 0600, &e), 0);
	assert_int_equal(f.ops->create(f.b, &spec, &i, &e), -1);
	assert_non_null(strstr(e.msg, "files are kept"));
	f.ops->close(f.b);
	f.b = NULL;
	e = (struct err)ERR_INIT;
	assert_int_equal(fixture_open(&f, &e), 0);
	assert_int_equal(io_write_file_atomic(path, good.p, good.len, 0600, &e), 0);
	fixture_create(&f, box, false, &i);
	sandbox_info_release(&i);
	{
		AUTO_FREE char *out = fixture_sh(&f, box, "cat /root/x");

		assert_string_equal(out, "kept\n[0]");
	}
}

static void a_sandbox_of_another_policy_is_told_until_it_starts_anew(void **state)
{
	struct sandbox_list l = {0};
	struct sandbox_info i = {0};
	struct err e = ERR_INIT;

	(void)state;
	f.ops->close(f.b);
	f.b = NULL;
	f.conf.no_new_privileges = !f.conf.no_new_privileges;
	assert_int_equal(fixture_open(&f, &e), 0);
	assert_int_equal(f.ops->list(f.b, &l, &e), 0);
	assert_int_equal(l.n, 1);
	assert_true(l.v[0].outdated);
	sandbox_list_release(&l);
	assert_int_equal(f.ops->stop(f.b, box, &e), 0);
	fixture_create(&f, box, false, &i);
	assert_false(i.outdated);
	sandbox_info_release(&i);
}

/* What a file of its control group says, on whichever version. */
static char *limit_of_group(const char *v1, const char *v2)
{
	AUTO_FREE char *find = xasprintf(
		"cat $(find /sys/fs/cgroup -path '*-%s/%s/%s' -o -path '*-%s/%s/%s')",
		f.instance, box, v1, f.instance, box, v2);
	const char *argv[] = {"sh", "-c", find, NULL};

	return fixture_host(argv);
}

static void changed_limits_reach_a_sandbox_that_runs(void **state)
{
	struct sandbox_list l = {0};
	struct err e = ERR_INIT;

	(void)state;
	f.ops->close(f.b);
	f.b = NULL;
	f.conf.default_memory_mb = 400;
	f.conf.default_pids = 100;
	assert_int_equal(fixture_open(&f, &e), 0);
	assert_int_equal(f.ops->list(f.b, &l, &e), 0);
	assert_false(l.v[0].outdated);
	sandbox_list_release(&l);
	{
		AUTO_FREE char *out = fixture_sh(&f, box, "cat /root/x");
		AUTO_FREE char *memory =
			limit_of_group("memory.limit_in_bytes", "memory.max");
		AUTO_FREE char *pids = limit_of_group("pids.max", "pids.max");

		assert_string_equal(out, "kept\n[0]");
		assert_int_equal(strtoll(memory, NULL, 10), INT64_C(400) << 20);
		assert_int_equal(strtoll(pids, NULL, 10),
				 fixture_with_gvisor() ? 464 : 100);
	}
	f.conf.default_memory_mb = 512;
	f.conf.default_pids = 128;
}

/* With gVisor all of the sandbox ends; its files stay. */
static void memory_beyond_the_limit_is_counted_as_an_oom_kill(void **state)
{
	AUTO_FREE char *out =
		fixture_sh(&f, box, "python3 -c 'x = b\"x\" * (1 << 30)'; echo $?");
	struct sandbox_info i = {0};
	struct err e = ERR_INIT;
	uint64_t kills = 0;

	(void)state;
	assert_int_equal(f.ops->oom_kills(f.b, box, &kills, &e), 0);
	assert_true(kills > 0);
	if (!fixture_with_gvisor()) {
		assert_non_null(strstr(out, "137"));
		return;
	}
	assert_int_equal(f.ops->stop(f.b, box, &e), 0);
	fixture_create(&f, box, false, &i);
	sandbox_info_release(&i);
	{
		AUTO_FREE char *kept = fixture_sh(&f, box, "cat /root/x");

		assert_string_equal(kept, "kept\n[0]");
	}
}

/* gVisor ends where the kernel refuses it a thread: what it may have must do. */
static void as_many_processes_as_allowed_can_run(void **state)
{
	AUTO_FREE char *out = fixture_sh(
		&f, box, "for i in $(seq 100); do sleep 5 & done; jobs | wc -l");

	(void)state;
	assert_string_equal(out, "100\n[0]");
}

static void the_number_of_processes_is_limited(void **state)
{
	AUTO_FREE char *out = NULL;

	(void)state;
	if (fixture_with_gvisor())
		skip();
	out = fixture_sh(&f, box,
			 "for i in $(seq 300); do sleep 5 & done 2>&1 | grep -c -i "
			 "'fork\\|resource' ; kill $(jobs -p)");
	assert_true(strtol(out, NULL, 10) > 0 || strstr(out, "fork") != NULL);
}

static void temporary_files_outlive_a_stop_too(void **state)
{
	struct sandbox_info i = {0};
	struct err e = ERR_INIT;

	(void)state;
	{
		AUTO_FREE char *out =
			fixture_sh(&f, box, "echo t >/tmp/t; stat -c %a /tmp");

		assert_string_equal(out, "1777\n[0]");
	}
	assert_int_equal(f.ops->stop(f.b, box, &e), 0);
	fixture_create(&f, box, false, &i);
	sandbox_info_release(&i);
	{
		AUTO_FREE char *out = fixture_sh(&f, box, "cat /tmp/t");

		assert_string_equal(out, "t\n[0]");
	}
}

static void removal_frees_the_name_and_leaves_nothing(void **state)
{
	static const char *const mounts[] = {"cat", "/proc/self/mountinfo", NULL};
	struct err e = ERR_INIT;
	bool existed = false, running;

	(void)state;
	assert_int_equal(f.ops->remove(f.b, box, &existed, &e), 0);
	assert_true(existed);
	assert_int_equal(f.ops->remove(f.b, box, &existed, &e), 0);
	assert_false(existed);
	assert_false(is_listed(box, &running));
	f.ops->close(f.b);
	f.b = NULL;
	{
		AUTO_FREE char *text = fixture_host(mounts);

		if (strstr(text, f.instance))
			fail_msg("still mounted: %.200s", strstr(text, f.instance) - 60);
	}
	{
		AUTO_FREE char *v1 =
			xasprintf("/sys/fs/cgroup/memory/mcp-sandboxd-%s", f.instance);
		AUTO_FREE char *v2 =
			xasprintf("/sys/fs/cgroup/mcp-sandboxd-%s", f.instance);

		assert_false(io_exists(v1));
		assert_false(io_exists(v2));
	}
	assert_int_equal(fixture_open(&f, &e), 0);
}

static void a_sandbox_that_ended_by_itself_leaves_no_group_at_the_close(void **state)
{
	AUTO_FREE char *v1 =
		xasprintf("/sys/fs/cgroup/memory/mcp-sandboxd-%s", f.instance);
	AUTO_FREE char *v2 = xasprintf("/sys/fs/cgroup/mcp-sandboxd-%s", f.instance);
	AUTO_FREE char *path =
		xasprintf("%s/sandboxes/%s/state.json", f.conf.data_dir, box);
	struct sandbox_info i = {0};
	AUTO_BUF text = BUF_INIT(65536);
	AUTO_JSON *state_json = NULL;
	struct err e = ERR_INIT;
	struct pidref init = {0};
	json_int_t pid = 0;

	(void)state;
	fixture_create(&f, box, true, &i);
	sandbox_info_release(&i);
	assert_int_equal(io_read_file(path, &text, &e), 0);
	assert_int_equal(json_parse(text.p, text.len, &state_json, &e), 0);
	assert_int_equal(json_unpack(state_json, "{s:I}", "pid", &pid), 0);
	assert_int_equal(pidref_of((pid_t)pid, &init, &e), 0);
	assert_int_equal(pidref_kill(&init, 60000, &e), 0);
	f.ops->close(f.b);
	f.b = NULL;
	assert_false(io_exists(v1));
	assert_false(io_exists(v2));
	assert_int_equal(fixture_open(&f, &e), 0);
}

/* With an images folder of its own, whose image is the shared one. */
static void trees_left_by_a_crash_or_an_old_recipe_go_at_the_start(void **state)
{
	AUTO_FREE char *images = xasprintf("%s/images", f.conf.data_dir);
	AUTO_FREE char *half = xasprintf("%s/default/.new/usr", images);
	AUTO_FREE char *old = xasprintf("%s/default/r-0123456789ab", images);
	AUTO_FREE char *own = xasprintf("%s/own", images);
	struct err e = ERR_INIT;

	(void)state;
	f.ops->close(f.b);
	f.b = NULL;
	assert_int_equal(unlink(images), 0);
	assert_int_equal(io_mkdirs(half, 0755, &e), 0);
	assert_int_equal(io_mkdirs(old, 0755, &e), 0);
	assert_int_equal(symlink("../../images/default", own), 0);
	free(f.conf.image);
	f.conf.image = xstrdup("own");
	if (fixture_open(&f, &e) < 0)
		fail_msg("%s", e.msg);
	*strrchr(half, '/') = '\0';
	assert_false(io_exists(half));
	assert_false(io_exists(old));
}

/* Seen with a data folder of its own on each. */
static void told_of(const char *type, unsigned long flags, const char *options,
		    const char *words)
{
	char *data_dir = f.conf.data_dir;
	AUTO_FREE char *dir = xasprintf("%s/mount", data_dir);
	struct backend *none = NULL;
	struct err e = ERR_INIT;

	assert_int_equal(mkdir(dir, 0755), 0);
	assert_int_equal(mount("x", dir, type, flags, options), 0);
	f.conf.data_dir = dir;
	assert_int_equal(
		f.ops->open(&f.conf, "7e0000ff", fixture_progress, NULL, &none, &e), -1);
	f.conf.data_dir = data_dir;
	assert_int_equal(umount(dir), 0);
	assert_int_equal(rmdir(dir), 0);
	if (!strstr(e.msg, words))
		fail_msg("%s", e.msg);
}

static void a_file_system_that_cannot_hold_sandboxes_is_told_at_the_start(void **state)
{
	AUTO_FREE char *top = xasprintf("%s/layers", f.conf.data_dir);
	AUTO_FREE char *low = xasprintf("%s/low", top), *up = xasprintf("%s/up", top);
	AUTO_FREE char *work = xasprintf("%s/work", top);
	AUTO_FREE char *options =
		xasprintf("lowerdir=%s,upperdir=%s,workdir=%s", low, up, work);
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(io_mkdirs(top, 0755, &e), 0);
	assert_int_equal(mount("x", top, "tmpfs", 0, NULL), 0);
	assert_int_equal(mkdir(low, 0755) | mkdir(up, 0755) | mkdir(work, 0755), 0);
	told_of("overlay", 0, options, "overlay file system");
	assert_int_equal(umount(top), 0);
	told_of("tmpfs", MS_NOEXEC, NULL, "noexec");
}

static void figures(void **state)
{
	enum { ROUNDS = 5 };
	int64_t t, create[ROUNDS], stop = 0;
	struct err e = ERR_INIT;
	struct sandbox_info i = {0};
	bool existed;
	int k;

	(void)state;
	for (k = 0; k < ROUNDS; k++) {
		t = clock_mono_us();
		fixture_create(&f, box, true, &i);
		create[k] = clock_mono_us() - t;
		sandbox_info_release(&i);
		t = clock_mono_us();
		assert_int_equal(f.ops->remove(f.b, box, &existed, &e), 0);
		stop += clock_mono_us() - t;
	}
	for (k = 0; k < ROUNDS; k++)
		fprintf(stderr, "# create %lld us\n", (long long)create[k]);
	fprintf(stderr, "# remove %lld us\n", (long long)(stop / ROUNDS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sandbox_keeps_its_files_over_stop_and_create),
		cmocka_unit_test(a_running_sandbox_is_adopted_by_the_next_server),
		cmocka_unit_test(a_state_that_cannot_be_read_costs_no_files),
		cmocka_unit_test(
			a_sandbox_of_another_policy_is_told_until_it_starts_anew),
		cmocka_unit_test(changed_limits_reach_a_sandbox_that_runs),
		cmocka_unit_test(memory_beyond_the_limit_is_counted_as_an_oom_kill),
		cmocka_unit_test(as_many_processes_as_allowed_can_run),
		cmocka_unit_test(the_number_of_processes_is_limited),
		cmocka_unit_test(temporary_files_outlive_a_stop_too),
		cmocka_unit_test(removal_frees_the_name_and_leaves_nothing),
		cmocka_unit_test(
			a_sandbox_that_ended_by_itself_leaves_no_group_at_the_close),
		cmocka_unit_test(
			a_file_system_that_cannot_hold_sandboxes_is_told_at_the_start),
		cmocka_unit_test(figures),
		cmocka_unit_test(trees_left_by_a_crash_or_an_old_recipe_go_at_the_start),
	};

	if (!fixture_can())
		return 0;
	return FIXTURE_RUN(tests, group_setup, group_teardown);
}
