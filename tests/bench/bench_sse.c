/* SPDX-License-Identifier: MIT */
/*
 * Many readers of one run's event stream. Opens N streams of one path, says
 * "open" on standard output once every one has been answered, then reads. The
 * run prints marks "T<nanoseconds since the epoch>"; each stream's delay from
 * such a mark to its arrival is a sample. Ends when every stream has ended;
 * prints the samples and how many marks arrived in all.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

enum { LINE_MAX_BYTES = 512 };

struct stream {
	int fd;
	bool answered;
	size_t n; /* of the line being collected */
	char line[LINE_MAX_BYTES];
};

static struct samples delays;
static long answered, ended, wanted;

static void die(const char *what)
{
	fprintf(stderr, "bench_sse: %s: %s\n", what, strerrordesc_np(errno));
	exit(1);
}

static void open_stream(struct stream *s, int port, const char *path, int ep)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = s};
	char req[1024];
	int n = snprintf(req, sizeof req,
			 "GET %s HTTP/1.1\r\nHost: localhost\r\n"
			 "Accept: text/event-stream\r\n\r\n",
			 path);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s->fd < 0 || connect(s->fd, (struct sockaddr *)&a, sizeof a) < 0)
		die("connect");
	if (write(s->fd, req, (size_t)n) != n)
		die("write");
	if (epoll_ctl(ep, EPOLL_CTL_ADD, s->fd, &ev) < 0)
		die("epoll_ctl");
}

static void on_line(struct stream *s, int64_t now_us)
{
	const char *mark;

	s->line[s->n] = '\0';
	s->n = 0;
	if (!s->answered && strncmp(s->line, "HTTP/1.1 ", 9) == 0) {
		if (strncmp(s->line + 9, "200", 3) != 0) {
			fprintf(stderr, "bench_sse: answered: %s\n", s->line);
			exit(1);
		}
		s->answered = true;
		if (++answered == wanted) {
			puts("open");
			fflush(stdout);
		}
	}
	mark = strstr(s->line, "\"chunk\":\"T");
	if (mark)
		samples_add(&delays, now_us - strtoll(mark + 10, NULL, 10) / 1000);
}

static void on_bytes(struct stream *s, const char *p, ssize_t n)
{
	int64_t now_us = bench_now_us(CLOCK_REALTIME);
	ssize_t i;

	for (i = 0; i < n; i++) {
		if (p[i] == '\n')
			on_line(s, now_us);
		else if (s->n < LINE_MAX_BYTES - 1)
			s->line[s->n++] = p[i];
	}
}

static void on_readable(struct stream *s)
{
	static char chunk[65536];
	ssize_t n = read(s->fd, chunk, sizeof chunk);

	if (n > 0)
		on_bytes(s, chunk, n);
	/* "0" CRLF CRLF is the last chunk of a keep-alive answer. */
	if (n <= 0 || (n >= 5 && memcmp(chunk + n - 5, "0\r\n\r\n", 5) == 0)) {
		close(s->fd);
		ended++;
	}
}

int main(int argc, char **argv)
{
	struct epoll_event ev[256];
	struct stream *all;
	int i, n, ep = epoll_create1(EPOLL_CLOEXEC);

	if (argc != 4) {
		fprintf(stderr, "usage: bench_sse PORT STREAMS PATH\n");
		return 1;
	}
	wanted = strtol(argv[2], NULL, 10);
	all = calloc((size_t)wanted, sizeof *all);
	if (!all || ep < 0)
		die("set up");
	for (i = 0; i < wanted; i++)
		open_stream(&all[i], (int)strtol(argv[1], NULL, 10), argv[3], ep);
	while (ended < wanted) {
		n = epoll_wait(ep, ev, 256, 120000);
		if (n <= 0)
			die("nothing came for two minutes");
		for (i = 0; i < n; i++)
			on_readable(ev[i].data.ptr);
	}
	samples_print(&delays, 0);
	return 0;
}
