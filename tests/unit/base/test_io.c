/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "tests/unit/testdir.h"

static char dir[64];

static int make_dir(void **state)
{
	(void)state;
	test_folder(dir, sizeof dir, "io");
	return 0;
}

static int remove_dir(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	return io_rmtree(dir, &e);
}

static const char *in_dir(const char *name)
{
	static char path[128];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return path;
}

static void a_file_is_replaced_whole_with_its_mode(void **state)
{
	struct err e = ERR_INIT;
	AUTO_BUF b = BUF_INIT(100);
	struct stat st;

	(void)state;
	assert_int_equal(io_write_file_atomic(in_dir("f"), "old", 3, 0600, &e), 0);
	assert_int_equal(io_write_file_atomic(in_dir("f"), "new\0x", 5, 0640, &e), 0);
	assert_int_equal(io_read_file(in_dir("f"), &b, &e), 0);
	assert_int_equal(b.len, 5);
	assert_memory_equal(b.p, "new\0x", 5);
	assert_int_equal(stat(in_dir("f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void a_failed_write_leaves_nothing_behind(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	mkdir(in_dir("d"), 0700);
	assert_int_equal(io_write_file_atomic(in_dir("d"), "x", 1, 0600, &e), -1);
	assert_int_equal(rmdir(in_dir("d")), 0);
	assert_int_equal(io_rmtree(in_dir("f"), &e), 0); /* a file is removed too */
	assert_int_equal(rmdir(dir), 0);                 /* so nothing was left */
	assert_int_equal(mkdir(dir, 0700), 0);
}

static void reading_stops_at_the_cap(void **state)
{
	struct err e = ERR_INIT, absent = ERR_INIT;
	AUTO_BUF small = BUF_INIT(3);

	(void)state;
	assert_int_equal(io_write_file_atomic(in_dir("f"), "1234", 4, 0600, &e), 0);
	assert_int_equal(io_read_file(in_dir("f"), &small, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_int_equal(io_read_file(in_dir("none"), &small, &absent), -1);
	assert_int_equal(absent.kind, ERR_NOT_FOUND);
}

static void folders_get_their_mode_whatever_the_umask(void **state)
{
	struct err e = ERR_INIT;
	struct stat st;
	mode_t old = umask(077);

	(void)state;
	assert_int_equal(io_mkdirs_owned(in_dir("a/b/c"), 02750, getuid(), getgid(), &e),
			 0);
	umask(old);
	assert_int_equal(stat(in_dir("a/b/c"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 02750);
	assert_int_equal(stat(in_dir("a/b"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(io_mkdirs(in_dir("a/b"), 0755, &e), 0);
	assert_int_equal(io_write_file_atomic(in_dir("a/file"), "", 0, 0600, &e), 0);
	assert_int_equal(io_mkdirs(in_dir("a/file"), 0755, &e), -1);
	assert_int_equal(e.kind, ERR_CONFLICT);
}

static void a_tree_deeper_than_any_path_goes_and_links_are_not_followed(void **state)
{
	struct err e = ERR_INIT;
	int i, fd, at;

	(void)state;
	assert_int_equal(io_mkdirs(in_dir("keep"), 0755, &e), 0);
	assert_int_equal(io_write_file_atomic(in_dir("keep/x"), "", 0, 0600, &e), 0);
	assert_int_equal(io_mkdirs(in_dir("tree"), 0755, &e), 0);
	at = open(in_dir("tree"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (i = 0; i < 3000; i++) { /* 9000 bytes of path */
		assert_int_equal(mkdirat(at, "dd", 0755), 0);
		fd = openat(at, "dd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_int_equal(symlinkat(dir, at, "link"), 0);
		assert_true(fd >= 0);
		close(at);
		at = fd;
	}
	close(at);
	assert_int_equal(io_rmtree(in_dir("tree"), &e), 0);
	assert_false(io_exists(in_dir("tree")));
	assert_true(io_exists(in_dir("keep/x")));
	assert_int_equal(io_rmtree(in_dir("tree"), &e), 0); /* absent is fine */
}

static void closing_from_a_number_leaves_those_below(void **state)
{
	int low = dup(0), high = fcntl(0, F_DUPFD_CLOEXEC, 200);

	(void)state;
	io_close_from(150);
	assert_int_equal(fcntl(high, F_GETFD), -1);
	assert_int_not_equal(fcntl(low, F_GETFD), -1);
	close(low);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_replaced_whole_with_its_mode),
		cmocka_unit_test(a_failed_write_leaves_nothing_behind),
		cmocka_unit_test(reading_stops_at_the_cap),
		cmocka_unit_test(folders_get_their_mode_whatever_the_umask),
		cmocka_unit_test(
			a_tree_deeper_than_any_path_goes_and_links_are_not_followed),
		cmocka_unit_test(closing_from_a_number_leaves_those_below),
	};
	return cmocka_run_group_tests_name("io", tests, make_dir, remove_dir);
}
