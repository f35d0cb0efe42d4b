/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_TESTDIR_H
#define TESTS_UNIT_TESTDIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * Where tests have their files: in TMPDIR, which scripts/run-tests makes for each
 * program and removes however that ended, else in /tmp. Short, for sockets' sake.
 */
static inline const char *test_tmp(void)
{
	const char *dir = getenv("TMPDIR");

	return dir && *dir ? dir : "/tmp";
}

/* A new folder there. */
static inline void test_folder(char *path, size_t n, const char *name)
{
	assert_in_range(snprintf(path, n, "%s/%s-XXXXXX", test_tmp(), name), 1, n - 1);
	assert_non_null(mkdtemp(path));
}

/* A new, empty file there. */
static inline void test_file(char *path, size_t n, const char *name)
{
	int fd;

	assert_in_range(snprintf(path, n, "%s/%s-XXXXXX", test_tmp(), name), 1, n - 1);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
}

#endif
