/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BUILT_H
#define TESTS_BUILT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Another program of this build, in its top folder: tests are in tests/unit/<folder>. */
static inline void built_program(const char *name, char *dst, size_t size)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int len;

	assert_true(n > 0);
	self[n] = '\0';
	for (int i = 0; i < 4; i++)
		*strrchr(self, '/') = '\0';
	len = snprintf(dst, size, "%s/%s", self, name);
	assert_true(len > 0 && (size_t)len < size);
	assert_int_equal(0, access(dst, X_OK));
}

#endif
