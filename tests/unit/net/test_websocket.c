/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "net/websocket.h"

#define INIT(s)                                                                          \
	{                                                                                \
		s, sizeof(s) - 1                                                         \
	}
#define BYTES(s) ((struct str)INIT(s))

/* ---- the handshake */

static const char key[] = "dGhlIHNhbXBsZSBub25jZQ=="; /* RFC 6455, 1.3 */

static int check(const char *head, struct str *ret, struct err *e)
{
	return ws_check_answer(head, strlen(head), key, "v5.x, v4.x", ret, e);
}

static void the_accept_of_the_rfc_is_ours(void **state)
{
	char accept[WS_ACCEPT_LEN + 1];

	(void)state;
	ws_accept(key, accept);
	assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

static void every_key_is_new_and_of_sixteen_bytes(void **state)
{
	char a[WS_KEY_LEN + 1], b[WS_KEY_LEN + 1];

	(void)state;
	ws_key(a);
	ws_key(b);
	assert_int_equal(strlen(a), WS_KEY_LEN);
	assert_string_not_equal(a, b);
}

#define ACCEPT "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
#define UPGRADE                                                                          \
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\n"                     \
	"Connection: keep-alive, Upgrade\r\n"

static void the_server_chooses_among_what_was_offered(void **state)
{
	struct str p = {0};
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(
		check(UPGRADE ACCEPT "Sec-WebSocket-Protocol: v4.x\r\n\r\n", &p, &e), 0);
	assert_true(str_eq(p, "v4.x"));
	assert_int_equal(check(UPGRADE ACCEPT "Sec-WebSocket-Protocol:\r\n\r\n", &p, &e),
			 0);
	assert_null(p.p);
	assert_int_equal(check(UPGRADE ACCEPT "\r\n", &p, &e), 0);
	assert_null(p.p);
}

static void an_answer_that_is_not_ours_is_refused(void **state)
{
	static const struct {
		const char *head, *words;
	} bad[] = {
		{UPGRADE "\r\n", "another handshake"},
		{UPGRADE "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo\r\n\r\n",
		 "another handshake"},
		{"HTTP/1.1 101 X\r\nUpgrade: websocket\r\n" ACCEPT "\r\n",
		 "no WebSocket"},
		{"HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: SPDY/3.1\r\n" ACCEPT
		 "\r\n",
		 "no WebSocket"},
		{UPGRADE ACCEPT "Sec-WebSocket-Protocol: v3.x\r\n\r\n", "not offered"},
		{UPGRADE ACCEPT "Sec-WebSocket-Protocol: v5.x, v4.x\r\n\r\n",
		 "not offered"},
		{UPGRADE ACCEPT "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
		 "extension"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct str p = {0};
		struct err e = ERR_INIT;

		if (check(bad[i].head, &p, &e) == 0)
			fail_msg("passed: %s", bad[i].head);
		assert_non_null(strstr(e.msg, bad[i].words));
	}
}

/* ---- frames in */

/* Writes down what comes: "Hello." a message, "[ping !]", "[close 1000 bye]". */
static void tell(struct ws_decoder *d, struct str in, struct buf *out)
{
	enum ws_event ev;
	struct str v;

	while ((ev = ws_next(d, &in, &v)) != WS_MORE && !strstr(out->p, "close")) {
		if (ev == WS_CLOSE)
			buf_printf(out, "[close %d %.*s]", d->close_code, (int)v.n, v.p);
		else if (ev == WS_PING || ev == WS_PONG)
			buf_printf(out, "[%s %.*s]", ev == WS_PING ? "ping" : "pong",
				   (int)v.n, v.p);
		else if (ev == WS_DATA)
			buf_add(out, v.p, v.n);
		else
			buf_puts(out, ev == WS_END ? "." : "[bad close]");
	}
}

static const struct {
	struct str bytes;
	const char *told;
} good[] = {
	{INIT("\x81\x05Hello"), "Hello."}, /* 5.7 */
	{INIT("\x01\x03Hel\x80\x02lo"), "Hello."},
	{INIT("\x89\x05Hello"), "[ping Hello]"},
	{INIT("\x8a\x00"), "[pong ]"},
	{INIT("\x82\x00\x82\x01x\x82\x00"), ".x.."},
	{INIT("\x02\x01x\x89\x01!\x00\x00\x80\x00"), "x[ping !]."},
	{INIT("\x82\x02\x01x\x88\x05\x03\xe8"
	      "bye"),
	 "\x01x.[close 1000 bye]"},
	{INIT("\x88\x00"), "[close 1005 ]"},
	{INIT("\x88\x02\x03\xe9"), "[close 1001 ]"},
};

static void frames_are_read_wherever_they_are_cut(void **state)
{
	size_t i, cut;

	(void)state;
	for (i = 0; i < sizeof good / sizeof *good; i++) {
		for (cut = 0; cut <= good[i].bytes.n; cut++) {
			struct ws_decoder d = {0};
			AUTO_BUF out = BUF_INIT(1000);

			tell(&d, (struct str){good[i].bytes.p, cut}, &out);
			tell(&d,
			     (struct str){good[i].bytes.p + cut, good[i].bytes.n - cut},
			     &out);
			assert_string_equal(out.p, good[i].told);
		}
	}
}

static void what_no_server_may_send_is_bad(void **state)
{
	static const struct str bad[] = {
		INIT("\x81\x85...."), /* masked */
		INIT("\xc1\x00"),     /* a reserved bit */
		INIT("\x83\x00"),
		INIT("\x8b\x00"),                     /* unknown opcodes */
		INIT("\x80\x00"),                     /* goes on with nothing */
		INIT("\x01\x00\x81\x00"),             /* a message in a message */
		INIT("\x09\x00"),                     /* a control in parts */
		INIT("\x89\x7e\x00\x7e"),             /* a control too long */
		INIT("\x82\x7e\x00\x7d"),             /* not the fewest bytes */
		INIT("\x82\x7f\0\0\0\0\0\0\xff\xff"), /* the same */
		INIT("\x82\x7f\x80\0\0\0\0\1\0\0"),   /* a negative length */
		INIT("\x88\x01\x03"),                 /* half a code */
		INIT("\x88\x02\x00\x00"),             /* no code */
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct ws_decoder d = {0};
		struct str in = bad[i], v;
		enum ws_event ev;

		while ((ev = ws_next(&d, &in, &v)) != WS_MORE && ev != WS_BAD)
			;
		if (ev != WS_BAD)
			fail_msg("%zu passed", i);
		in = BYTES("\x81\x00");
		assert_int_equal(ws_next(&d, &in, &v), WS_BAD);
	}
}

static void long_frames_have_their_length_in_two_or_eight_bytes(void **state)
{
	static char frame[10 + 70000] = "\x82\x7f\0\0\0\0\0\1\x11\x70";
	struct ws_decoder d = {0};
	struct str in = {frame, sizeof frame}, v;

	(void)state;
	assert_int_equal(ws_next(&d, &in, &v), WS_DATA);
	assert_int_equal(v.n, 70000);
	assert_int_equal(ws_next(&d, &in, &v), WS_END);
	in = BYTES("\x82\x7e\x00\x7e");
	assert_int_equal(ws_next(&d, &in, &v), WS_MORE);
	in = (struct str){frame + 10, 126};
	assert_int_equal(ws_next(&d, &in, &v), WS_DATA);
	assert_int_equal(v.n, 126);
	assert_int_equal(ws_next(&d, &in, &v), WS_END);
}

/* ---- frames out */

static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};

static void a_frame_of_ours_is_masked_as_in_the_rfc(void **state)
{
	AUTO_BUF out = BUF_INIT(100);

	(void)state;
	ws_encode(&out, WS_OP_TEXT, mask, BYTES("H"), BYTES("ello"));
	assert_int_equal(out.len, 11);
	assert_memory_equal(out.p, "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", 11);
}

static void lengths_are_said_in_the_fewest_bytes(void **state)
{
	static const struct {
		size_t n, head;
	} sizes[] = {{0, 6}, {125, 6}, {126, 8}, {65535, 8}, {65536, 14}};
	static char much[65536];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		AUTO_BUF out = BUF_INIT(100000);

		ws_encode(&out, WS_OP_BINARY, mask, (struct str){much, sizes[i].n},
			  BYTES(""));
		assert_int_equal(out.len, sizes[i].head + sizes[i].n);
		if (sizes[i].n)
			assert_int_equal((uint8_t)out.p[sizes[i].head], mask[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_accept_of_the_rfc_is_ours),
		cmocka_unit_test(every_key_is_new_and_of_sixteen_bytes),
		cmocka_unit_test(the_server_chooses_among_what_was_offered),
		cmocka_unit_test(an_answer_that_is_not_ours_is_refused),
		cmocka_unit_test(frames_are_read_wherever_they_are_cut),
		cmocka_unit_test(what_no_server_may_send_is_bad),
		cmocka_unit_test(long_frames_have_their_length_in_two_or_eight_bytes),
		cmocka_unit_test(a_frame_of_ours_is_masked_as_in_the_rfc),
		cmocka_unit_test(lengths_are_said_in_the_fewest_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
