/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "backend/docker/muxframe.h"
#include "base/auto.h"
#include "base/io.h"
#include "base/mem.h"
#include "net/http.h"
#include "net/pump.h"
#include "tests/unit/testdir.h"

enum { PATIENCE_MS = 60000 }; /* then it hangs */

/*
 * A server on a unix socket that answers every connection with a fixed head, and
 * then sends back each read as one Docker frame; "bye" ends the connection. Or it
 * only counts what comes.
 */
struct server {
	char path[64];
	const char *head;
	int fd;
	bool only_counts;
	size_t count; /* of the last connection; after server_stop() */
	pthread_t thread;
};

static size_t count_bytes(int fd)
{
	char part[4096];
	size_t all = 0;
	ssize_t n;

	while ((n = read(fd, part, sizeof part)) > 0)
		all += (size_t)n;
	return all;
}

static void echo_frames(int fd)
{
	static char part[70000];
	char frame[8] = {1};
	struct err e = ERR_INIT;
	ssize_t n;

	while ((n = read(fd, part, 65536)) > 0) {
		if (n == 3 && memcmp(part, "bye", 3) == 0)
			return;
		frame[5] = (char)(n >> 16);
		frame[6] = (char)(n >> 8);
		frame[7] = (char)n;
		if (io_write_all(fd, frame, 8, &e) < 0 ||
		    io_write_all(fd, part, (size_t)n, &e) < 0)
			return;
	}
}

/* Takes the request's head; its body is part of the same write. */
static void *serve(void *arg)
{
	struct server *s = arg;
	char request[4096];
	struct err e = ERR_INIT;
	int fd;

	while ((fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		if (read(fd, request, sizeof request) > 0 &&
		    io_write_all(fd, s->head, strlen(s->head), &e) == 0 &&
		    strstr(s->head, " 101 ")) {
			if (s->only_counts)
				s->count = count_bytes(fd);
			else
				echo_frames(fd);
		}
		close(fd);
	}
	return NULL;
}

static struct http *server_start_as(struct server *s, const char *head, bool only_counts)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	*s = (struct server){.only_counts = only_counts};
	snprintf(s->path, sizeof s->path, "%s/pump-%d.sock", test_tmp(), (int)getpid());
	snprintf(a.sun_path, sizeof a.sun_path, "%s", s->path);
	unlink(s->path);
	s->head = head;
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(listen(s->fd, 8), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
	return http_new(
		&(struct http_target){.base = "http://docker", .unix_socket = s->path});
}

static struct http *server_start(struct server *s, const char *head)
{
	return server_start_as(s, head, false);
}

static void server_stop(struct server *s)
{
	shutdown(s->fd, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->fd);
	unlink(s->path);
}

static const char upgraded[] = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\n\r\n";

static int upgrade(struct http *h, struct hijack **ret, struct http_answer *refusal,
		   struct err *e)
{
	struct http_upgrade u = {.path = "/exec/1/start",
				 .host = "docker",
				 .protocol = "tcp",
				 .content_type = "application/json",
				 .body = "{}",
				 .len = 2,
				 .timeout_ms = PATIENCE_MS};

	return http_upgrade(h, &u, ret, refusal, e);
}

static int decode(void *state, const char *p, size_t n, struct buf *out)
{
	return muxframe_feed(state, p, n, out);
}
static const struct pump_codec codec = {.decode = decode, .free = free};

static int pumped_by(struct http *h, struct pump *p, const struct pump_codec *by)
{
	struct http_answer refusal = HTTP_ANSWER_INIT;
	struct buf ready = BUF_INIT(16);
	struct hijack *j = NULL;
	struct err e = ERR_INIT;
	int fd = -1;

	if (upgrade(h, &j, &refusal, &e) < 0)
		fail_msg("upgrade: %s", e.msg);
	assert_int_equal(pump_add(p,
				  &(struct pump_stream){
					  .hijack = j,
					  .codec = by,
					  .state = xcalloc(1, sizeof(struct muxframe)),
					  .ready = &ready},
				  &fd, &e),
			 0);
	return fd;
}

static int pumped(struct http *h, struct pump *p)
{
	return pumped_by(h, p, &codec);
}

static void read_exactly(int fd, char *to, size_t n)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t at = 0;
	ssize_t got;

	while (at < n) {
		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
		got = read(fd, to + at, n - at);
		assert_true(got > 0);
		at += (size_t)got;
	}
}

static void a_stream_carries_bytes_both_ways(void **state)
{
	struct server s;
	struct http *h = server_start(&s, upgraded);
	struct pump *p = NULL;
	struct err e = ERR_INIT;
	char back[5];
	int fd;

	(void)state;
	assert_int_equal(pump_start(&p, &e), 0);
	fd = pumped(h, p);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(write(fd, "hello", 5), 5);
	read_exactly(fd, back, 5);
	assert_memory_equal(back, "hello", 5);
	close(fd);
	pump_stop(p);
	http_free(h);
	server_stop(&s);
}

static void megabytes_come_back_whole_and_in_order(void **state)
{
	enum { TOTAL = 8 << 20 };
	struct server s;
	struct http *h = server_start(&s, upgraded);
	struct pump *p = NULL;
	struct err e = ERR_INIT;
	char *out = xmalloc(TOTAL), *in = xmalloc(TOTAL);
	size_t sent = 0, got = 0, i;
	int fd;

	(void)state;
	for (i = 0; i < TOTAL; i++)
		out[i] = (char)(i * 2654435761U >> 13);
	assert_int_equal(pump_start(&p, &e), 0);
	fd = pumped(h, p);
	while (got < TOTAL) {
		struct pollfd w = {.fd = fd,
				   .events = POLLIN | (sent < TOTAL ? POLLOUT : 0)};
		ssize_t n;

		assert_int_equal(poll(&w, 1, PATIENCE_MS), 1);
		n = w.revents & POLLOUT ? write(fd, out + sent, TOTAL - sent) : 0;
		sent += n > 0 ? (size_t)n : 0;
		n = w.revents & POLLIN ? read(fd, in + got, TOTAL - got) : 0;
		got += n > 0 ? (size_t)n : 0;
	}
	assert_memory_equal(in, out, TOTAL);
	close(fd);
	pump_stop(p);
	http_free(h);
	server_stop(&s);
	free(out);
	free(in);
}

static void the_end_of_the_stream_is_the_end_of_the_socket(void **state)
{
	struct server s;
	struct http *h = server_start(&s, upgraded);
	struct pump *p = NULL;
	struct err e = ERR_INIT;
	struct pollfd w;
	char c;
	int fd;

	(void)state;
	assert_int_equal(pump_start(&p, &e), 0);
	fd = pumped(h, p);
	assert_int_equal(write(fd, "bye", 3), 3);
	w = (struct pollfd){.fd = fd, .events = POLLIN};
	assert_int_equal(poll(&w, 1, PATIENCE_MS), 1);
	assert_int_equal(read(fd, &c, 1), 0);
	close(fd);
	pump_stop(p);
	http_free(h);
	server_stop(&s);
}

static sem_t caller_left;

static void encode_late(void *state, const char *p, size_t n, struct buf *out)
{
	(void)state;
	sem_wait(&caller_left);
	sem_post(&caller_left);
	buf_add(out, p, n);
}

static void what_was_written_before_a_close_arrives(void **state)
{
	static const char words[100000];
	static const struct pump_codec late = {
		.decode = decode, .encode = encode_late, .free = free};
	struct server s;
	struct http *h = server_start_as(&s, upgraded, true);
	struct pump *p = NULL;
	struct err e = ERR_INIT;
	int fd;

	(void)state;
	assert_int_equal(pump_start(&p, &e), 0);
	assert_int_equal(sem_init(&caller_left, 0, 0), 0);
	fd = pumped_by(h, p, &late);
	assert_int_equal(write(fd, words, sizeof words), sizeof words);
	close(fd);
	sem_post(&caller_left);
	pump_stop(p);
	http_free(h);
	server_stop(&s);
	assert_int_equal(s.count, sizeof words);
}

static void a_stop_ends_the_streams_that_are_left(void **state)
{
	struct server s;
	struct http *h = server_start(&s, upgraded);
	struct pump *p = NULL;
	struct err e = ERR_INIT;
	char c;
	int fd;

	(void)state;
	assert_int_equal(pump_start(&p, &e), 0);
	fd = pumped(h, p);
	pump_stop(p);
	assert_int_equal(read(fd, &c, 1), 0);
	close(fd);
	http_free(h);
	server_stop(&s);
}

static void a_refused_upgrade_has_its_status_and_words(void **state)
{
	struct server s;
	struct http *h = server_start(&s, "HTTP/1.1 409 Conflict\r\nContent-Length: 20"
					  "\r\n\r\n{\"message\":\"paused\"}");
	struct http_answer refusal = HTTP_ANSWER_INIT;
	struct hijack *j = NULL;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(upgrade(h, &j, &refusal, &e), -1);
	assert_int_equal(refusal.status, 409);
	assert_string_equal(refusal.body.p, "{\"message\":\"paused\"}");
	http_answer_release(&refusal);
	http_free(h);
	server_stop(&s);
}

static void calls_meet_their_cap_and_missing_sockets_their_errno(void **state)
{
	struct server s;
	struct http *h = server_start(&s, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n"
					  "01234567890123456789");
	struct http_call c = {.method = "GET", .path = "/x", .answer_max = 20};
	struct http_answer a = HTTP_ANSWER_INIT;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(http_call(h, &c, &a, &e), 0);
	assert_int_equal(a.status, 200);
	assert_int_equal(a.body.len, 20);
	http_answer_release(&a);
	c.answer_max = 19;
	assert_int_equal(http_call(h, &c, &a, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	server_stop(&s);
	e = (struct err)ERR_INIT;
	assert_int_equal(http_call(h, &c, &a, &e), -1);
	assert_int_equal(e.kind, ERR_SYSTEM);
	assert_int_equal(e.sys, 2); /* ENOENT */
	http_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_carries_bytes_both_ways),
		cmocka_unit_test(megabytes_come_back_whole_and_in_order),
		cmocka_unit_test(the_end_of_the_stream_is_the_end_of_the_socket),
		cmocka_unit_test(what_was_written_before_a_close_arrives),
		cmocka_unit_test(a_stop_ends_the_streams_that_are_left),
		cmocka_unit_test(a_refused_upgrade_has_its_status_and_words),
		cmocka_unit_test(calls_meet_their_cap_and_missing_sockets_their_errno),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
