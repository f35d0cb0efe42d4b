/* SPDX-License-Identifier: MIT */
#include "edge/client.h"

#include <assert.h>
#include <errno.h>
#include <fastcgi.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "edge/lot.h"

/* Content of one record: a multiple of 8 below the protocol's 65535. */
enum { RECORD_MAX = 65528, DISCARD_SIZE = 4096 };

void client_init(struct client *c, const struct client_ops *ops, int fd,
		 uint16_t request_id)
{
	*c = (struct client){
		.ops = ops, .fd = fd, .request_id = request_id, .is_open = true};
}

static void pop_chunk(struct client *c)
{
	chunk_put(c->queue[c->head]);
	c->queue[c->head] = NULL;
	c->head = (uint8_t)((c->head + 1) % CLIENT_QUEUE);
	c->count--;
	c->sent = 0;
}

static void put_header(unsigned char h[8], int type, uint16_t id, uint32_t len)
{
	h[0] = FCGI_VERSION_1;
	h[1] = (unsigned char)type;
	h[2] = (unsigned char)(id >> 8);
	h[3] = (unsigned char)id;
	h[4] = (unsigned char)(len >> 8);
	h[5] = (unsigned char)len;
	h[6] = h[7] = 0;
}

/* The next record of the first chunk begins. */
static void begin_record(struct client *c)
{
	const struct chunk *k = c->queue[c->head];
	uint32_t left = k->len - c->sent;

	c->record_left = left < RECORD_MAX || k->is_raw ? left : RECORD_MAX;
	if (k->is_raw)
		return;
	put_header(c->header, FCGI_STDOUT, c->request_id, c->record_left);
	c->header_left = sizeof(c->header);
}

/* n bytes of what was to go went out. */
static void account(struct client *c, size_t n)
{
	while (n > 0) {
		if (c->record_left == 0)
			begin_record(c);
		size_t of_header = n < c->header_left ? n : c->header_left;
		size_t of_record =
			n - of_header < c->record_left ? n - of_header : c->record_left;

		n -= of_header + of_record;
		c->header_left = (uint8_t)(c->header_left - of_header);
		c->sent += (uint32_t)of_record;
		c->record_left -= (uint32_t)of_record;
		if (c->record_left == 0 && c->sent == c->queue[c->head]->len)
			pop_chunk(c);
	}
}

/* The records that end the request, if they are all that follows the current one. */
static const struct chunk *end_after(const struct client *c)
{
	const struct chunk *k = c->queue[c->head];
	const struct chunk *next = c->queue[(c->head + 1) % CLIENT_QUEUE];

	if (c->count != 2 || !next->is_raw || c->record_left != k->len - c->sent)
		return NULL;
	return next;
}

/* Write a part of the first chunk. 1: went; 0: the peer is full; -1: it left. */
static int write_some(struct client *c)
{
	struct chunk *k = c->queue[c->head];
	const struct chunk *end;
	struct iovec iov[3];
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	ssize_t n;

	if (c->record_left == 0)
		begin_record(c);
	iov[0] = (struct iovec){c->header + sizeof(c->header) - c->header_left,
				c->header_left};
	iov[1] = (struct iovec){k->p + c->sent, c->record_left};
	end = end_after(c);
	if (end)
		iov[msg.msg_iovlen++] = (struct iovec){(char *)end->p, end->len};
	do {
		n = sendmsg(c->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
	account(c, (size_t)n);
	return 1;
}

static void on_poll(uv_poll_t *handle, int status, int events);

static void watch(struct client *c, bool wants_write)
{
	int events = UV_READABLE | UV_DISCONNECT | (wants_write ? UV_WRITABLE : 0);

	if (!c->is_polled)
		return;
	c->wants_write = wants_write;
	uv_poll_start(&c->poll, events, on_poll);
}

/* Writes until the queue is empty or the peer is full. */
static void flush(struct client *c)
{
	int rc = 1;

	while (c->is_open && c->count && rc > 0)
		rc = write_some(c);
	if (rc < 0 || (c->is_ending && c->count == 0)) {
		client_close(c);
		return;
	}
	if (c->wants_write != (c->count > 0))
		watch(c, c->count > 0);
}

static void release(struct client *c)
{
	close(c->fd);
	c->ops->free(c);
}

static void on_closed(uv_handle_t *handle)
{
	release(handle->data);
}

void client_close(struct client *c)
{
	if (!c->is_open)
		return;
	c->is_open = false;
	while (c->count)
		pop_chunk(c);
	c->ops->gone(c);
	lot_left(c->lot, c);
	if (c->is_polled)
		uv_close((uv_handle_t *)&c->poll, on_closed);
}

/* Throws away what the peer sends. False: it left. */
static bool discard_input(struct client *c)
{
	char trash[DISCARD_SIZE];
	ssize_t n;

	do {
		n = recv(c->fd, trash, sizeof(trash), MSG_DONTWAIT);
	} while (n == (ssize_t)sizeof(trash) || (n < 0 && errno == EINTR));
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
	struct client *c = handle->data;

	if (status < 0 || (events & UV_DISCONNECT) ||
	    ((events & UV_READABLE) && !discard_input(c))) {
		client_close(c);
		return;
	}
	if (!(events & UV_WRITABLE))
		return;
	flush(c);
	if (c->is_open && c->count == 0 && c->ops->drained)
		c->ops->drained(c);
}

void client_settle(struct client *c, uv_loop_t *loop)
{
	int rc;

	if (!c->is_open) {
		release(c);
		return;
	}
	rc = uv_poll_init(loop, &c->poll, c->fd);
	/* Fails only for what epoll cannot watch; a socket is none of that. */
	assert(rc == 0);
	c->poll.data = c;
	c->is_polled = true;
	watch(c, c->count > 0);
}

static void enqueue(struct client *c, struct chunk *k)
{
	assert(c->count < CLIENT_QUEUE);
	c->queue[(c->head + c->count) % CLIENT_QUEUE] = k;
	c->count++;
}

void client_send(struct client *c, struct chunk *k)
{
	assert(client_has_room(c));
	if (k->len == 0) {
		chunk_put(k);
		return;
	}
	enqueue(c, k);
	flush(c);
}

static void enqueue_end(struct client *c)
{
	unsigned char tail[8 + 16] = {0};
	struct chunk *k;

	put_header(tail, FCGI_STDOUT, c->request_id, 0);
	put_header(tail + 8, FCGI_END_REQUEST, c->request_id, 8);
	k = chunk_new(tail, sizeof(tail));
	k->is_raw = true;
	c->is_ending = true;
	enqueue(c, k);
}

void client_end(struct client *c)
{
	if (!c->is_open || c->is_ending)
		return;
	enqueue_end(c);
	flush(c);
}

void client_send_last(struct client *c, struct chunk *k)
{
	assert(client_has_room(c) && k->len > 0);
	enqueue(c, k);
	enqueue_end(c);
	flush(c);
}
