/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/fs.h"
#include "agent/oom.h"
#include "agent/ring.h"
#include "agent/users.h"
#include "agent/volume.h"
#include "tests/unit/testdir.h"

/* Write and drop in odd steps; what comes out is what went in. */
static void a_ring_keeps_the_order_over_its_edge(void **state)
{
	struct ring r;
	uint8_t next_in = 0, next_out = 0, piece[61];
	const uint8_t *p;
	size_t n;

	(void)state;
	assert_int_equal(ring_init(&r, 100), 0);
	for (int i = 0; i < 5000; i++) {
		size_t want = (size_t)(i * 7 % 61), got;

		for (size_t k = 0; k < want; k++)
			piece[k] = (uint8_t)(next_in + k);
		got = ring_write(&r, piece, want);
		assert_true(got == want || r.end - r.base == 100);
		next_in = (uint8_t)(next_in + got);
		p = ring_at(&r, r.base, &n);
		if (n > (size_t)(i % 50))
			n = (size_t)(i % 50);
		for (size_t k = 0; k < n; k++)
			assert_int_equal(p[k], next_out++);
		ring_drop(&r, r.base + n);
	}
	assert_true(r.base > 10000);
	ring_release(&r);
}

static void a_ring_draws_offsets_into_its_range(void **state)
{
	struct ring r;
	struct iovec iov[2];
	size_t n;

	(void)state;
	assert_int_equal(ring_init(&r, 0), 0);
	assert_int_equal(ring_room(&r, 10, iov), 0);
	assert_null(ring_at(&r, 0, &n));
	ring_release(&r);
	assert_int_equal(ring_init(&r, 8), 0);
	assert_int_equal(ring_write(&r, "0123456789", 10), 8);
	ring_drop(&r, 1000);
	assert_int_equal(r.base, 8);
	ring_drop(&r, 3);
	assert_int_equal(r.base, 8);
	ring_release(&r);
}

static char passwd[64], group[64];

static void put(char *path, const char *text, size_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	fclose(f);
}

static void users_are_found_with_their_groups(void **state)
{
	static const char p[] = "root:x:0:0:root:/root:/bin/bash\nbroken\n:x:1000:1:::\n"
				"sandbox:x:1000:1001:S,,,:/home/sandbox:/bin/zsh\n"
				"again:x:1000:5:::/bin/no\nlast:x:7:7::/l:/s";
	static const char g[] = "root:x:0:\na:x:20:other,sandbox\nb:x:21:sandboxx\n"
				"c:x:zz:sandbox\nd:x:1001:sandbox\ne:x:22:sandbox";
	struct user u;

	(void)state;
	put(passwd, p, sizeof(p) - 1);
	put(group, g, sizeof(g) - 1);
	assert_int_equal(users_find(1000, passwd, group, &u), 0);
	assert_string_equal(u.name, "sandbox");
	assert_int_equal(u.gid, 1001);
	assert_string_equal(u.home, "/home/sandbox");
	assert_string_equal(u.shell, "/bin/zsh");
	assert_int_equal(u.ngroups, 3);
	assert_int_equal(u.groups[0], 1001);
	assert_int_equal(u.groups[1], 20);
	assert_int_equal(u.groups[2], 22);
	assert_int_equal(users_find(7, passwd, group, &u), 0);
	assert_string_equal(u.shell, "/s");
	assert_int_equal(users_find(8, passwd, group, &u), 0); /* nobody there */
	assert_string_equal(u.name, "sandbox");
	assert_string_equal(u.home, "/workspace");
	assert_int_equal(u.uid, 8);
	assert_int_equal(u.gid, 8);
	assert_int_equal(u.ngroups, 4); /* 8, and those of that name */
}

/* ctime cannot be set: only waiting makes a file old enough to be remembered. */
static void a_user_that_was_found_is_looked_up_again_after_a_change(void **state)
{
	static const char before[] = "sandbox:x:1000:1000::/home/a:/bin/sh\n";
	static const char after[] = "sandbox:x:1000:1000::/home/b:/bin/sh\n";
	struct user u;

	(void)state;
	put(passwd, before, sizeof(before) - 1);
	put(group, "", 0);
	usleep(2100 * 1000);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(users_find(1000, passwd, group, &u), 0);
		assert_string_equal(u.home, "/home/a");
	}
	put(passwd, after, sizeof(after) - 1); /* as long, the same file */
	assert_int_equal(users_find(1000, passwd, group, &u), 0);
	assert_string_equal(u.home, "/home/b");
	assert_int_equal(users_find(1001, passwd, group, &u), 0);
	assert_string_equal(u.home, "/workspace");
	unlink(passwd);
	assert_int_equal(users_find(1000, passwd, group, &u), 0);
	assert_string_equal(u.home, "/workspace");
}

static void only_a_folder_with_nothing_in_it_is_empty(void **state)
{
	char dir[48], path[64], link[64];

	(void)state;
	test_folder(dir, sizeof(dir), "empty");
	assert_true(fs_is_empty(dir));
	snprintf(link, sizeof(link), "%s.link", dir);
	assert_int_equal(symlink(dir, link), 0);
	assert_false(fs_is_empty(link)); /* a listing says what is wrong with it */
	unlink(link);
	snprintf(path, sizeof(path), "%s/.hidden", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_false(fs_is_empty(dir));
	rmdir(path);
	assert_true(fs_is_empty(dir));
	put(path, "x", 1);
	assert_false(fs_is_empty(dir));
	assert_false(fs_is_empty(path));
	unlink(path);
	rmdir(dir);
	assert_true(fs_is_empty(dir)); /* missing: a listing finds nothing either */
}

static void the_oom_counter_of_both_versions_is_read(void **state)
{
	static const struct {
		const char *text;
		int64_t count; /* -1: none */
	} cases[] = {
		{"low 0\nhigh 0\nmax 3\noom 2\noom_kill 2\noom_group_kill 0\n", 2},
		{"oom_kill_disable 0\nunder_oom 0\noom_kill 17\n", 17},
		{"oom_kill_disable 0\nunder_oom 0\n", -1},
		{"oom_kill x\n", -1},
		{"oom_kill ", -1},
		{"", -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t n = 0;
		bool is = oom_parse(cases[i].text, strlen(cases[i].text), &n);

		assert_int_equal(is, cases[i].count >= 0);
		if (is)
			assert_int_equal(n, cases[i].count);
	}
}

static void hostile_user_files_do_no_harm(void **state)
{
	size_t n = 2 << 20;
	char *big = malloc(n);
	struct user u;

	(void)state;
	for (size_t i = 0; i < n; i++)
		big[i] = ":,\n\0x0"[i * 2654435761u % 6];
	put(passwd, big, n);
	memset(big, 'x', n);
	put(group, big, n);
	assert_int_equal(users_find(1000, passwd, group, &u), 0);
	assert_int_equal(u.gid, 1000);
	assert_int_equal(users_find(0, passwd, group, &u), 0);
	assert_string_equal(u.name, "root");
	assert_int_equal(users_find(0, "/no/such", "/no/such", &u), 0);
	assert_string_equal(u.home, "/root");
	free(big);
}

static int make_files(void **state)
{
	(void)state;
	test_file(passwd, sizeof(passwd), "passwd");
	test_file(group, sizeof(group), "group");
	return 0;
}

static int drop_files(void **state)
{
	(void)state;
	unlink(passwd);
	unlink(group);
	return 0;
}

/* The folder's owner and mode after it was given to user 1000. */
static struct stat given(const char *dir)
{
	struct stat st;

	volume_give(dir, 1000, 0755);
	assert_int_equal(stat(dir, &st), 0);
	return st;
}

static void a_volume_in_use_keeps_its_owner(void **state)
{
	char dir[48], lost[64], file[64];
	struct stat st;

	(void)state;
	if (geteuid() != 0)
		skip();
	test_folder(dir, sizeof(dir), "volume");
	snprintf(lost, sizeof(lost), "%s/lost+found", dir);
	snprintf(file, sizeof(file), "%s/file", dir);
	assert_int_equal(mkdir(lost, 0700), 0);
	assert_int_equal(mkdir(file, 0700), 0);
	st = given(dir); /* the user gave it to root */
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(rmdir(file), 0);
	st = given(dir);
	assert_int_equal(st.st_uid, 1000);
	assert_int_equal(st.st_gid, 1000);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(rmdir(lost), 0);
	assert_int_equal(chown(dir, 7, 7), 0);
	st = given(dir);
	assert_int_equal(st.st_uid, 7);
	assert_int_equal(rmdir(dir), 0);
	st = given(dir); /* an image that has it not */
	assert_int_equal(st.st_uid, 1000);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_keeps_the_order_over_its_edge),
		cmocka_unit_test(a_ring_draws_offsets_into_its_range),
		cmocka_unit_test(users_are_found_with_their_groups),
		cmocka_unit_test(a_user_that_was_found_is_looked_up_again_after_a_change),
		cmocka_unit_test(the_oom_counter_of_both_versions_is_read),
		cmocka_unit_test(hostile_user_files_do_no_harm),
		cmocka_unit_test(only_a_folder_with_nothing_in_it_is_empty),
		cmocka_unit_test(a_volume_in_use_keeps_its_owner),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_files, drop_files);
}
