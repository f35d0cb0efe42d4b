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
#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "runner/latest.h"
#include "runner/oldfiles.h"
#include "runner/syncstage.h"
#include "tests/unit/testdir.h"

/*
 * Runs of one identifier, without an agent: `now` is what its sandbox has, each
 * publish() a run that ends. A file's text and size say which version it is.
 */
enum { MANY = 300, FILES_MAX = MANY + 10 };

struct file {
	char path[32];
	int64_t version; /* ctime, too; 0: it is not there */
	uint8_t type;
};

struct place {
	char root[64];
	struct file now[FILES_MAX];
	size_t n;
	struct store_run last;
	unsigned nruns;
	char run_id[2][40];    /* the newest at nruns % 2 */
	const char *unlucky;   /* this file cannot be read */
	struct syncplan *plan; /* of the newest run */
};

static struct file *put(struct place *p, const char *path, int64_t version)
{
	struct file *f = p->now;

	while (f < p->now + p->n && strcmp(f->path, path) != 0)
		f++;
	if (f == p->now + p->n)
		p->n++;
	assert_true(p->n <= FILES_MAX);
	snprintf(f->path, sizeof(f->path), "%s", path);
	f->version = version;
	f->type = AP_FILE_REGULAR;
	return f;
}

static void put_many(struct place *p)
{
	char path[32];

	put(p, "d", 1)->type = AP_FILE_DIRECTORY;
	put(p, "e", 1)->type = AP_FILE_DIRECTORY;
	for (int i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), "d/f%d", i);
		put(p, path, 1);
	}
}

static int set_up(void **state)
{
	struct place *p = xcalloc(1, sizeof(*p));

	test_folder(p->root, sizeof(p->root), "syncstage");
	put_many(p);
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	struct place *p = *state;
	struct err e = ERR_INIT;

	plan_free(p->plan);
	store_run_release(&p->last);
	io_rmtree(p->root, &e);
	free(p);
	return 0;
}

static void text_of(const struct plan_entry *entry, char ret[static 80])
{
	snprintf(ret, 80, "%s of %lld", entry->path, (long long)entry->ctime_ns);
}

static size_t size_of(const struct file *f)
{
	return strlen(f->path) + strlen(" of 1");
}

static void list(struct place *p, struct syncplan *plan)
{
	struct err e = ERR_INIT;

	for (size_t i = 0; i < p->n; i++) {
		const struct file *f = &p->now[i];
		const struct ap_entry entry = {
			.path = {(const uint8_t *)f->path, strlen(f->path)},
			.type = f->type,
			.size = size_of(f),
			.ctime_ns = f->version,
			.mtime_ns = f->version,
		};

		if (f->version)
			assert_int_equal(0, plan_add(plan, &entry, &e));
	}
}

static void fetch(struct place *p, struct plan_entry *entry)
{
	struct err e = ERR_INIT;
	char text[80];
	int fd;

	if (plan_open(p->plan, entry, &fd, &e) < 0)
		fail_msg("%s", e.msg);
	text_of(entry, text);
	assert_int_equal(strlen(text), write(fd, text, strlen(text)));
	assert_int_equal(0, plan_close(entry, fd, &e));
	if (p->unlucky && strcmp(p->unlucky, entry->path) == 0) {
		plan_remove(p->plan, entry);
		plan_skip(p->plan, entry, "it kept changing");
	}
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct store_artifact *)a)->path,
		      ((const struct store_artifact *)b)->path);
}

/* As the store would give them to the next run; the paths are the plan's. */
static struct store_run rows_of(const struct place *p)
{
	struct store_run run = {.run_id = p->run_id[p->nruns % 2]};

	run.artifacts = xcalloc(p->plan->n + 1, sizeof(*run.artifacts));
	for (size_t i = 0; i < p->plan->n; i++) {
		const struct plan_entry *x = &p->plan->v[i];

		if (x->fate != PLAN_FOLDER)
			run.artifacts[run.nartifacts++] = (struct store_artifact){
				.path = x->path,
				.size = (int64_t)x->size,
				.ctime_ns = x->ctime_ns,
				.in_base = (enum store_in_base)x->in_base,
				.skipped_reason = x->reason,
			};
	}
	qsort(run.artifacts, run.nartifacts, sizeof(*run.artifacts), by_path);
	return run;
}

/* The plan of the newest run is kept: the rows borrow its paths. */
static unsigned publish(struct place *p)
{
	struct syncplan *before = p->plan, *plan = plan_new();
	struct err e = ERR_INIT;

	p->nruns++;
	snprintf(p->run_id[p->nruns % 2], sizeof(p->run_id[0]), "run_%032u", p->nruns);
	plan->root = xstrdup(p->root);
	plan->tenant = xstrdup("default");
	plan->folder = xstrdup("a");
	plan->run_id = xstrdup(p->run_id[p->nruns % 2]);
	plan->gid = (gid_t)-1;
	plan->previous = p->last;
	p->last = (struct store_run){0};
	p->plan = plan;
	list(p, plan);
	if (plan_stage(plan, &e) < 0)
		fail_msg("%s", e.msg);
	for (size_t i = 0; i < plan->n; i++)
		if (plan->v[i].fate == PLAN_FETCH)
			fetch(p, &plan->v[i]);
	if (plan_publish(plan, &e) < 0)
		fail_msg("%s", e.msg);
	p->last = rows_of(p);
	plan_free(before);
	return p->nruns;
}

static char *at(const struct place *p, unsigned run, const char *path)
{
	return xasprintf("%s/default/a/run_%032u/%s", p->root, run, path);
}

static bool is_in_folder(const struct place *p, unsigned run, const char *path)
{
	AUTO_FREE char *full = at(p, run, path);
	struct stat st;

	return lstat(full, &st) == 0;
}

/* As nginx finds it; "": it does not. */
static void check_served(const struct place *p, unsigned run, const char *path,
			 const char *want)
{
	AUTO_FREE char *first = at(p, run, path);
	AUTO_FREE char *below = xasprintf(".unchanged/%s", path);
	AUTO_FREE char *second = at(p, run, below);
	AUTO_BUF b = BUF_INIT(1000);
	struct err e = ERR_INIT;

	if (io_read_file(io_exists(first) ? first : second, &b, &e) < 0)
		assert_string_equal(want, "");
	else
		assert_string_equal(want, b.p);
}

static void check_shares(const struct place *p, unsigned run, bool want)
{
	assert_int_equal(want, is_in_folder(p, run, ".unchanged"));
	assert_int_equal(!want, is_in_folder(p, run, "d/f299"));
	check_served(p, run, "d/f299", "d/f299 of 1");
}

static void drop(struct place *p, unsigned run)
{
	char id[40];
	struct err e = ERR_INIT;

	snprintf(id, sizeof(id), "run_%032u", run);
	if (oldfiles_remove(p->root, "default", "a", id, &e) < 0 ||
	    latest_settle(p->root, "default", "a", &e) < 0)
		fail_msg("%s", e.msg);
	assert_false(is_in_folder(p, run, ""));
}

/* ---- */

static void a_run_that_changes_few_of_many_has_only_these(void **state)
{
	struct place *p = *state;
	unsigned one = publish(p), two;

	check_shares(p, one, false);
	put(p, "d/f1", 2);
	put(p, "e/new", 2);
	two = publish(p);
	check_shares(p, two, true);
	check_served(p, two, "d/f1", "d/f1 of 2");
	check_served(p, two, "e/new", "e/new of 2");
	check_served(p, two, "d/f2", "d/f2 of 1");
	check_served(p, one, "d/f1", "d/f1 of 1");
	check_served(p, one, "e/new", "");
}

static void each_further_one_has_what_is_new_since_the_base(void **state)
{
	struct place *p = *state;
	AUTO_FREE char *second = NULL, *third = NULL;
	struct stat a, b;

	publish(p);
	put(p, "d/f1", 2);
	publish(p);
	put(p, "d/f2", 3);
	publish(p);
	check_shares(p, 3, true);
	check_served(p, 3, "d/f1", "d/f1 of 2");
	check_served(p, 3, "d/f2", "d/f2 of 3");
	second = at(p, 2, "d/f1");
	third = at(p, 3, "d/f1");
	assert_int_equal(0, lstat(second, &a) | lstat(third, &b));
	assert_int_equal(a.st_ino, b.st_ino);
	put(p, "d/f1", 4);
	publish(p);
	check_served(p, 4, "d/f1", "d/f1 of 4");
	check_served(p, 3, "d/f1", "d/f1 of 2");
}

static void a_run_without_a_file_of_the_base_is_whole_again(void **state)
{
	struct place *p = *state;

	publish(p);
	put(p, "d/f1", 2);
	publish(p);
	put(p, "d/f2", 0);
	publish(p);
	check_shares(p, 3, false);
	check_served(p, 3, "d/f1", "d/f1 of 2");
	check_served(p, 3, "d/f2", "");
	put(p, "d/f3", 4); /* and is the next base */
	publish(p);
	check_shares(p, 4, true);
	check_served(p, 4, "d/f1", "d/f1 of 2");
	check_served(p, 4, "d/f2", "");
	check_served(p, 4, "d/f3", "d/f3 of 4");
}

static void a_changed_file_that_goes_does_not_bring_the_old_one_back(void **state)
{
	struct place *p = *state;

	publish(p);
	put(p, "d/f1", 2);
	publish(p);
	put(p, "d/f1", 0);
	publish(p);
	check_shares(p, 3, false);
	check_served(p, 3, "d/f1", "");
}

static void a_new_file_that_goes_again_leaves_the_rest_shared(void **state)
{
	struct place *p = *state;

	publish(p);
	put(p, "e/new", 2);
	publish(p);
	put(p, "e/new", 0);
	publish(p);
	check_shares(p, 3, true);
	check_served(p, 3, "e/new", "");
}

static void what_is_a_file_no_more_is_not_shown_as_it_was(void **state)
{
	struct place *p = *state;

	publish(p);
	put(p, "d/f1", 2)->type = AP_FILE_SYMLINK;
	publish(p);
	check_shares(p, 2, false);
	check_served(p, 2, "d/f1", "");
}

static void what_cannot_be_read_is_not_shown_as_it_was(void **state)
{
	struct place *p = *state;

	publish(p);
	put(p, "d/f1", 2);
	put(p, "d/f2", 2);
	p->unlucky = "d/f1";
	publish(p);
	check_shares(p, 2, false);
	check_served(p, 2, "d/f1", "");
	check_served(p, 2, "d/f2", "d/f2 of 2");
	p->unlucky = NULL;
	publish(p);
	check_shares(p, 3, true);
	check_served(p, 3, "d/f1", "d/f1 of 2");
}

static void many_changes_make_a_run_whole(void **state)
{
	struct place *p = *state;
	char path[32];

	publish(p);
	for (int i = 0; i < MANY / 4; i++) {
		snprintf(path, sizeof(path), "d/f%d", i);
		put(p, path, 2);
	}
	publish(p);
	check_shares(p, 2, false);
	check_served(p, 2, "d/f3", "d/f3 of 2");
}

static void few_files_are_always_whole(void **state)
{
	struct place *p = *state;

	p->n = 0;
	put(p, "one", 1);
	put(p, "two", 1);
	publish(p);
	put(p, "one", 2);
	publish(p);
	assert_false(is_in_folder(p, 2, ".unchanged"));
	check_served(p, 2, "one", "one of 2");
	check_served(p, 2, "two", "two of 1");
}

static void the_name_of_the_link_is_nobody_elses(void **state)
{
	struct place *p = *state;

	put(p, ".unchanged", 1)->type = AP_FILE_DIRECTORY;
	put(p, ".unchanged/x", 1);
	put(p, ".unchanged.txt", 1);
	publish(p);
	assert_false(is_in_folder(p, 1, ".unchanged"));
	check_served(p, 1, ".unchanged.txt", ".unchanged.txt of 1");
}

/* ---- their end */

static void a_base_outlives_its_run_and_no_longer_than_it_is_needed(void **state)
{
	struct place *p = *state;
	AUTO_FREE char *folder = xasprintf("%s/default/a", p->root);
	AUTO_FREE char *bases = xasprintf("%s/.base", folder);

	publish(p);
	put(p, "d/f1", 2);
	publish(p);
	put(p, "d/f2", 3);
	publish(p);
	drop(p, 1);
	drop(p, 1); /* once more is fine */
	check_shares(p, 2, true);
	check_served(p, 2, "d/f1", "d/f1 of 2");
	put(p, "d/f3", 4);
	publish(p);
	check_shares(p, 4, true);
	drop(p, 3);
	drop(p, 2);
	check_shares(p, 4, true);
	check_served(p, 4, "d/f1", "d/f1 of 2");
	assert_true(io_exists(bases));
	put(p, "d/f4", 0);
	publish(p); /* whole */
	drop(p, 4);
	assert_false(io_exists(bases));
	check_served(p, 5, "d/f1", "d/f1 of 2");
	drop(p, 5);
	assert_false(io_exists(folder));
}

static void a_run_that_lies_between_can_go_first(void **state)
{
	struct place *p = *state;

	publish(p);
	put(p, "d/f1", 2);
	publish(p);
	put(p, "d/f2", 3);
	publish(p);
	drop(p, 2);
	check_shares(p, 3, true);
	check_served(p, 3, "d/f1", "d/f1 of 2");
	check_shares(p, 1, false);
}

/* It was killed when the folder had its new place and the old one was a link. */
static void an_end_that_was_cut_short_goes_on(void **state)
{
	struct place *p = *state;
	AUTO_FREE char *run = at(p, 1, ".");
	AUTO_FREE char *base = xasprintf("%s/default/a/.base/run_%032u", p->root, 1);

	publish(p);
	put(p, "d/f1", 2);
	publish(p);
	run[strlen(run) - 2] = '\0';
	assert_int_equal(0, renameat2(AT_FDCWD, run, AT_FDCWD, base, RENAME_EXCHANGE));
	check_shares(p, 2, true);
	drop(p, 1);
	check_shares(p, 2, true);
}

static void without_the_base_all_is_fetched(void **state)
{
	struct place *p = *state;
	AUTO_FREE char *run = at(p, 1, ".");
	struct err e = ERR_INIT;

	publish(p);
	put(p, "d/f1", 2);
	publish(p);
	run[strlen(run) - 2] = '\0';
	assert_int_equal(0, io_rmtree(run, &e)); /* by an administrator */
	publish(p);
	check_shares(p, 3, false);
	check_served(p, 3, "d/f1", "d/f1 of 2");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_run_that_changes_few_of_many_has_only_these),
		TEST(each_further_one_has_what_is_new_since_the_base),
		TEST(a_run_without_a_file_of_the_base_is_whole_again),
		TEST(a_changed_file_that_goes_does_not_bring_the_old_one_back),
		TEST(a_new_file_that_goes_again_leaves_the_rest_shared),
		TEST(what_is_a_file_no_more_is_not_shown_as_it_was),
		TEST(what_cannot_be_read_is_not_shown_as_it_was),
		TEST(many_changes_make_a_run_whole),
		TEST(few_files_are_always_whole),
		TEST(the_name_of_the_link_is_nobody_elses),
		TEST(a_base_outlives_its_run_and_no_longer_than_it_is_needed),
		TEST(a_run_that_lies_between_can_go_first),
		TEST(an_end_that_was_cut_short_goes_on),
		TEST(without_the_base_all_is_fetched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
