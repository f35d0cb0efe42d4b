/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "runner/agentconn.h"

/* A connection whose other end is this test. */
struct peer {
	uv_loop_t loop;
	struct agentconns all;
	struct agentconn *conn;
	int fd, hellos;
	int64_t born_ms; /* or a moment before */
	const char *closed;
};

static void on_hello(void *arg, const struct ap_hello *h)
{
	(void)h;
	((struct peer *)arg)->hellos++;
}

static void on_message(void *arg, const struct ap_msg *m)
{
	(void)arg;
	(void)m;
}

static void on_closed(void *arg, const char *why)
{
	((struct peer *)arg)->closed = why;
}

static int setup(void **state)
{
	static const struct agentconn_events ev = {on_hello, on_message, on_closed};
	struct peer *p = calloc(1, sizeof(*p));
	struct err e = ERR_INIT;
	int pair[2];

	assert_non_null(p);
	assert_int_equal(0, uv_loop_init(&p->loop));
	assert_int_equal(
		0,
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
	p->fd = pair[1];
	p->born_ms = clock_mono_ms();
	assert_int_equal(0, agentconn_new(&(struct agentconn_args){.loop = &p->loop,
								   .all = &p->all,
								   .fd = pair[0],
								   .ev = &ev,
								   .arg = p},
					  &p->conn, &e));
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct peer *p = *state;

	agentconn_free(p->conn);
	uv_run(&p->loop, UV_RUN_DEFAULT);
	uv_loop_close(&p->loop);
	agentconns_release(&p->all);
	close(p->fd);
	free(p);
	return 0;
}

static void say_hello(struct peer *p)
{
	static uint8_t frame[AP_FRAME_MAX];
	struct ap_msg m = ap_hello_init();
	size_t n = ap_encode(&m, frame, sizeof(frame));

	assert_int_equal(n, write(p->fd, frame, n));
	uv_run(&p->loop, UV_RUN_NOWAIT);
	assert_int_equal(1, p->hellos);
}

static void who_says_no_hello_is_closed(void **state)
{
	struct peer *p = *state;

	agentconn_heartbeat(p->conn, p->born_ms + AGENTCONN_HELLO_MS - 1);
	assert_null(p->closed);
	agentconn_heartbeat(p->conn, clock_mono_ms() + AGENTCONN_HELLO_MS);
	assert_string_equal("the agent does not answer", p->closed);
}

static void who_is_silent_is_asked_and_then_closed(void **state)
{
	struct peer *p = *state;
	char heard[256];

	say_hello(p);
	while (read(p->fd, heard, sizeof(heard)) > 0)
		continue;
	agentconn_heartbeat(p->conn, clock_mono_ms() + AGENTCONN_PING_MS);
	assert_int_equal(AP_HEADER + 8, read(p->fd, heard, sizeof(heard)));
	assert_int_equal(AP_PING, heard[4]);
	assert_null(p->closed);
	agentconn_heartbeat(p->conn, clock_mono_ms() + AGENTCONN_SILENCE_MS);
	assert_string_equal("the agent does not answer", p->closed);
}

/* 1000 connections that wait share one buffer of 130 KiB. */
static void a_connection_without_half_a_frame_holds_no_buffer(void **state)
{
	struct peer *p = *state;
	struct ap_reader *spare;

	say_hello(p);
	spare = p->all.spare;
	assert_non_null(spare);
	assert_int_equal(4, write(p->fd, "\10\0\0\0", 4));
	uv_run(&p->loop, UV_RUN_NOWAIT);
	assert_null(p->all.spare);
	assert_null(p->closed);
}

static void who_reads_nothing_gets_no_answers(void **state)
{
	struct peer *p = *state;
	struct ap_msg pong = {.type = AP_PONG};

	say_hello(p);
	for (int i = 0; i < 200000; i++)
		agentconn_reply(p->conn, &pong);
	assert_in_range(agentconn_backlog(p->conn), 1, 1024 * 1024 + AP_FRAME_MAX);
}

/* An end that closes what it has not read breaks the connection; its words are there. */
static void the_last_words_of_who_breaks_off_are_heard(void **state)
{
	static uint8_t frame[AP_FRAME_MAX];
	struct peer *p = *state;
	struct ap_msg m = ap_hello_init();
	size_t n = ap_encode(&m, frame, sizeof(frame));

	assert_int_equal(n, write(p->fd, frame, n));
	close(p->fd);
	p->fd = -1;
	while (!p->closed)
		uv_run(&p->loop, UV_RUN_ONCE);
	assert_int_equal(1, p->hellos);
	assert_string_equal("the agent closed the connection", p->closed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_says_no_hello_is_closed),
		TEST(the_last_words_of_who_breaks_off_are_heard),
		TEST(who_is_silent_is_asked_and_then_closed),
		TEST(a_connection_without_half_a_frame_holds_no_buffer),
		TEST(who_reads_nothing_gets_no_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
