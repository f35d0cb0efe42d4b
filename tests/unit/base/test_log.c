/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/log.h"

/* What log_error(fmt, arg) writes. */
static void logged(struct buf *b, const char *arg)
{
	struct err e = ERR_INIT;
	int fd[2], saved = dup(STDERR_FILENO);

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	dup2(fd[1], STDERR_FILENO);
	close(fd[1]);
	log_error("%s", arg);
	log_debug("never shown %s", arg);
	dup2(saved, STDERR_FILENO);
	close(saved);
	assert_int_equal(io_read_all(fd[0], b, &e), 0);
	close(fd[0]);
}

static void a_line_has_time_role_and_level(void **state)
{
	AUTO_BUF b = BUF_INIT(10000);

	(void)state;
	unsetenv("JOURNAL_STREAM");
	log_init("edge0", LOG_LEVEL_INFO);
	logged(&b, "hello");
	assert_int_equal(b.p[4], '-');
	assert_string_equal(strchr(b.p, ' '), " edge0 error: hello\n");
}

static void under_systemd_the_level_is_a_prefix(void **state)
{
	AUTO_BUF b = BUF_INIT(10000);

	(void)state;
	setenv("JOURNAL_STREAM", "8:1", 1);
	log_init("runner", LOG_LEVEL_INFO);
	logged(&b, "hello");
	assert_string_equal(b.p, "<3>runner: hello\n");
}

static void control_characters_cannot_fake_a_line(void **state)
{
	AUTO_BUF b = BUF_INIT(10000);

	(void)state;
	setenv("JOURNAL_STREAM", "8:1", 1);
	log_init("r", LOG_LEVEL_INFO);
	logged(&b, "a\n<0>b\x1b[2J\x7f \xc2\x9b"
		   "2J \xc2\xa0\xc3\x9b");
	assert_string_equal(b.p, "<3>r: a\\x0a<0>b\\x1b[2J\\x7f \\xc2\\x9b"
				 "2J \xc2\xa0\xc3\x9b\n");
}

static void a_huge_message_stays_one_line(void **state)
{
	AUTO_BUF b = BUF_INIT(100000);
	static char big[20000];

	(void)state;
	memset(big, '\n', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	logged(&b, big);
	assert_true(b.len < 5000);
	assert_ptr_equal(strchr(b.p, '\n'), b.p + b.len - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_has_time_role_and_level),
		cmocka_unit_test(under_systemd_the_level_is_a_prefix),
		cmocka_unit_test(control_characters_cannot_fake_a_line),
		cmocka_unit_test(a_huge_message_stays_one_line),
	};
	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
