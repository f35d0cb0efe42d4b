/* SPDX-License-Identifier: MIT */
/*
 * A closed-loop HTTP/1.1 client: C keep-alive connections, each sends the same
 * request, waits for the whole answer, and sends it again. Prints latencies and
 * the rate. Every answer must have status 200 and hold the expected text.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

enum { ANSWER_MAX = 256 * 1024, REQUEST_MAX = 64 * 1024 };

struct conn {
	int fd;
	int64_t sent_us;
	size_t got;
	char in[ANSWER_MAX];
};

static char request[REQUEST_MAX];
static size_t request_len;
static const char *expected;

static void die(const char *what)
{
	fprintf(stderr, "bench_http: %s: %s\n", what, strerrordesc_np(errno));
	exit(1);
}

static int dial(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
		die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

static void send_request(struct conn *c)
{
	c->got = 0;
	c->sent_us = bench_now_us(CLOCK_MONOTONIC);
	if (write(c->fd, request, request_len) != (ssize_t)request_len)
		die("write");
}

static bool ends_chunked(const char *body, size_t n)
{
	return n >= 5 && memcmp(body + n - 5, "0\r\n\r\n", 5) == 0;
}

/* The whole answer is there. */
static bool is_complete(const struct conn *c)
{
	const char *end = memmem(c->in, c->got, "\r\n\r\n", 4);
	const char *len;
	size_t body;

	if (!end)
		return false;
	body = c->got - (size_t)(end + 4 - c->in);
	len = strcasestr(c->in, "\r\ncontent-length:");
	if (len && len < end)
		return body >= strtoul(len + 17, NULL, 10);
	return ends_chunked(end + 4, body);
}

static void check(const struct conn *c)
{
	if (strncmp(c->in, "HTTP/1.1 200", 12) == 0 && strstr(c->in, expected))
		return;
	fprintf(stderr, "bench_http: not the expected answer:\n%.2000s\n", c->in);
	exit(1);
}

/* Read what is there; true when an answer is complete. */
static bool on_readable(struct conn *c)
{
	ssize_t n = read(c->fd, c->in + c->got, sizeof c->in - 1 - c->got);

	if (n <= 0)
		die("read");
	c->got += (size_t)n;
	c->in[c->got] = '\0';
	return is_complete(c);
}

static void load_request(const char *path)
{
	FILE *f = fopen(path, "re");

	if (!f)
		die(path);
	request_len = fread(request, 1, sizeof request, f);
	fclose(f);
}

static void loop(int ep, long left_to_send, long to_receive, struct samples *s)
{
	struct epoll_event ev[64];
	int i, n;

	while (to_receive > 0) {
		n = epoll_wait(ep, ev, 64, 30000);
		if (n <= 0)
			die("no answer within 30 s");
		for (i = 0; i < n; i++) {
			struct conn *c = ev[i].data.ptr;

			if (!on_readable(c))
				continue;
			samples_add(s, bench_now_us(CLOCK_MONOTONIC) - c->sent_us);
			check(c);
			to_receive--;
			if (left_to_send-- > 0)
				send_request(c);
		}
	}
}

int main(int argc, char **argv)
{
	struct samples s = {0};
	struct conn *conns;
	long i, nconn, total;
	int64_t start;
	int ep = epoll_create1(EPOLL_CLOEXEC);

	if (argc != 6) {
		fprintf(stderr,
			"usage: bench_http PORT CONNECTIONS REQUESTS FILE EXPECT\n");
		return 1;
	}
	nconn = strtol(argv[2], NULL, 10);
	total = strtol(argv[3], NULL, 10);
	expected = argv[5];
	load_request(argv[4]);
	conns = calloc((size_t)nconn, sizeof *conns);
	if (!conns || ep < 0 || total < nconn)
		die("set up");
	start = bench_now_us(CLOCK_MONOTONIC);
	for (i = 0; i < nconn; i++) {
		struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &conns[i]};

		conns[i].fd = dial((int)strtol(argv[1], NULL, 10));
		if (epoll_ctl(ep, EPOLL_CTL_ADD, conns[i].fd, &ev) < 0)
			die("epoll_ctl");
		send_request(&conns[i]);
	}
	loop(ep, total - nconn, total, &s);
	samples_print(&s, bench_now_us(CLOCK_MONOTONIC) - start);
	return 0;
}
