/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/docker/context.h"
#include "backend/docker/dockerignore.h"
#include "base/auto.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/proc.h"
#include "tests/unit/testdir.h"

/* ---- .dockerignore */

static const struct {
	const char *pattern, *path;
	bool fits;
} fits[] = {
	{"a", "a", true},
	{"a", "b", false},
	{"*.c", "x.c", true},
	{"*.c", "d/x.c", false},
	{"*/*.c", "d/x.c", true},
	{"**/*.c", "x.c", true},
	{"**/*.c", "d/e/x.c", true},
	{"**/a", "ba", false},
	{"**/a", "b/a", true},
	{"d/**", "d/e/f", true},
	{"d/**/f", "d/f", true},
	{"d/**/f", "d/e/e/f", true},
	{"d/**/f", "d/ef", false},
	{"**", "anything/at/all", true},
	{"x?z", "xyz", true},
	{"x?z", "x/z", false},
	{"[a-c]x", "bx", true},
	{"[a-c]x", "dx", false},
	{"[^a-c]x", "dx", true},
	{"[^a]x", "/x", false},
	{"\\*", "*", true},
	{"\\*", "a", false},
	{"[a", "[a", true},
	{"", "", true},
	{"a*b*c", "aXbYc", true},
	{"a*b*c", "aXbY", false},
};

static void patterns_fit_as_those_of_docker(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof fits / sizeof *fits; i++)
		if (dockerignore_fits(fits[i].pattern, fits[i].path,
				      strlen(fits[i].path)) != fits[i].fits)
			fail_msg("%s: %s", fits[i].pattern, fits[i].path);
}

static void a_pattern_that_multiplies_takes_no_time(void **state)
{
	AUTO_BUF pattern = BUF_INIT(1000);
	char path[1001];
	int i;

	(void)state;
	for (i = 0; i < 200; i++)
		buf_puts(&pattern, "**a*");
	memset(path, 'a', 1000);
	path[1000] = '\0';
	assert_true(dockerignore_fits(pattern.p, path, 1000));
	assert_false(dockerignore_fits(pattern.p, path, 100));
}

static void the_last_line_that_fits_decides(void **state)
{
	static const char text[] = "# a comment\n\n/secret/\n*.log\r\n!keep.log\n"
				   "  ./build  \nnode_modules\n!node_modules/kept\n.\n";
	static const struct {
		const char *path;
		bool ignored;
	} cases[] = {
		{"secret", true},
		{"secret/a/b", true},
		{"other/secret", false},
		{"x.log", true},
		{"keep.log", false},
		{"build/out", true},
		{"node_modules/a", true},
		{"node_modules/kept", false},
		{"node_modules/kept/x", false},
		{"# a comment", false},
		{"src/main.c", false},
	};
	struct dockerignore d;
	size_t i;

	(void)state;
	dockerignore_parse(text, sizeof text - 1, &d);
	assert_true(d.has_exceptions);
	for (i = 0; i < sizeof cases / sizeof *cases; i++)
		if (dockerignore_matches(&d, cases[i].path) != cases[i].ignored)
			fail_msg("%s", cases[i].path);
	dockerignore_release(&d);
}

/* ---- what is sent */

static void only_a_dockerfile_that_copies_wants_its_folder(void **state)
{
	static const char *const wants[] = {
		"FROM x\nCOPY a b\n",    "  copy\ta b",   "ADD --chown=1:1 a b",
		"COPY [\"a\", \"b\"]\n", "COPY \\\n a b", "COPY --link a b\r\n"};
	static const char *const not [] = {
		"FROM x\nRUN true\n",   "COPY --from=build /a /b\n",
		"# COPY a b\n",         "COPY --chown=1 --from=0 a b",
		"ADD https://x/y /z\n", "COPY <<EOF /x\nhello\nEOF\n",
		"COPYRIGHT a",          "COPY",
		"RUN COPY a b",         ""};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof wants / sizeof *wants; i++)
		if (!context_is_wanted(wants[i], strlen(wants[i])))
			fail_msg("not: %s", wants[i]);
	for (i = 0; i < sizeof not / sizeof *not ; i++)
		if (context_is_wanted(not [i], strlen(not [i])))
			fail_msg("wants: %s", not [i]);
}

static char top[64];

static void put(const char *name, const char *text)
{
	AUTO_FREE char *path = xasprintf("%s/in/%s", top, name);
	AUTO_FREE char *dir = xstrdup(path);
	struct err e = ERR_INIT;

	*strrchr(dir, '/') = '\0';
	assert_int_equal(io_mkdirs(dir, 0755, &e), 0);
	assert_int_equal(io_write_file_atomic(path, text, strlen(text), 0640, &e), 0);
}

static int setup(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	snprintf(top, sizeof top, "%s/context-%d", test_tmp(), (int)getpid());
	return io_rmtree(top, &e);
}

static int teardown(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	return io_rmtree(top, &e);
}

/* The archive as tar lists it, sorted, a name a line; NULL: it was refused. */
static char *listing(struct err *e)
{
	AUTO_FREE char *file = xasprintf("%s/in/Dockerfile", top);
	AUTO_FREE char *tar = xasprintf("%s/tar", top);
	AUTO_FREE char *cmd = xasprintf("tar tf %s | sort | tr '\\n' ' '", tar);
	const char *argv[] = {"sh", "-c", cmd, NULL};
	struct proc p = {.argv = argv, .timeout_ms = 10000};
	AUTO_BUF bytes = BUF_INIT(CONTEXT_MAX);
	AUTO_BUF out = BUF_INIT(0);

	if (context_make(file, &bytes, e) < 0)
		return NULL;
	assert_int_equal(io_write_file_atomic(tar, bytes.p, bytes.len, 0600, e), 0);
	assert_int_equal(proc_run_ok(&p, &out, e), 0);
	return xstrdup(out.p);
}

static void a_dockerfile_that_copies_nothing_is_sent_alone(void **state)
{
	struct err e = ERR_INIT;
	AUTO_FREE char *l = NULL;

	(void)state;
	put("Dockerfile", "FROM x\n");
	put("secret", "x");
	l = listing(&e);
	assert_string_equal(l, CONTEXT_DOCKERFILE " ");
}

static void a_folder_is_sent_without_what_is_ignored(void **state)
{
	char deep[300] = "d/";
	AUTO_FREE char *link = NULL, *l = NULL, *want = NULL;
	struct err e = ERR_INIT;

	(void)state;
	memset(deep + 2, 'n', 200);
	put("Dockerfile", "FROM x\nCOPY . /\n");
	put(".dockerignore", "secret\nbig\n!big/kept\n.dockerignore\nDockerfile\n");
	put("secret", "x");
	put("src/a.c", "int a;");
	put("big/dropped", "x");
	put("big/kept", "x");
	put(deep, "long name");
	link = xasprintf("%s/in/link", top);
	unlink(link);
	assert_int_equal(symlink("src/a.c", link), 0);
	l = listing(&e);
	want = xasprintf(CONTEXT_DOCKERFILE " big/kept d/ %s link src/ src/a.c ", deep);
	assert_string_equal(l, want);
	/* One beside the Dockerfile and of its name goes first. */
	put("Dockerfile.dockerignore", "*\n!src\n");
	free(MOVE(l));
	l = listing(&e);
	assert_string_equal(l, CONTEXT_DOCKERFILE " src/ src/a.c ");
}

static void a_folder_that_is_too_large_is_refused_in_words(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/in/huge", top);
	AUTO_FREE char *l = NULL;
	struct err e = ERR_INIT;

	(void)state;
	put("Dockerfile", "FROM x\nCOPY . /\n");
	put("huge", "");
	assert_int_equal(truncate(path, CONTEXT_MAX + 1), 0);
	l = listing(&e);
	assert_null(l);
	assert_non_null(strstr(e.msg, ".dockerignore"));
	put(".dockerignore", "huge\n");
	e = (struct err)ERR_INIT;
	l = listing(&e);
	assert_non_null(l);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(patterns_fit_as_those_of_docker),
		TEST(a_pattern_that_multiplies_takes_no_time),
		TEST(the_last_line_that_fits_decides),
		TEST(only_a_dockerfile_that_copies_wants_its_folder),
		TEST(a_dockerfile_that_copies_nothing_is_sent_alone),
		TEST(a_folder_is_sent_without_what_is_ignored),
		TEST(a_folder_that_is_too_large_is_refused_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
