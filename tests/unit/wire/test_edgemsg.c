/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "wire/edgemsg.h"

/* The header as it is on the wire. */
struct raw {
	uint32_t magic;
	uint16_t type, in_memfd;
	uint64_t id, length;
};
static const uint32_t magic = 0x314d4745;
enum { ALL_SEALS = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL };

static int a = -1, b = -1;

static int open_pair(void **state)
{
	int fd[2];

	(void)state;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) < 0)
		return -1;
	a = fd[0];
	b = fd[1];
	return 0;
}

static int close_pair(void **state)
{
	(void)state;
	close(a);
	close(b);
	return 0;
}

static int open_fds(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void round_trip(size_t size)
{
	AUTO_EDGEMSG m = {0};
	AUTO_JSON *body = NULL;
	char *text = xmalloc(size + 1);
	struct err e = ERR_INIT;
	int eof;

	memset(text, 'x', size);
	text[size] = '\0';
	body = json_pack("{s:s}", "k", text);
	free(text);
	assert_int_equal(edgemsg_send(a, MSG_RUN, 77, body, &e), 0);
	assert_int_equal(edgemsg_recv(b, &m, &eof, &e), 1);
	assert_int_equal(m.type, MSG_RUN);
	assert_int_equal(m.id, 77);
	assert_true(json_equal(m.body, body));
}

static void small_bodies_travel_inline_and_large_ones_in_a_memfd(void **state)
{
	int before = open_fds();

	(void)state;
	round_trip(0);
	round_trip(EDGEMSG_INLINE_MAX - 8); /* {"k":""} has 8 bytes */
	round_trip(EDGEMSG_INLINE_MAX - 7);
	round_trip(10 * 1024 * 1024);
	assert_int_equal(open_fds(), before);
}

static void a_body_over_the_limit_is_not_sent(void **state)
{
	char *text = xmalloc(EDGEMSG_BODY_MAX + 1);
	AUTO_JSON *body = NULL;
	struct err e = ERR_INIT;

	(void)state;
	memset(text, 'x', EDGEMSG_BODY_MAX);
	text[EDGEMSG_BODY_MAX] = '\0';
	body = json_pack("{s:s}", "k", text);
	free(text);
	assert_int_equal(edgemsg_send(a, MSG_RUN, 1, body, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
}

static void nothing_there_and_nobody_there_are_told_apart(void **state)
{
	AUTO_EDGEMSG m = {0};
	struct err e = ERR_INIT;
	int eof = 7;

	(void)state;
	assert_int_equal(edgemsg_recv(b, &m, &eof, &e), 0);
	assert_int_equal(eof, 0);
	shutdown(a, SHUT_RDWR);
	assert_int_equal(edgemsg_recv(b, &m, &eof, &e), 0);
	assert_int_equal(eof, 1);
}

static void an_empty_packet_is_malformed_and_not_the_end(void **state)
{
	AUTO_JSON *body = json_pack("{s:i}", "n", 1);
	struct edgemsg m = {0};
	struct err e = ERR_INIT, none = ERR_INIT;
	int eof = 7;

	(void)state;
	assert_int_equal(send(a, "", 0, 0), 0);
	assert_int_equal(edgemsg_send(a, MSG_RUN, 1, body, &none), 0);
	assert_int_equal(edgemsg_recv(b, &m, &eof, &e), -1);
	assert_int_equal(e.kind, ERR_INVALID);
	assert_int_equal(eof, 0);
	assert_int_equal(edgemsg_recv(b, &m, &eof, &none), 1);
	edgemsg_release(&m);
}

static void a_full_socket_is_busy(void **state)
{
	AUTO_JSON *body = json_pack("{s:i}", "n", 1);
	struct err e = ERR_INIT;
	int i;

	(void)state;
	for (i = 0; i < 100000 && edgemsg_send(a, MSG_RUN, 1, body, &e) == 0; i++)
		;
	assert_int_equal(e.kind, ERR_BUSY);
}

/* Sends header, n bytes and (unless -1) a descriptor, as an attacker would. */
static void send_raw(const struct raw *h, const void *p, size_t n, int fd)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof fd)];
	} c = {.room = {0}};
	struct iovec iov[2] = {{(void *)(uintptr_t)h, sizeof *h},
			       {(void *)(uintptr_t)p, n}};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};

	if (fd >= 0) {
		m.msg_control = c.room;
		m.msg_controllen = sizeof c.room;
		c.align.cmsg_level = SOL_SOCKET;
		c.align.cmsg_type = SCM_RIGHTS;
		c.align.cmsg_len = CMSG_LEN(sizeof fd);
		memcpy(CMSG_DATA(&c.align), &fd, sizeof fd);
	}
	assert_true(sendmsg(a, &m, MSG_NOSIGNAL) >= 0);
}

static void expect_refused(const char *why)
{
	AUTO_EDGEMSG m = {0};
	AUTO_JSON *body = json_object();
	struct err e = ERR_INIT, none = ERR_INIT;
	int eof, before = open_fds();

	assert_int_equal(edgemsg_recv(b, &m, &eof, &e), -1);
	assert_int_equal(e.kind, ERR_INVALID);
	if (!strstr(e.msg, why))
		fail_msg("%s, not %s", e.msg, why);
	assert_int_equal(open_fds(), before);
	/* It was consumed: the next message is read as if nothing had been. */
	assert_int_equal(edgemsg_send(a, MSG_HELLO, 5, body, &none), 0);
	assert_int_equal(edgemsg_recv(b, &m, &eof, &none), 1);
	assert_int_equal(m.id, 5);
}

static int memfd_with(const char *text, int seals)
{
	int fd = memfd_create("t", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void a_memfd_must_be_sealed_whole_and_of_the_right_size(void **state)
{
	struct raw h = {magic, MSG_RUN, 1, 1, 2};
	int loose = memfd_with("{}", 0);
	int writable = memfd_with("{}", ALL_SEALS & ~F_SEAL_WRITE);
	int unsealed = memfd_with("{}", ALL_SEALS & ~F_SEAL_SEAL);
	int sealed = memfd_with("{}", ALL_SEALS),
	    file = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	send_raw(&h, "", 0, loose);
	expect_refused("not sealed");
	send_raw(&h, "", 0, writable);
	expect_refused("not sealed");
	send_raw(&h, "", 0, unsealed);
	expect_refused("not sealed");
	send_raw(&h, "", 0, file);
	expect_refused("not sealed");
	send_raw(&h, "{}", 2, sealed);
	expect_refused("a body and a memfd");
	h.length = 3;
	send_raw(&h, "", 0, sealed);
	expect_refused("not its memfd's");
	close(loose);
	close(writable);
	close(unsealed);
	close(sealed);
	close(file);
}

static void headers_that_lie_are_refused(void **state)
{
	static const struct {
		struct raw h;
		const char *body, *why;
	} cases[] = {
		{{1, MSG_RUN, 0, 1, 2}, "{}", "not a message"},
		{{magic, 0, 0, 1, 2}, "{}", "unknown message type"},
		{{magic, MSG_TYPE_COUNT, 0, 1, 2}, "{}", "unknown message type"},
		{{magic, MSG_RUN, 0, 1, 3}, "{}", "not its body's"},
		{{magic, MSG_RUN, 0, 1, 1}, "{}", "not its body's"},
		{{magic, MSG_RUN, 0, 1, EDGEMSG_INLINE_MAX + 1}, "{}", "out of range"},
		{{magic, MSG_RUN, 0, 1, UINT64_MAX}, "{}", "out of range"},
		{{magic, MSG_RUN, 2, 1, 2}, "{}", "out of range"},
		{{magic, MSG_RUN, 1, 1, 2}, "", "0 descriptors, not 1"},
		{{magic, MSG_RUN, 0, 1, 2}, "[]", "no JSON object"},
		{{magic, MSG_RUN, 0, 1, 2}, "{,", "not JSON"},
		{{magic, MSG_RUN, 0, 1, 0}, "", "not JSON"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		send_raw(&cases[i].h, cases[i].body, strlen(cases[i].body), -1);
		expect_refused(cases[i].why);
	}
}

static void packets_too_short_or_too_long_are_refused(void **state)
{
	struct raw h = {magic, MSG_RUN, 0, 1, EDGEMSG_INLINE_MAX};
	char *big = xcalloc(1, EDGEMSG_INLINE_MAX + 1);

	(void)state;
	assert_int_equal(send(a, &h, sizeof h - 1, 0), sizeof h - 1);
	expect_refused("too short");
	send_raw(&h, big, EDGEMSG_INLINE_MAX + 1, -1);
	expect_refused("too long");
	free(big);
}

static void an_uninvited_descriptor_is_refused_and_closed(void **state)
{
	struct raw h = {magic, MSG_RUN, 0, 1, 2};

	(void)state;
	send_raw(&h, "{}", 2, 0);
	expect_refused("1 descriptors, not 0");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_pair, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(small_bodies_travel_inline_and_large_ones_in_a_memfd),
		TEST(a_body_over_the_limit_is_not_sent),
		TEST(nothing_there_and_nobody_there_are_told_apart),
		TEST(an_empty_packet_is_malformed_and_not_the_end),
		TEST(a_full_socket_is_busy),
		TEST(a_memfd_must_be_sealed_whole_and_of_the_right_size),
		TEST(headers_that_lie_are_refused),
		TEST(packets_too_short_or_too_long_are_refused),
		TEST(an_uninvited_descriptor_is_refused_and_closed),
	};
	return cmocka_run_group_tests_name("edgemsg", tests, NULL, NULL);
}
