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
#include <unistd.h>

#include "base/auto.h"
#include "base/io.h"
#include "base/mem.h"
#include "runner/latest.h"
#include "tests/unit/testdir.h"

#define OLD "run_00000000000000000000000000000001"
#define MID "run_00000000000000000000000000000002"
#define NEW "run_00000000000000000000000000000003"

struct place {
	char root[64];
	char folder[96];
};

static int set_up(void **state)
{
	struct place *p = xcalloc(1, sizeof(*p));
	struct err e = ERR_INIT;

	test_folder(p->root, sizeof(p->root), "latest");
	snprintf(p->folder, sizeof(p->folder), "%s/default/a", p->root);
	assert_int_equal(0, io_mkdirs(p->folder, 0755, &e));
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	struct place *p = *state;
	struct err e = ERR_INIT;

	io_rmtree(p->root, &e);
	free(p);
	return 0;
}

/* A run's folder that was written to at that second. */
static void add(struct place *p, const char *name, time_t at)
{
	AUTO_FREE char *path = xasprintf("%s/%s", p->folder, name);
	const struct timespec t[2] = {{.tv_sec = at}, {.tv_sec = at}};

	assert_int_equal(0, mkdir(path, 0755));
	assert_int_equal(0, utimensat(AT_FDCWD, path, t, 0));
}

static void point(struct place *p, const char *name)
{
	AUTO_CLOSE int fd = open(p->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err e = ERR_INIT;

	assert_int_equal(0, latest_point(fd, name, &e));
}

static void check_latest(struct place *p, const char *want)
{
	AUTO_FREE char *path = xasprintf("%s/latest", p->folder);
	char target[128] = "";

	assert_true(readlink(path, target, sizeof(target) - 1) > 0);
	assert_string_equal(want, target);
}

static void settle(struct place *p)
{
	struct err e = ERR_INIT;

	if (latest_settle(p->root, "default", "a", &e) < 0)
		fail_msg("%s", e.msg);
}

static void a_link_that_holds_stays(void **state)
{
	struct place *p = *state;

	add(p, OLD, 1000);
	add(p, NEW, 3000);
	point(p, OLD);
	settle(p);
	check_latest(p, OLD);
}

static void a_broken_link_goes_to_the_newest_that_is_left(void **state)
{
	struct place *p = *state;

	add(p, MID, 2000);
	add(p, OLD, 1000);
	add(p, "no run", 9000);
	point(p, NEW);
	settle(p);
	check_latest(p, MID);
}

static void with_nothing_left_the_folder_goes(void **state)
{
	struct place *p = *state;

	AUTO_FREE char *half_made = xasprintf("%s/.latest", p->folder);

	point(p, NEW);
	assert_int_equal(0, symlink(NEW, half_made));
	settle(p);
	assert_false(io_exists(p->folder));
	settle(p); /* and nothing is fine */
}

static void what_is_no_run_keeps_the_folder(void **state)
{
	struct place *p = *state;
	AUTO_FREE char *link = xasprintf("%s/latest", p->folder);
	struct stat st;

	add(p, "no run", 1000);
	point(p, NEW);
	settle(p);
	assert_int_equal(-1, lstat(link, &st));
	assert_true(io_exists(p->folder));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_link_that_holds_stays),
		TEST(a_broken_link_goes_to_the_newest_that_is_left),
		TEST(with_nothing_left_the_folder_goes),
		TEST(what_is_no_run_keeps_the_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
