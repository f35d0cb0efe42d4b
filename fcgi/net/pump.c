/* SPDX-License-Identifier: MIT */
#include "net/pump.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"

enum {
	PART = 64 * 1024,   /* read at once */
	HOLD_MAX = 1 << 20, /* ceiling of a buffer; PART keeps it far below */
	KEEP_MAX = 4096,    /* of a buffer that is empty */
	EVENTS = 64,
	ROUNDS = 8,       /* for one stream before the others have their turn */
	LAST_ROUNDS = 64, /* what the sockets hold needs about ten */
};

/* One direction's bytes between a read and its write. */
struct held {
	struct buf b;
	size_t at;
};

enum side { SIDE_FAR, SIDE_NEAR, SIDE_COUNT };

struct piped {
	struct piped *next, **prevp; /* of the pump's list */
	struct piped *next_dead, *next_again;
	struct hijack *far;
	int near;
	const struct pump_codec *codec;
	void *state;
	struct held in, out; /* to the caller; to the stream */
	bool far_ended, near_ended, is_dead, in_again;
	struct watched {
		struct piped *of;
		uint32_t events;
	} watched[SIDE_COUNT];
};

struct pump {
	int epoll_fd, wake_fd;
	pthread_t thread;
	pthread_mutex_t lock;
	struct piped *fresh; /* under lock: not yet taken by the thread */
	bool stopping;       /* under lock */
	/* the thread's own */
	struct piped *all;
	struct piped *dead;  /* freed after the batch of events */
	struct piped *again; /* had more to move when its turn was over */
	char part[PART];
};

static size_t held_left(const struct held *h)
{
	return h->b.len - h->at;
}

static void held_sent(struct held *h, size_t n)
{
	h->at += n;
	if (h->at < h->b.len)
		return;
	h->at = h->b.len = 0;
	/* Most streams are silent most of the time: what they need is few bytes. */
	if (h->b.cap > KEEP_MAX)
		buf_release(&h->b);
}

static void piped_free(struct piped *s)
{
	hijack_close(s->far);
	if (s->near >= 0)
		close(s->near);
	buf_release(&s->in.b);
	buf_release(&s->out.b);
	if (s->codec->free)
		s->codec->free(s->state);
	free(s);
}

static void list_put(struct piped **head, struct piped *s)
{
	s->next = *head;
	s->prevp = head;
	if (s->next)
		s->next->prevp = &s->next;
	*head = s;
}

static void list_take(struct piped *s)
{
	*s->prevp = s->next;
	if (s->next)
		s->next->prevp = s->prevp;
}

/* No interest takes it off: EPOLLHUP would come again and again otherwise. */
static void set_events(struct pump *p, struct piped *s, enum side side, int fd,
		       uint32_t events)
{
	struct watched *w = &s->watched[side];
	struct epoll_event ev = {.events = events, .data.ptr = w};
	int op = EPOLL_CTL_MOD;

	if (w->events == events)
		return;
	if (w->events == 0)
		op = EPOLL_CTL_ADD;
	else if (events == 0)
		op = EPOLL_CTL_DEL;
	w->events = events;
	if (epoll_ctl(p->epoll_fd, op, fd, &ev) < 0)
		s->near_ended = true;
}

/* Each of the four moves answers whether it moved anything. */
static bool read_far(struct pump *p, struct piped *s)
{
	ptrdiff_t n;

	if (s->far_ended || held_left(&s->in) > 0)
		return false;
	n = hijack_read(s->far, p->part, sizeof p->part);
	if (n == -1)
		return false;
	if (n <= 0 || s->codec->decode(s->state, p->part, (size_t)n, &s->in.b) < 0 ||
	    !buf_ok(&s->in.b))
		s->far_ended = true;
	return true;
}

static bool write_near(struct piped *s)
{
	ssize_t n;

	if (held_left(&s->in) == 0)
		return false;
	n = send(s->near, s->in.b.p + s->in.at, held_left(&s->in),
		 MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n < 0)
		s->near_ended = true;
	else
		held_sent(&s->in, (size_t)n);
	return true;
}

static bool read_near(struct pump *p, struct piped *s)
{
	ssize_t n;

	if (held_left(&s->out) > 0)
		return false;
	n = recv(s->near, p->part, sizeof p->part, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		s->near_ended = true;
		return false;
	}
	if (s->codec->encode)
		s->codec->encode(s->state, p->part, (size_t)n, &s->out.b);
	else
		buf_add(&s->out.b, p->part, (size_t)n);
	return true;
}

static bool write_far(struct piped *s)
{
	ptrdiff_t n;

	if (held_left(&s->out) == 0 && s->codec->answer)
		s->codec->answer(s->state, &s->out.b);
	if (held_left(&s->out) == 0 || s->far_ended)
		return false;
	n = hijack_write(s->far, s->out.b.p + s->out.at, held_left(&s->out));
	if (n == -1)
		return false;
	if (n == -2) /* its last words may still be there to read */
		s->out.at = s->out.b.len = 0;
	else
		held_sent(&s->out, (size_t)n);
	return true;
}

/*
 * What the caller wrote before it left, as far as the other end takes it at once: one
 * that does not read holds nobody.
 */
static void send_rest(struct pump *p, struct piped *s)
{
	int i;

	for (i = 0; i < LAST_ROUNDS && (write_far(s) || read_near(p, s)); i++)
		;
}

/* Its other events of this batch may still be to come. */
static void piped_end(struct pump *p, struct piped *s)
{
	if (s->is_dead)
		return;
	send_rest(p, s);
	s->is_dead = true;
	if (s->codec->over)
		s->codec->over(s->state, s->far_ended);
	list_take(s);
	set_events(p, s, SIDE_FAR, hijack_fd(s->far), 0);
	set_events(p, s, SIDE_NEAR, s->near, 0);
	s->next_dead = p->dead;
	p->dead = s;
}

static void watch(struct pump *p, struct piped *s)
{
	uint32_t far = (held_left(&s->in) == 0 ? EPOLLIN : 0) |
		       (held_left(&s->out) > 0 ? EPOLLOUT : 0);
	uint32_t near = (held_left(&s->out) == 0 ? EPOLLIN : 0) |
			(held_left(&s->in) > 0 ? EPOLLOUT : 0);

	set_events(p, s, SIDE_FAR, hijack_fd(s->far), s->far_ended ? 0 : far);
	set_events(p, s, SIDE_NEAR, s->near, near);
}

static bool is_over(const struct piped *s)
{
	return s->near_ended || (s->far_ended && held_left(&s->in) == 0);
}

/* Moves what can be moved. True: there may be more, and no event may tell. */
static bool move(struct pump *p, struct piped *s)
{
	bool any = true;
	int i;

	for (i = 0; i < ROUNDS && any && !is_over(s); i++) {
		any = write_far(s);
		any |= read_far(p, s);
		any |= write_near(s);
	}
	return any && !is_over(s);
}

static void serve(struct pump *p, struct piped *s, uint32_t near)
{
	bool more;

	if (s->is_dead)
		return;
	if (near & (EPOLLHUP | EPOLLERR))
		s->near_ended = true;
	else if (near & EPOLLIN)
		read_near(p, s);
	/* TLS may hold bytes that epoll does not know of: then it comes again. */
	more = move(p, s);
	if (!is_over(s))
		watch(p, s);
	if (is_over(s)) {
		piped_end(p, s);
	} else if (more && !s->in_again) {
		s->in_again = true;
		s->next_again = p->again;
		p->again = s;
	}
}

static void serve_again(struct pump *p)
{
	struct piped *s = MOVE(p->again), *next;

	for (; s; s = next) {
		next = s->next_again;
		s->in_again = false;
		serve(p, s, 0);
	}
}

static void bury(struct pump *p)
{
	struct piped *s;

	while ((s = p->dead)) {
		p->dead = s->next_dead;
		piped_free(s);
	}
}

/* What others left for the thread. False: it is to end. */
static bool take_orders(struct pump *p)
{
	struct piped *s, *next;
	uint64_t count;
	bool stopping;

	if (read(p->wake_fd, &count, sizeof count) < 0 && errno != EAGAIN)
		return false;
	pthread_mutex_lock(&p->lock);
	s = MOVE(p->fresh);
	stopping = p->stopping;
	pthread_mutex_unlock(&p->lock);
	for (; s; s = next) {
		next = s->next;
		list_put(&p->all, s);
		serve(p, s, 0);
	}
	return !stopping;
}

static void end_all(struct pump *p)
{
	while (p->all)
		piped_end(p, p->all);
	bury(p);
}

static void *pump_main(void *arg)
{
	struct pump *p = arg;
	struct epoll_event ev[EVENTS];
	bool going = true;
	int i, n;

	while (going) {
		n = epoll_wait(p->epoll_fd, ev, EVENTS, p->again ? 0 : -1);
		for (i = 0; i < n; i++) {
			struct watched *w = ev[i].data.ptr;

			if (!w)
				going = take_orders(p);
			else
				serve(p, w->of,
				      w == &w->of->watched[SIDE_NEAR] ? ev[i].events : 0);
		}
		serve_again(p);
		bury(p);
	}
	end_all(p);
	return NULL;
}

static int start_thread(struct pump *p, struct err *e)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&p->thread, NULL, pump_main, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = rc;
	return rc ? err_sys(e, "start a thread") : 0;
}

int pump_start(struct pump **ret, struct err *e)
{
	struct pump *p = xcalloc(1, sizeof *p);
	struct epoll_event wake = {.events = EPOLLIN, .data.ptr = NULL};

	pthread_mutex_init(&p->lock, NULL);
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->epoll_fd < 0 || p->wake_fd < 0 ||
	    epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->wake_fd, &wake) < 0) {
		err_sys(e, "make an epoll");
	} else if (start_thread(p, e) == 0) {
		*ret = p;
		return 0;
	}
	auto_close(&p->epoll_fd);
	auto_close(&p->wake_fd);
	free(p);
	return -1;
}

static void wake(struct pump *p)
{
	uint64_t one = 1;
	ssize_t n;

	do
		n = write(p->wake_fd, &one, sizeof one);
	while (n < 0 && errno == EINTR);
}

int pump_first_bytes(const struct pump_stream *stream, int64_t timeout_ms,
		     struct buf *ready, struct err *e)
{
	int64_t deadline = clock_mono_ms() + timeout_ms, left;
	struct pollfd p = {.fd = hijack_fd(stream->hijack), .events = POLLIN};
	char part[8192];
	ptrdiff_t n;

	while (ready->len == 0) {
		n = hijack_read(stream->hijack, part, sizeof part);
		if (n == 0 || n == -2)
			return err_set(e, ERR_BACKEND, "the stream ended");
		if (n > 0 &&
		    stream->codec->decode(stream->state, part, (size_t)n, ready) < 0 &&
		    ready->len == 0)
			return err_set(e, ERR_BACKEND, "the stream is over or broken");
		left = deadline - clock_mono_ms();
		if (left <= 0)
			return err_set(e, ERR_TIMEOUT, "the stream says nothing");
		if (n == -1 && poll(&p, 1, (int)left) < 0 && errno != EINTR)
			return err_sys(e, "poll");
	}
	return 0;
}

int pump_add(struct pump *p, const struct pump_stream *stream, int *ret_fd, struct err *e)
{
	struct piped *s = xcalloc(1, sizeof *s);
	int pair[2] = {-1, -1}, rc, i;

	*s = (struct piped){.far = stream->hijack,
			    .near = -1,
			    .codec = stream->codec,
			    .state = stream->state,
			    .in = {.b = BUF_INIT(HOLD_MAX)},
			    .out = {.b = BUF_INIT(HOLD_MAX)}};
	for (i = 0; i < SIDE_COUNT; i++)
		s->watched[i].of = s;
	rc = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair);
	if (rc < 0) {
		err_sys(e, "make a pair of sockets");
		piped_free(s);
		return -1;
	}
	s->near = pair[1];
	*ret_fd = pair[0];
	buf_add(&s->in.b, stream->ready->p, stream->ready->len);
	pthread_mutex_lock(&p->lock);
	s->next = p->fresh;
	p->fresh = s;
	pthread_mutex_unlock(&p->lock);
	wake(p);
	return 0;
}

void pump_stop(struct pump *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	pthread_mutex_unlock(&p->lock);
	wake(p);
	pthread_join(p->thread, NULL);
	close(p->epoll_fd);
	close(p->wake_fd);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
