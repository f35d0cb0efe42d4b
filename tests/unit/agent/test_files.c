/* SPDX-License-Identifier: MIT */
#include "harness.h"

#include <fcntl.h>

#include "agent/path.h"

struct listed {
	struct ap_entry e;
	char path[AP_PATH_MAX + 1];
};
struct listing {
	struct listed v[20000];
	size_t n;
	struct ap_fs_end end;
};
static struct listing list;
static uint32_t next_req = 1;
static uint32_t list_depth, read_flags, write_uid;

static void take_entries(struct ap_bytes entries)
{
	struct ap_entry e;

	while (ap_entry_next(&entries, &e) == 1) {
		struct listed *l = &list.v[list.n++];

		l->e = e;
		memcpy(l->path, e.path.p, e.path.n);
		l->path[e.path.n] = '\0';
	}
}

/* List with little credit at a time, so that the flow is used. */
static void do_list(const char *root, uint32_t credit)
{
	struct ap_msg m = {.type = AP_FS_LIST};
	struct ap_msg more = {.type = AP_FS_CREDIT, .u.fs_credit = {next_req, credit}};

	m.u.fs_list = (struct ap_fs_list){
		next_req++, 0,          credit,
		0,          list_depth, {(const uint8_t *)root, strlen(root)}};
	list.n = 0;
	if (h.c.fd < 0)
		client_connect(NULL, 0);
	client_send(&m);
	for (;;) {
		assert_true(client_next(&m, PATIENCE_MS));
		if (m.type == AP_FS_END)
			break;
		assert_int_equal(m.type, AP_FS_ENTRIES);
		take_entries(m.u.fs_entries.entries);
		client_send(&more);
	}
	list.end = m.u.fs_end;
}

static const struct ap_entry *entry(const char *path)
{
	for (size_t i = 0; i < list.n; i++) {
		if (strcmp(list.v[i].path, path) == 0)
			return &list.v[i].e;
	}
	return NULL;
}

/* The whole answer to one READ; the bytes are the caller's to free. */
static struct ap_fs_end do_read(const char *root, const char *path, uint64_t offset,
				uint64_t len, char **ret, uint64_t *ret_n)
{
	struct ap_msg m = {.type = AP_FS_READ};
	struct ap_msg more = {.type = AP_FS_CREDIT, .u.fs_credit = {next_req, 100000}};

	m.u.fs_read = (struct ap_fs_read){next_req++,
					  0,
					  100000,
					  read_flags,
					  offset,
					  len,
					  {(const uint8_t *)root, strlen(root)},
					  {(const uint8_t *)path, strlen(path)}};
	*ret = NULL;
	*ret_n = 0;
	if (h.c.fd < 0)
		client_connect(NULL, 0);
	client_send(&m);
	for (;;) {
		assert_true(client_next(&m, PATIENCE_MS));
		if (m.type == AP_FS_END)
			return m.u.fs_end;
		assert_int_equal(m.type, AP_FS_DATA);
		assert_int_equal(m.u.fs_data.offset, offset + *ret_n);
		*ret = realloc(*ret, *ret_n + m.u.fs_data.bytes.n);
		memcpy(*ret + *ret_n, m.u.fs_data.bytes.p, m.u.fs_data.bytes.n);
		*ret_n += m.u.fs_data.bytes.n;
		more.u.fs_credit.bytes = (uint32_t)m.u.fs_data.bytes.n;
		client_send(&more);
	}
}

static void sh(const char *script)
{
	struct result r = run_sh(script);

	if (r.exit.value)
		print_message("%s: %s\n", script, r.out[1]);
	assert_int_equal(r.exit.value, 0);
	result_free(&r);
}

/* A tree of odd things in h.dir/t. */
static int make_tree(void **state)
{
	char script[1024];

	if (agent_start(state) < 0)
		return -1;
	snprintf(script, sizeof(script),
		 "mkdir -p %s/t && cd %s/t && mkdir -p a/b/c && printf hello >a/f && "
		 "ln a/f a/hard && ln -s /etc/passwd link && ln -s a dirlink && "
		 "mkfifo fifo && truncate -s 10T sparse && mkdir locked && "
		 "printf x >\"$(printf 'odd\\nna\\377me')\" && chmod 4755 a/f && "
		 "ln -s t ../rootlink",
		 h.dir, h.dir);
	sh(script);
	return 0;
}

static int drop_tree(void **state)
{
	char script[256];

	snprintf(script, sizeof(script), "rm -rf %s/t %s/rootlink", h.dir, h.dir);
	sh(script);
	return agent_stop(state);
}

static char root[128];
static const char *tree(void)
{
	snprintf(root, sizeof(root), "%s/t", h.dir);
	return root;
}

static void a_listing_tells_what_is_there_and_follows_nothing(void **state)
{
	(void)state;
	do_list(tree(), 1);
	assert_int_equal(list.end.error, 0);
	assert_int_equal(list.n, 11);
	assert_int_equal(list.end.count, 11);
	assert_int_equal(entry("a/b/c")->type, AP_FILE_DIRECTORY);
	assert_int_equal(entry("a/f")->type, AP_FILE_REGULAR);
	assert_int_equal(entry("a/f")->size, 5);
	assert_int_equal(entry("a/f")->mode, 04755);
	assert_int_equal(entry("a/f")->nlink, 2);
	assert_int_equal(entry("a/f")->ino, entry("a/hard")->ino);
	assert_true(entry("a/f")->mtime_ns > INT64_C(1600000000) * 1000000000);
	assert_int_equal(entry("link")->type, AP_FILE_SYMLINK);
	assert_int_equal(entry("dirlink")->type, AP_FILE_SYMLINK);
	assert_null(entry("dirlink/f"));
	assert_int_equal(entry("fifo")->type, AP_FILE_FIFO);
	assert_int_equal(entry("sparse")->size, UINT64_C(10) << 40);
	assert_non_null(entry("odd\nna\377me"));
}

static void a_root_that_is_a_symlink_or_missing_is_refused(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/rootlink", h.dir);
	do_list(path, 1000);
	assert_int_equal(list.end.error, ELOOP);
	snprintf(path, sizeof(path), "%s/missing", h.dir);
	do_list(path, 1000);
	assert_int_equal(list.end.error, ENOENT);
	assert_int_equal(list.n, 0);
	do_list("/etc/passwd", 1000);
	assert_int_equal(list.end.error, ENOTDIR);
}

static void files_are_read_in_ranges(void **state)
{
	struct ap_fs_end end;
	uint64_t n;
	char *p;

	(void)state;
	end = do_read(tree(), "a/f", 0, 1000, &p, &n);
	assert_int_equal(end.error, 0);
	assert_int_equal(end.size, 5);
	assert_int_equal(n, 5);
	assert_memory_equal(p, "hello", 5);
	free(p);
	end = do_read(tree(), "a/f", 1, 3, &p, &n);
	assert_int_equal(n, 3);
	assert_memory_equal(p, "ell", 3);
	free(p);
	end = do_read(tree(), "a/f", 50, 3, &p, &n);
	assert_int_equal(end.error, 0);
	assert_int_equal(n, 0);
	end = do_read(tree(), "sparse", UINT64_C(5) << 40, 1000000, &p, &n);
	assert_int_equal(end.error, 0);
	assert_int_equal(n, 1000000);
	assert_int_equal(p[999999], 0);
	free(p);
}

static void only_regular_files_under_the_root_are_read(void **state)
{
	static const struct {
		const char *path;
		uint32_t error;
	} cases[] = {
		{"link", ELOOP}, {"dirlink/f", ELOOP}, {"fifo", EINVAL},
		{"a", EISDIR},   {"nothing", ENOENT},  {"a/f/x", ENOTDIR},
	};
	struct ap_fs_end end;
	uint64_t n;
	char *p;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		end = do_read(tree(), cases[i].path, 0, 10, &p, &n);
		assert_int_equal(end.error, cases[i].error);
		assert_int_equal(n, 0);
	}
}

static void without_openat2_the_answers_are_the_same(void **state)
{
	int rootfd;

	(void)state;
	path_without_openat2();
	rootfd = path_open_root(tree(), false);
	assert_true(rootfd >= 0);
	assert_true(path_open(rootfd, "a/f", O_RDONLY, false) >= 0);
	assert_int_equal(path_open(rootfd, "link", O_RDONLY, false), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(path_open(rootfd, "dirlink/f", O_RDONLY, false), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(path_open(rootfd, "a/f/x", O_RDONLY, false), -1);
	assert_int_equal(errno, ENOTDIR);
	snprintf(root, sizeof(root), "%s/rootlink", h.dir);
	assert_int_equal(path_open_root(root, false), -1);
	assert_int_equal(errno, ELOOP);
	close(rootfd);
}

static void send_write(const char *path, uint32_t flags, const char *data)
{
	struct ap_msg m = {.type = AP_FS_WRITE};

	m.u.fs_write = (struct ap_fs_write){next_req,
					    write_uid,
					    0,
					    0640,
					    flags,
					    {(const uint8_t *)tree(), strlen(tree())},
					    {(const uint8_t *)path, strlen(path)}};
	client_send(&m);
	m.type = AP_FS_WRITE_DATA;
	m.u.fs_data =
		(struct ap_fs_data){next_req, 0, {(const uint8_t *)data, strlen(data)}};
	client_send(&m);
}

static struct ap_fs_end write_end(enum ap_type how)
{
	struct ap_msg m = {.type = how, .u.fs_ref = {next_req++}};

	client_send(&m);
	do {
		assert_true(client_next(&m, PATIENCE_MS));
	} while (m.type != AP_FS_END);
	return m.u.fs_end;
}

static void a_file_is_written_whole_or_not_at_all(void **state)
{
	struct ap_fs_end end;
	uint64_t n;
	char *p;

	(void)state;
	send_write("new/deep/file", AP_WRITE_MKDIRS, "content");
	end = write_end(AP_FS_WRITE_END);
	assert_int_equal(end.error, 0);
	assert_int_equal(end.size, 7);
	do_read(tree(), "new/deep/file", 0, 100, &p, &n);
	assert_memory_equal(p, "content", 7);
	free(p);
	send_write("new/deep/file", AP_WRITE_EXCL, "other");
	assert_int_equal(write_end(AP_FS_WRITE_END).error, EEXIST);
	send_write("none/file", 0, "x");
	assert_int_equal(write_end(AP_FS_WRITE_END).error, ENOENT);
	send_write("dirlink/file", AP_WRITE_MKDIRS, "x");
	assert_int_equal(write_end(AP_FS_WRITE_END).error, ELOOP);
	send_write("new/half", 0, "x");
	assert_int_equal(write_end(AP_FS_CANCEL).error, ECANCELED);
	send_write("new/lost", 0, "x");
	client_connect(NULL, 0); /* the connection goes in the middle */
	sync_agent();
	next_req++;
	snprintf(root, sizeof(root), "%s/t/new", h.dir);
	do_list(root, 10000);
	assert_int_equal(list.n, 2);
	assert_non_null(entry("deep/file"));
}

static void a_listing_goes_as_deep_as_it_is_asked(void **state)
{
	(void)state;
	list_depth = 1;
	do_list(tree(), 10000);
	assert_non_null(entry("a"));
	assert_int_equal(entry("a")->error, 0);
	assert_null(entry("a/f"));
	list_depth = 2;
	do_list(tree(), 10000);
	list_depth = 0;
	assert_non_null(entry("a/f"));
	assert_null(entry("a/b/c"));
}

static void links_are_followed_for_who_asks_but_those_of_proc_never(void **state)
{
	char *p = NULL;
	uint64_t n;

	(void)state;
	read_flags = AP_FS_FOLLOW;
	assert_int_equal(do_read(tree(), "dirlink/f", 0, 10, &p, &n).error, 0);
	assert_memory_equal(p, "hello", 5);
	free(p);
	/* Absolute links begin at the root that was given. */
	assert_int_equal(do_read(tree(), "link", 0, 10, &p, &n).error, ENOENT);
	assert_int_equal(do_read("/", "proc/self/fd/0", 0, 10, &p, &n).error, ELOOP);
	assert_int_equal(do_read("/", "proc/self/exe", 0, 10, &p, &n).error, ELOOP);
	read_flags = 0;
	send_write("dirlink/made/x", AP_WRITE_MKDIRS | AP_WRITE_FOLLOW, "linked");
	assert_int_equal(write_end(AP_FS_WRITE_END).error, 0);
	assert_int_equal(do_read(tree(), "a/made/x", 0, 10, &p, &n).error, 0);
	assert_memory_equal(p, "linked", 6);
	free(p);
	send_write("dirlink", AP_WRITE_FOLLOW | AP_WRITE_KEEP, "x");
	assert_int_equal(write_end(AP_FS_WRITE_END).error, ELOOP);
}

static void who_writes_as_a_user_may_what_the_user_may(void **state)
{
	const struct ap_entry *e;
	char script[512];

	(void)state;
	snprintf(script, sizeof(script),
		 "cd %s && chmod 755 . t && mkdir -m 755 t/roots && "
		 "mkdir -m 777 t/open && printf old >t/open/theirs && "
		 "chmod 754 t/open/theirs",
		 h.dir);
	sh(script);
	write_uid = 1;
	send_write("roots/no", AP_WRITE_AS_OWNER, "x");
	assert_int_equal(write_end(AP_FS_WRITE_END).error, EACCES);
	send_write("open/d/yes", AP_WRITE_AS_OWNER | AP_WRITE_MKDIRS, "x");
	assert_int_equal(write_end(AP_FS_WRITE_END).error, 0);
	write_uid = 0;
	do_list(tree(), 100000);
	e = entry("open/d/yes");
	assert_int_equal(e->uid, 1);
	assert_int_equal(e->gid, 1);
	assert_int_equal(e->mode, 0640);
	assert_int_equal(entry("open/d")->uid, 1);
	/* What is there keeps its mode, and under root its owner. */
	send_write("open/theirs", AP_WRITE_KEEP, "new");
	assert_int_equal(write_end(AP_FS_WRITE_END).error, 0);
	send_write("open/d/yes", AP_WRITE_KEEP, "new");
	assert_int_equal(write_end(AP_FS_WRITE_END).error, 0);
	do_list(tree(), 100000);
	assert_int_equal(entry("open/theirs")->mode, 0754);
	assert_int_equal(entry("open/d/yes")->uid, 1);
}

static void ten_thousand_files_and_deep_folders(void **state)
{
	char script[512];
	const struct ap_entry *deepest = NULL;
	uint64_t from;

	(void)state;
	snprintf(script, sizeof(script),
		 "cd %s/t && mkdir many && cd many && seq 10000 | xargs touch && "
		 "i=0; while [ $i -lt 80 ]; do mkdir d && cd d; i=$((i+1)); done",
		 h.dir);
	sh(script);
	snprintf(root, sizeof(root), "%s/t/many", h.dir);
	from = now_us();
	do_list(root, 1 << 20);
	print_message("10000 files listed in %.1f ms\n", (double)(now_us() - from) / 1e3);
	assert_int_equal(list.end.error, 0);
	assert_int_equal(list.n, 10000 + AP_LIST_DEPTH_MAX);
	for (size_t i = 0; i < list.n; i++) {
		if (list.v[i].e.error)
			deepest = &list.v[i].e;
	}
	assert_non_null(deepest);
	assert_int_equal(deepest->error, ENAMETOOLONG);
}

static void requests_are_bounded_and_may_interleave(void **state)
{
	struct ap_msg m = {.type = AP_FS_READ};
	unsigned refused = 0, ended = 0, data = 0;

	(void)state;
	client_connect(NULL, 0);
	for (uint32_t i = 0; i < AP_FS_REQUESTS_MAX + 4; i++) {
		m.type = AP_FS_READ;
		m.u.fs_read =
			(struct ap_fs_read){1000 + i,
					    0,
					    1,
					    0,
					    0,
					    1 << 30,
					    {(const uint8_t *)tree(), strlen(tree())},
					    {(const uint8_t *)"sparse", 6}};
		client_send(&m);
	}
	while (data < AP_FS_REQUESTS_MAX || refused < 4) {
		assert_true(client_next(&m, PATIENCE_MS));
		data += m.type == AP_FS_DATA;
		refused += m.type == AP_FS_END && m.u.fs_end.error == EAGAIN;
	}
	assert_false(client_next(&m, 100)); /* no credit, no bytes */
	for (uint32_t i = 0; i < AP_FS_REQUESTS_MAX; i++) {
		m = (struct ap_msg){.type = AP_FS_CANCEL, .u.fs_ref = {1000 + i}};
		client_send(&m);
	}
	while (ended < AP_FS_REQUESTS_MAX) {
		assert_true(client_next(&m, PATIENCE_MS));
		assert_int_equal(m.type, AP_FS_END);
		assert_int_equal(m.u.fs_end.error, ECANCELED);
		ended++;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_listing_tells_what_is_there_and_follows_nothing),
		cmocka_unit_test(a_root_that_is_a_symlink_or_missing_is_refused),
		cmocka_unit_test(files_are_read_in_ranges),
		cmocka_unit_test(only_regular_files_under_the_root_are_read),
		cmocka_unit_test(without_openat2_the_answers_are_the_same),
		cmocka_unit_test(a_file_is_written_whole_or_not_at_all),
		cmocka_unit_test(a_listing_goes_as_deep_as_it_is_asked),
		cmocka_unit_test(links_are_followed_for_who_asks_but_those_of_proc_never),
		cmocka_unit_test(who_writes_as_a_user_may_what_the_user_may),
		cmocka_unit_test(ten_thousand_files_and_deep_folders),
		cmocka_unit_test(requests_are_bounded_and_may_interleave),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_tree, drop_tree);
}
