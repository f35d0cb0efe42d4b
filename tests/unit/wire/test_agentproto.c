/* SPDX-License-Identifier: MIT */
#include "wire/agentproto.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static uint8_t frame[AP_FRAME_MAX];

/* A copy that ends at a page nobody may touch: any over-read faults. */
static uint8_t *at_guard(const void *p, size_t n)
{
	size_t page = (size_t)getpagesize(), len = (n / page + 2) * page;
	uint8_t *map = mmap(NULL, len, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(mprotect(map + len - page, page, PROT_NONE), 0);
	memcpy(map + len - page - n, p, n);
	return map + len - page - n;
}

static struct ap_bytes bytes(const char *s)
{
	return (struct ap_bytes){(const uint8_t *)s, strlen(s)};
}

static const struct ap_id some_id = {
	.run = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255}, .index = 70000};

static enum ap_side side_of(enum ap_type type)
{
	return type >= AP_GONE ? AP_FROM_AGENT : AP_FROM_RUNNER;
}

/* One filled message of every type. */
static size_t all_messages(struct ap_msg *m)
{
	static uint8_t known[64], offsets[64], entries[128];
	struct ap_known k = {some_id, AP_ENDED};
	struct ap_offsets o = {some_id, 17, UINT64_C(1) << 40};
	struct ap_entry e = {.type = AP_FILE_SYMLINK,
			     .mode = 0777,
			     .nlink = 3,
			     .size = 12,
			     .mtime_ns = -5,
			     .ino = 99,
			     .path = bytes("a/b\n\xff")};
	size_t n = 0;

	m[n] = ap_hello_init();
	m[n++].u.hello.known =
		(struct ap_bytes){known, ap_known_put(known, sizeof(known), &k)};
	m[n++] = (struct ap_msg){
		AP_RESUME,
		{.resume = {{offsets, ap_offsets_put(offsets, sizeof(offsets), &o)}}}};
	m[n++] = (struct ap_msg){AP_START_BEGIN,
				 {.start = {.id = some_id,
					    .flags = AP_START_SCRIPT,
					    .uid = 1000,
					    .gid = AP_GID_OF_USER,
					    .timeout_ms = 250,
					    .stdout_cap = 1 << 20,
					    .argc = 3,
					    .envc = 1,
					    .strings_bytes = 50,
					    .script_bytes = 3 << 20,
					    .script_arg = 2}}};
	m[n++] = (struct ap_msg){AP_START_DATA, {.data = {bytes("/tmp")}}};
	m[n++] = (struct ap_msg){AP_START_END, {.data = {{NULL, 0}}}};
	m[n++] = (struct ap_msg){AP_STDIN, {.stdin_data = {some_id, 5, bytes("in")}}};
	m[n++] = (struct ap_msg){AP_STDIN_EOF, {.stdin_data = {some_id, 7, {NULL, 0}}}};
	m[n++] = (struct ap_msg){AP_CANCEL, {.cancel = {some_id, 2000}}};
	m[n++] = (struct ap_msg){AP_ACK, {.ack = o}};
	m[n++] = (struct ap_msg){AP_FORGET, {.ref = {some_id}}};
	m[n++] = (struct ap_msg){AP_FS_LIST,
				 {.fs_list = {1, 0, 65536, 1, 2, bytes("/a")}}};
	m[n++] = (struct ap_msg){
		AP_FS_READ,
		{.fs_read = {2, 1000, 65536, 1, 3, 4, bytes("/"), bytes("etc/passwd")}}};
	m[n++] = (struct ap_msg){AP_FS_WRITE,
				 {.fs_write = {3, 1000, 1000, 0644, AP_WRITE_MKDIRS,
					       bytes("/w"), bytes("x")}}};
	m[n++] = (struct ap_msg){AP_FS_WRITE_DATA, {.fs_data = {3, 0, bytes("data")}}};
	m[n++] = (struct ap_msg){AP_FS_WRITE_END, {.fs_ref = {3}}};
	m[n++] = (struct ap_msg){AP_FS_CANCEL, {.fs_ref = {3}}};
	m[n++] = (struct ap_msg){AP_PING, {.ping = {UINT64_MAX}}};
	m[n++] = (struct ap_msg){AP_PONG, {.ping = {1}}};
	m[n++] = (struct ap_msg){AP_FS_CREDIT, {.fs_credit = {3, 4096}}};
	m[n++] = (struct ap_msg){AP_GONE, {.ref = {some_id}}};
	m[n++] = (struct ap_msg){AP_STARTED, {.started = {some_id, 7, 1234, 0}}};
	m[n++] = (struct ap_msg){AP_OUTPUT,
				 {.output = {some_id, AP_STDERR, 77, bytes("out")}}};
	m[n++] = (struct ap_msg){AP_EXIT,
				 {.exit = {.id = some_id,
					   .how = AP_SPAWN_FAILED,
					   .stage = AP_STAGE_CWD,
					   .value = 2,
					   .flags = AP_EXIT_TIMED_OUT,
					   .duration_us = 5}}};
	m[n++] = (struct ap_msg){AP_STDIN_ACK, {.stdin_ack = {some_id, 7}}};
	m[n++] = (struct ap_msg){
		AP_FS_ENTRIES,
		{.fs_entries = {1,
				{entries, ap_entry_put(entries, sizeof(entries), &e)}}}};
	m[n++] = (struct ap_msg){AP_FS_DATA, {.fs_data = {2, 3, bytes("\0x")}}};
	m[n - 1].u.fs_data.bytes.n = 2;
	m[n++] = (struct ap_msg){AP_FS_END, {.fs_end = {.req = 2, .error = 40}}};
	m[n++] = (struct ap_msg){AP_BYE, {.bye = {AP_BYE_VERSION}}};
	return n;
}

static void every_message_survives_the_trip(void **state)
{
	struct ap_msg m[AP_TYPE_COUNT], got;
	uint8_t again[512];
	size_t n = all_messages(m), len, used = 0;

	(void)state;
	assert_int_equal(n, AP_TYPE_COUNT - 1);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(m[i].type, i + 1);
		len = ap_encode(&m[i], frame, sizeof(frame));
		assert_true(len >= AP_HEADER);
		assert_int_equal(ap_decode(frame, len, side_of(m[i].type), &got, &used),
				 AP_OK);
		assert_int_equal(used, len);
		assert_int_equal(got.type, m[i].type);
		assert_int_equal(ap_encode(&got, again, sizeof(again)), len);
		assert_memory_equal(again, frame, len);
	}
}

static void values_arrive_as_they_were_sent(void **state)
{
	struct ap_msg m = {AP_OUTPUT, {.output = {some_id, AP_STDERR, 77, bytes("out")}}};
	struct ap_msg got;
	size_t used, len = ap_encode(&m, frame, sizeof(frame));

	(void)state;
	assert_int_equal(ap_decode(frame, len, AP_FROM_AGENT, &got, &used), AP_OK);
	assert_true(ap_id_equal(&got.u.output.id, &some_id));
	assert_int_equal(got.u.output.stream, AP_STDERR);
	assert_int_equal(got.u.output.offset, 77);
	assert_int_equal(got.u.output.bytes.n, 3);
	assert_memory_equal(got.u.output.bytes.p, "out", 3);
}

static void a_part_of_a_frame_asks_for_more(void **state)
{
	struct ap_msg m[AP_TYPE_COUNT], got;
	size_t n = all_messages(m), len, used;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		len = ap_encode(&m[i], frame, sizeof(frame));
		for (size_t cut = 0; cut < len; cut++) {
			assert_int_equal(ap_decode(at_guard(frame, cut), cut,
						   side_of(m[i].type), &got, &used),
					 AP_MORE);
		}
	}
}

static void a_payload_that_is_cut_is_bad(void **state)
{
	struct ap_msg m[AP_TYPE_COUNT], got;
	size_t n = all_messages(m), len, used;
	enum ap_result rc;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		len = ap_encode(&m[i], frame, sizeof(frame));
		for (size_t cut = AP_HEADER; cut < len; cut++) {
			uint8_t *p = at_guard(frame, cut);

			p[0] = (uint8_t)(cut - AP_HEADER);
			p[1] = p[2] = p[3] = 0;
			rc = ap_decode(p, cut, side_of(m[i].type), &got, &used);
			/* A shorter tail or an empty list may still be a message. */
			assert_int_not_equal(rc, AP_MORE);
			if (rc == AP_OK)
				assert_int_equal(used, cut);
		}
	}
}

static void a_message_from_the_wrong_side_is_bad(void **state)
{
	struct ap_msg m[AP_TYPE_COUNT], got;
	size_t n = all_messages(m), len, used;
	enum ap_result want;
	enum ap_side other;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		len = ap_encode(&m[i], frame, sizeof(frame));
		other = side_of(m[i].type) == AP_FROM_AGENT ? AP_FROM_RUNNER
							    : AP_FROM_AGENT;
		want = AP_BAD;
		if (m[i].type == AP_HELLO || m[i].type == AP_PING ||
		    m[i].type == AP_PONG || m[i].type == AP_FS_CREDIT)
			want = AP_OK;
		assert_int_equal(ap_decode(frame, len, other, &got, &used), want);
	}
}

static enum ap_result try(const struct ap_msg *m)
{
	struct ap_msg got;
	size_t used, len = ap_encode(m, frame, sizeof(frame));

	assert_true(len > 0);
	return ap_decode(at_guard(frame, len), len, side_of(m->type), &got, &used);
}

static void paths_that_leave_their_root_are_bad(void **state)
{
	static const char *const inner[] = {"",     "/a",   "..",   "a/../b", ".",
					    "a//b", "a/b/", "a/..", "./a"};
	struct ap_msg m = {AP_FS_READ,
			   {.fs_read = {.root = bytes("/r"), .path = bytes("..a/b.")}}};

	(void)state;
	assert_int_equal(try(&m), AP_OK);
	for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]); i++) {
		m.u.fs_read.path = bytes(inner[i]);
		assert_int_equal(try(&m), AP_BAD);
	}
	m.u.fs_read.path = (struct ap_bytes){(const uint8_t *)"a\0b", 3};
	assert_int_equal(try(&m), AP_BAD);
	m.u.fs_read.path = bytes("a");
	m.u.fs_read.root = bytes("rel");
	assert_int_equal(try(&m), AP_BAD);
}

static void values_out_of_range_are_bad(void **state)
{
	struct ap_msg m[AP_TYPE_COUNT];

	(void)state;
	all_messages(m);
	m[AP_OUTPUT - 1].u.output.stream = AP_STREAM_COUNT;
	m[AP_EXIT - 1].u.exit.how = AP_HOW_COUNT;
	m[AP_ACK - 1].u.ack.stdout_off = AP_OFFSET_MAX + 1;
	m[AP_START_BEGIN - 1].u.start.script_arg = 3;
	m[AP_HELLO - 1].u.hello.magic[0] = 'm';
	m[AP_BYE - 1].u.bye.reason = AP_BYE_REASON_COUNT;
	m[AP_FS_WRITE - 1].u.fs_write.mode = 010000;
	m[AP_FS_LIST - 1].u.fs_list.depth = AP_LIST_DEPTH_MAX + 1;
	m[AP_FS_READ - 1].u.fs_read.flags = 2;
	assert_int_equal(try(&m[AP_FS_LIST - 1]), AP_BAD);
	assert_int_equal(try(&m[AP_FS_READ - 1]), AP_BAD);
	assert_int_equal(try(&m[AP_OUTPUT - 1]), AP_BAD);
	assert_int_equal(try(&m[AP_EXIT - 1]), AP_BAD);
	assert_int_equal(try(&m[AP_ACK - 1]), AP_BAD);
	assert_int_equal(try(&m[AP_START_BEGIN - 1]), AP_BAD);
	assert_int_equal(try(&m[AP_HELLO - 1]), AP_BAD);
	assert_int_equal(try(&m[AP_BYE - 1]), AP_BAD);
	assert_int_equal(try(&m[AP_FS_WRITE - 1]), AP_BAD);
	m[AP_START_BEGIN - 1].u.start = (struct ap_start){.argc = 1, .strings_bytes = 1};
	assert_int_equal(try(&m[AP_START_BEGIN - 1]), AP_BAD);
}

static void a_header_that_lies_is_bad_at_once(void **state)
{
	static const uint8_t bad[][AP_HEADER] = {
		{1, 0, 1, 0, AP_PING},       {8, 0, 0, 0, 0},
		{8, 0, 0, 0, AP_TYPE_COUNT}, {8, 0, 0, 0, AP_PING, 1},
		{0, 0, 0, 255, AP_OUTPUT},
	};
	struct ap_msg got;
	size_t used;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		for (int side = AP_FROM_RUNNER; side <= AP_FROM_AGENT; side++)
			assert_int_equal(ap_decode(bad[i], AP_HEADER, (enum ap_side)side,
						   &got, &used),
					 AP_BAD);
	}
}

static void a_list_has_a_limit(void **state)
{
	static uint8_t list[(AP_COMMANDS_MAX + 1) * 36];
	struct ap_offsets o = {some_id, 1, 2};
	struct ap_msg m = {AP_RESUME, {.resume = {{list, 0}}}};

	(void)state;
	for (size_t i = 0; i < AP_COMMANDS_MAX; i++)
		m.u.resume.offsets.n += ap_offsets_put(list + i * 36, 36, &o);
	assert_int_equal(m.u.resume.offsets.n, AP_COMMANDS_MAX * 36);
	assert_int_equal(try(&m), AP_OK);
	ap_offsets_put(list + m.u.resume.offsets.n, 36, &o);
	m.u.resume.offsets.n += 36;
	assert_int_equal(try(&m), AP_BAD);
}

static void what_does_not_fit_is_not_encoded(void **state)
{
	static uint8_t big[AP_PAYLOAD_MAX];
	struct ap_msg m = {AP_START_DATA, {.data = {{big, AP_CHUNK_MAX}}}};
	size_t len;

	(void)state;
	len = ap_encode(&m, frame, sizeof(frame));
	assert_int_equal(len, AP_HEADER + AP_CHUNK_MAX);
	assert_int_equal(ap_encode(&m, frame, len - 1), 0);
	assert_int_equal(ap_encode_head(&m, frame, sizeof(frame)), AP_HEADER);
	assert_int_equal(frame[0] | frame[1] << 8, AP_CHUNK_MAX);
	m.u.data.bytes.n++;
	assert_int_equal(ap_encode(&m, frame, sizeof(frame)), 0);
}

/* Feed a stream of many frames in pieces of every small size. */
static void the_reader_takes_any_pieces(void **state)
{
	static uint8_t stream[64 * 1024];
	struct ap_reader *r = calloc(1, sizeof(*r));
	struct ap_msg m[AP_TYPE_COUNT], got;
	size_t n = all_messages(m), total = 0, space, frames;

	(void)state;
	for (size_t i = 0; i < 400; i++)
		total += ap_encode(&m[i % 2 ? AP_PING - 1 : AP_STDIN - 1], stream + total,
				   sizeof(stream) - total);
	assert_true(n > 0 && total < sizeof(stream));
	for (size_t piece = 1; piece < 200; piece += 7) {
		frames = 0;
		for (size_t at = 0; at < total; at += piece) {
			size_t len = total - at < piece ? total - at : piece;
			void *p = ap_reader_space(r, &space);

			assert_true(space >= len);
			memcpy(p, stream + at, len);
			ap_reader_fed(r, len);
			while (ap_reader_next(r, AP_FROM_RUNNER, &got) == AP_OK)
				frames++;
		}
		assert_int_equal(frames, 400);
	}
	free(r);
}

static void the_reader_always_has_room_for_the_largest_frame(void **state)
{
	static uint8_t big[AP_CHUNK_MAX];
	struct ap_reader *r = calloc(1, sizeof(*r));
	struct ap_msg m = {AP_START_DATA, {.data = {{big, sizeof(big)}}}}, got;
	size_t len = ap_encode(&m, frame, sizeof(frame)), sent = 0, frames = 0, space;

	(void)state;
	while (sent < 20 * len) {
		uint8_t *p = ap_reader_space(r, &space);
		size_t take = space < 50001 ? space : 50001;

		assert_true(space > 0);
		for (size_t i = 0; i < take; i++)
			p[i] = frame[(sent + i) % len];
		ap_reader_fed(r, take);
		sent += take;
		while (ap_reader_next(r, AP_FROM_RUNNER, &got) == AP_OK)
			frames++;
	}
	assert_int_equal(frames, sent / len);
	free(r);
}

static void versions_meet_or_not(void **state)
{
	struct ap_msg m = ap_hello_init();

	(void)state;
	assert_int_equal(ap_version(&m.u.hello), AP_VERSION);
	m.u.hello.version_max = AP_VERSION + 5;
	assert_int_equal(ap_version(&m.u.hello), AP_VERSION);
	m.u.hello.version_min = AP_VERSION + 1;
	assert_int_equal(ap_version(&m.u.hello), 0);
	m.u.hello.version_min = m.u.hello.version_max = AP_VERSION_MIN;
	assert_int_equal(ap_version(&m.u.hello), AP_VERSION_MIN);
	m.u.hello.version_min = m.u.hello.version_max = AP_VERSION_MIN - 1;
	assert_int_equal(ap_version(&m.u.hello), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_survives_the_trip),
		cmocka_unit_test(values_arrive_as_they_were_sent),
		cmocka_unit_test(a_part_of_a_frame_asks_for_more),
		cmocka_unit_test(a_payload_that_is_cut_is_bad),
		cmocka_unit_test(a_message_from_the_wrong_side_is_bad),
		cmocka_unit_test(paths_that_leave_their_root_are_bad),
		cmocka_unit_test(values_out_of_range_are_bad),
		cmocka_unit_test(a_header_that_lies_is_bad_at_once),
		cmocka_unit_test(a_list_has_a_limit),
		cmocka_unit_test(what_does_not_fit_is_not_encoded),
		cmocka_unit_test(the_reader_takes_any_pieces),
		cmocka_unit_test(the_reader_always_has_room_for_the_largest_frame),
		cmocka_unit_test(versions_meet_or_not),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
