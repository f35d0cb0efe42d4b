/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/local/cglimits.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "tests/unit/testdir.h"

/* A group "g" of plain files in the place of the kernel's. */
static char top[48];

static void set(const char *file, const char *value)
{
	AUTO_FREE char *path = xasprintf("%s/g/%s", top, file);
	struct err e = ERR_INIT;

	assert_int_equal(0, io_write_file_atomic(path, value, strlen(value), 0600, &e));
}

static void check(const char *file, const char *value)
{
	AUTO_FREE char *path = xasprintf("%s/g/%s", top, file);
	AUTO_BUF b = BUF_INIT(4096);
	struct err e = ERR_INIT;

	assert_int_equal(0, io_read_file(path, &b, &e));
	assert_string_equal(value, b.p);
}

static struct cgroups groups(bool v2)
{
	return (struct cgroups){.dir = {top, top, top},
				.enforced = {true, true, true},
				.swap = true,
				.v2 = v2};
}

static int fit(bool v2, struct cglimits want, struct err *e)
{
	struct cgroups c = groups(v2);

	return cglimits_fit(&c, "g", &want, e);
}

static void fill(void)
{
	set("cpu.cfs_quota_us", "100000\n");
	set("cpu.max", "100000 100000\n");
	set("pids.max", "256\n");
	set("memory.limit_in_bytes", "1073741824\n");
	set("memory.memsw.limit_in_bytes", "1073741824\n");
	set("memory.max", "1073741824\n");
	set("memory.usage_in_bytes", "314572800\n"); /* 300 MB */
	set("memory.current", "314572800\n");
}

static int setup(void **state)
{
	AUTO_FREE char *dir = NULL;

	(void)state;
	test_folder(top, sizeof(top), "cglimits");
	dir = xasprintf("%s/g", top);
	assert_int_equal(0, mkdir(dir, 0700));
	fill();
	return 0;
}

static int teardown(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	return io_rmtree(top, &e);
}

static void what_is_as_it_should_be_is_not_written(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	for (int v2 = 0; v2 < 2; v2++)
		assert_int_equal(0, fit(v2, (struct cglimits){1, 1024, 256}, &e));
	check("cpu.cfs_quota_us", "100000\n"); /* we would write no newline */
	check("cpu.max", "100000 100000\n");
	check("pids.max", "256\n");
	check("memory.limit_in_bytes", "1073741824\n");
	check("memory.max", "1073741824\n");
}

static void other_limits_are_set_on_both_versions(void **state)
{
	const struct cglimits more = {1.5, 2048, 300};
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(0, fit(false, more, &e));
	check("cpu.cfs_quota_us", "150000");
	check("memory.limit_in_bytes", "2147483648");
	check("memory.memsw.limit_in_bytes", "2147483648");
	check("pids.max", "300");
	assert_int_equal(0, fit(true, more, &e));
	check("cpu.max", "150000 100000");
	check("memory.max", "2147483648");
}

static void no_limit_is_said_as_each_version_says_it(void **state)
{
	const struct cglimits none = {0, 0, 0};
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(0, fit(false, none, &e));
	check("cpu.cfs_quota_us", "-1");
	check("memory.limit_in_bytes", "-1");
	check("pids.max", "max");
	assert_int_equal(0, fit(true, none, &e));
	check("cpu.max", "max 100000");
	check("memory.max", "max");
	set("memory.limit_in_bytes", "9223372036854771712\n");
	assert_int_equal(0, fit(false, none, &e));
	check("memory.limit_in_bytes", "9223372036854771712\n");
}

static void less_memory_than_is_in_use_is_refused_and_the_rest_set(void **state)
{
	(void)state;
	for (int v2 = 0; v2 < 2; v2++) {
		struct err e = ERR_INIT;

		fill();
		assert_int_equal(-1, fit(v2, (struct cglimits){1, 200, 99}, &e));
		assert_int_equal(ERR_LIMIT, e.kind);
		assert_non_null(strstr(e.msg, "300 MB"));
		check(v2 ? "memory.max" : "memory.limit_in_bytes", "1073741824\n");
		check("pids.max", "99");
	}
}

static void what_cannot_be_enforced_is_passed_over(void **state)
{
	struct cgroups c = {.enforced = {false, false, false}};
	const struct cglimits want = {2, 2, 2};
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(0, cglimits_fit(&c, "g", &want, &e));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_as_it_should_be_is_not_written),
		TEST(other_limits_are_set_on_both_versions),
		TEST(no_limit_is_said_as_each_version_says_it),
		TEST(less_memory_than_is_in_use_is_refused_and_the_rest_set),
		TEST(what_cannot_be_enforced_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
