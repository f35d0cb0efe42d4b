/* SPDX-License-Identifier: MIT */
#include "tests/unit/store/rig.h"

static void repeated_output_is_stored_once(void **state)
{
	struct rig *g = *state;

	rig_run(g, "r");
	assert_int_equal(rig_output(g, "r", 0, "hello ", 6), 6);
	assert_int_equal(rig_output(g, "r", 0, "hello ", 6), 6);
	rig_commit(g);
	assert_int_equal(rig_output(g, "r", 3, "lo wor", 6), 9);
	assert_int_equal(rig_output(g, "r", 0, "hello wor", 9), 9);
	assert_int_equal(rig_output(g, "r", 9, "ld", 2), 11);
	rig_commit(g);
	rig_expect_stdout(g, "r", "hello world", 11);
	assert_int_equal(rig_sql(g, "SELECT count(*) FROM events"), 3);
}

static void a_new_writer_goes_on_where_the_old_one_was(void **state)
{
	struct rig *g = *state;

	rig_run(g, "r");
	rig_output(g, "r", 0, "\xc3\xa4\xff", 3);
	rig_commit(g);
	rig_output(g, "r", 3, "lost", 4); /* never committed */
	rig_close(g);
	rig_open(g);

	AUTO_STORE_RUNS l = {0};
	OK(store_runs_unfinished(g->s, &l, &err));
	assert_int_equal(l.n, 1);
	assert_int_equal(l.v[0].commands[0].stored[STORE_STDOUT], 3);
	assert_int_equal(l.v[0].commands[0].stored[STORE_STDERR], 0);
	assert_int_equal(rig_output(g, "r", 1, "\xa4\xffok", 4), 5);
	rig_commit(g);
	rig_expect_stdout(g, "r", "\xc3\xa4\xffok", 5);
}

static void a_gap_is_refused_and_harms_nothing(void **state)
{
	struct rig *g = *state;
	struct store_output o = {.run_id = "r", .offset = 2, .data = "x", .n = 1};
	int64_t stored = 0;

	rig_run(g, "r");
	rig_output(g, "r", 0, "a", 1);
	FAILS(ERR_INVALID, store_output_add(g->s, &o, &stored, &err));
	o.offset = -1;
	FAILS(ERR_INVALID, store_output_add(g->s, &o, &stored, &err));
	o.offset = 0, o.command_index = 2;
	FAILS(ERR_NOT_FOUND, store_output_add(g->s, &o, &stored, &err));
	o.command_index = 0, o.run_id = "none";
	FAILS(ERR_NOT_FOUND, store_output_add(g->s, &o, &stored, &err));
	rig_commit(g);
	rig_expect_stdout(g, "r", "a", 1);
}

static void the_cut_is_marked_once_and_ends_the_stream(void **state)
{
	struct rig *g = *state;
	struct store_output o = {.run_id = "r", .offset = 2, .truncated = true};
	int64_t stored = 0;

	rig_run(g, "r");
	rig_output(g, "r", 0, "ab", 2);
	OK(store_output_add(g->s, &o, &stored, &err));
	OK(store_output_add(g->s, &o, &stored, &err));
	rig_commit(g);
	rig_close(g); /* the mark is found again in the table */
	rig_open(g);
	OK(store_output_add(g->s, &o, &stored, &err));
	assert_int_equal(rig_output(g, "r", 2, "c", 1), 2);
	rig_commit(g);
	rig_expect_stdout(g, "r", "ab", 2);

	AUTO_STORE_EVENTS l = {0};
	OK(store_read_run_events(g->r,
				 &(struct store_run_query){.run_id = "r",
							   .max_events = 10,
							   .max_bytes = 1000},
				 &l, &err));
	assert_int_equal(l.n, 2);
	assert_false(l.v[0].truncated);
	assert_true(l.v[1].truncated);
	assert_int_equal(l.v[1].n, 0);
}

static void bytes_are_kept_as_text_or_blob_and_come_back_the_same(void **state)
{
	static const struct {
		const char *data;
		size_t n;
		const char *type;
	} cases[] = {
		{"plain", 5, "text"},    {"\xe2\x82\xac", 3, "text"},
		{"\xe2\x82", 2, "blob"}, {"\0", 1, "blob"},
		{"a\0b", 3, "blob"},     {"\xff\xfe\x80", 3, "blob"},
	};
	struct rig *g = *state;
	AUTO_BUF all = BUF_INIT(1000);
	AUTO_STORE_EVENTS l = {0};

	rig_run(g, "r");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		rig_output(g, "r", (int64_t)all.len, cases[i].data, cases[i].n);
		buf_add(&all, cases[i].data, cases[i].n);
	}
	rig_commit(g);
	rig_expect_stdout(g, "r", all.p, all.len);
	OK(store_read_run_events(g->r,
				 &(struct store_run_query){.run_id = "r",
							   .max_events = 100,
							   .max_bytes = 1000},
				 &l, &err));
	for (size_t i = 0; i < l.n; i++) {
		AUTO_FREE char *sql =
			xasprintf("SELECT typeof(data) = '%s' FROM events WHERE seq = %d",
				  cases[i].type, (int)i + 1);
		assert_int_equal(rig_sql(g, sql), 1);
		assert_int_equal(l.v[i].n, cases[i].n);
		assert_memory_equal(l.v[i].data, cases[i].data, cases[i].n);
	}
}

static void any_range_of_a_stream_can_be_read(void **state)
{
	struct rig *g = *state;
	struct store_output e = {
		.run_id = "r", .stream = STORE_STDERR, .data = "E", .n = 1};
	int64_t stored = 0;
	char want[30];

	rig_run(g, "r");
	for (int i = 0; i < 30; i += 3) {
		memset(want + i, 'a' + i / 3, 3);
		rig_output(g, "r", i, want + i, 3);
	}
	OK(store_output_add(g->s, &e, &stored, &err));
	rig_commit(g);
	for (size_t from = 0; from <= 31; from++)
		for (size_t max = 0; max <= 31; max++) {
			struct store_output_query q = {
				.run_id = "r", .offset = (int64_t)from, .max = max};
			size_t left = from < 30 ? 30 - from : 0, n = 0;
			AUTO_BUF got = BUF_INIT(100);

			OK(store_read_output(g->r, &q, &got, &n, &err));
			assert_int_equal(n, max < left ? max : left);
			assert_memory_equal(got.p, want + (from < 30 ? from : 0), n);
		}
}

static void output_that_does_not_fit_the_buffer_is_an_error(void **state)
{
	struct rig *g = *state;
	struct store_output_query q = {.run_id = "r", .max = 100};
	AUTO_BUF got = BUF_INIT(3);
	size_t n = 0;

	rig_run(g, "r");
	rig_output(g, "r", 0, "12345", 5);
	rig_commit(g);
	FAILS(ERR_LIMIT, store_read_output(g->r, &q, &got, &n, &err));
	q.offset = -1;
	FAILS(ERR_INVALID, store_read_output(g->r, &q, &got, &n, &err));
}

static bool is_r2(void *arg, const char *run_id, enum store_event_type type)
{
	assert_true(type < STORE_EVENT_TYPE_COUNT);
	++*(int *)arg;
	return !strcmp(run_id, "r2");
}

static void new_events_are_found_for_the_wanted_runs_only(void **state)
{
	struct rig *g = *state;
	int asked = 0;
	struct store_new_query q = {
		.wanted = is_r2, .arg = &asked, .max_events = 2, .max_bytes = 1000};
	AUTO_STORE_EVENTS a = {0};
	AUTO_STORE_EVENTS b = {0};
	int64_t last = 0, newest = 0;

	OK(store_read_newest_event_id(g->r, &newest, &err));
	assert_int_equal(newest, 0);
	rig_run(g, "r1");
	rig_run(g, "r2");
	for (int i = 0; i < 3; i++) {
		rig_output(g, "r1", i, "x", 1);
		rig_output(g, "r2", i, "y", 1);
	}
	rig_output(g, "r1", 3, "x", 1);
	assert_int_equal(rig_commit(g).newest_event_id, 7);
	OK(store_read_new_events(g->r, &q, &a, &last, &err));
	assert_int_equal(a.n, 2);
	assert_true(a.more);
	assert_int_equal(last, 5); /* the fifth was passed over */
	assert_string_equal(a.v[1].run_id, "r2");
	assert_int_equal(a.v[1].seq, 2);
	q.after_id = last;
	OK(store_read_new_events(g->r, &q, &b, &last, &err));
	assert_int_equal(b.n, 1);
	assert_false(b.more);
	assert_int_equal(last, 7);
	OK(store_read_newest_event_id(g->r, &newest, &err));
	assert_int_equal(newest, 7);
}

static void batches_are_bounded_by_bytes_but_always_get_on(void **state)
{
	struct rig *g = *state;
	int64_t seq = 0;
	size_t batches = 0;

	rig_run(g, "r");
	for (int i = 0; i < 6; i++)
		rig_output(g, "r", INT64_C(10) * i, "0123456789", 10);
	rig_commit(g);
	for (bool more = true; more; batches++) {
		AUTO_STORE_EVENTS l = {0};

		OK(store_read_run_events(g->r,
					 &(struct store_run_query){.run_id = "r",
								   .after_seq = seq,
								   .max_events = 100,
								   .max_bytes = 15},
					 &l, &err));
		assert_in_range(l.n, 1, 2);
		assert_int_equal(l.v[0].seq, seq + 1);
		seq = l.v[l.n - 1].seq;
		more = l.more;
	}
	assert_int_equal(seq, 6);
	assert_int_equal(batches, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(repeated_output_is_stored_once),
		RIG_TEST(a_new_writer_goes_on_where_the_old_one_was),
		RIG_TEST(a_gap_is_refused_and_harms_nothing),
		RIG_TEST(the_cut_is_marked_once_and_ends_the_stream),
		RIG_TEST(bytes_are_kept_as_text_or_blob_and_come_back_the_same),
		RIG_TEST(any_range_of_a_stream_can_be_read),
		RIG_TEST(output_that_does_not_fit_the_buffer_is_an_error),
		RIG_TEST(new_events_are_found_for_the_wanted_runs_only),
		RIG_TEST(batches_are_bounded_by_bytes_but_always_get_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
