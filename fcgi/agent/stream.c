/* SPDX-License-Identifier: MIT */
#include "agent/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/auto.h"
#include "wire/agentproto.h"

enum {
	PUMP_ROUNDS = 16,
	PIPE_DEFAULT = 64 * 1024,
	PIPE_LARGE = 1 << 20,
};

/* splice(2) to it costs no copy; opened once. */
static int null_fd(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	return fd;
}

/* Throw away up to n bytes; as read(2). */
static ssize_t discard(int fd, size_t n)
{
	static char sink[64 * 1024];
	ssize_t rc = splice(fd, NULL, null_fd(), NULL, n, SPLICE_F_NONBLOCK);

	if (rc < 0 && errno != EAGAIN && errno != EINTR)
		rc = read(fd, sink, n < sizeof(sink) ? n : sizeof(sink));
	return rc;
}

/* Pipes are a shared allowance: only one that was seen full gets a large one. */
static void enlarge(int fd, bool *is_large)
{
	if (*is_large)
		return;
	*is_large = true;
	fcntl(fd, F_SETPIPE_SZ, PIPE_LARGE);
}

int stream_open(struct stream *s, struct loop *l, uint64_t cap, int *ret_child_fd)
{
	AUTO_CLOSE int rd = -1;
	AUTO_CLOSE int wr = -1;
	int fds[2];

	s->watch.fd = -1;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	rd = fds[0];
	wr = fds[1];
	if (fcntl(rd, F_SETFL, O_NONBLOCK) < 0)
		return -1;
	if (ring_init(&s->ring, cap < AP_RING_MAX ? (size_t)cap : AP_RING_MAX) < 0)
		return -1;
	s->watch.fd = rd;
	s->loop = l;
	s->cap = cap;
	*ret_child_fd = wr;
	rd = wr = -1;
	return 0;
}

bool stream_watch(struct stream *s)
{
	return s->watch.fd < 0 || s->is_blocked ||
	       loop_watch(s->loop, &s->watch, EPOLLIN) == 0;
}

/* As read(2); ENOBUFS when the ring is full. */
static ssize_t fill(struct stream *s)
{
	struct iovec iov[2];
	int count = ring_room(&s->ring, (size_t)(s->cap - s->ring.end), iov);
	ssize_t n;

	if (count == 0) {
		errno = ENOBUFS;
		return -1;
	}
	n = readv(s->watch.fd, iov, count);
	if (n > 0)
		ring_written(&s->ring, (size_t)n);
	return n;
}

/* One read; false when there is nothing more to do now. */
static bool pump_once(struct stream *s)
{
	ssize_t n = s->ring.end < s->cap ? fill(s) : discard(s->watch.fd, PIPE_LARGE);

	if (n > 0) {
		s->total += (uint64_t)n;
		if (n >= PIPE_DEFAULT)
			enlarge(s->watch.fd, &s->is_large);
		return true;
	}
	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n < 0 && errno == ENOBUFS) {
		s->is_blocked = true;
		loop_watch(s->loop, &s->watch, 0);
		return false;
	}
	close(stream_detach(s)); /* the end, or a pipe that cannot be read */
	return false;
}

bool stream_pump(struct stream *s)
{
	uint64_t before = s->total;

	for (int i = 0; i < PUMP_ROUNDS && stream_is_open(s) && !s->is_blocked; i++) {
		if (!pump_once(s))
			break;
	}
	return s->total > before;
}

void stream_acked(struct stream *s, uint64_t offset)
{
	ring_drop(&s->ring, offset);
	if (s->sent < s->ring.base)
		s->sent = s->ring.base;
	if (!s->is_blocked || s->ring.end - s->ring.base == s->ring.size)
		return;
	if (loop_watch(s->loop, &s->watch, EPOLLIN) == 0)
		s->is_blocked = false; /* else: at the next ACK */
}

bool stream_is_open(const struct stream *s)
{
	return s->watch.fd >= 0;
}

int stream_detach(struct stream *s)
{
	int fd = s->watch.fd;

	if (fd >= 0)
		loop_watch(s->loop, &s->watch, 0);
	s->watch.fd = -1;
	s->is_blocked = false;
	return fd;
}

void stream_release(struct stream *s)
{
	int fd = stream_detach(s);

	if (fd >= 0)
		close(fd);
	ring_release(&s->ring);
}

struct drain {
	struct watch watch;
	struct loop *loop;
};
static unsigned drains;

static void drain_event(struct watch *w, uint32_t events)
{
	struct drain *d = w->arg;
	ssize_t n = discard(w->fd, PIPE_LARGE);

	(void)events;
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	loop_watch(d->loop, w, 0);
	close(w->fd);
	free(d);
	drains--;
}

void drain_start(struct loop *l, int fd)
{
	struct drain *d = drains < DRAINS_MAX ? calloc(1, sizeof(*d)) : NULL;

	if (!d) {
		close(fd);
		return;
	}
	d->watch = (struct watch){.fd = fd, .fn = drain_event, .arg = d};
	d->loop = l;
	if (loop_watch(l, &d->watch, EPOLLIN) < 0) {
		close(fd);
		free(d);
		return;
	}
	drains++;
}
