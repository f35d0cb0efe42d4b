/* SPDX-License-Identifier: MIT */
#ifndef EDGE_CLIENT_H
#define EDGE_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "edge/chunk.h"

/*
 * A parked request: a FastCGI connection that left its accepting thread and is
 * written to by the loop without blocking. What parks embeds a client first and
 * gets its calls through client_ops. Everything but client_init() runs on the
 * loop's thread.
 *
 * The queue is short and never grows: who feeds it asks client_has_room() and
 * otherwise waits for drained(), so a slow reader costs a bounded amount. The
 * peer may send what is left of a body at any time: it is read and thrown away.
 * A peer that leaves is seen by its end of file; nginx never sends
 * FCGI_ABORT_REQUEST.
 */
enum { CLIENT_QUEUE = 4 };

struct client;

struct client_ops {
	/* On the loop, first call: begin. */
	void (*start)(struct client *c);
	/* The queue is empty and the peer takes more. May be NULL. */
	void (*drained)(struct client *c);
	/* The edge stops: end soon, with an answer when there can be one. */
	void (*stop)(struct client *c);
	/* The peer left, or all is sent: let go of all but the memory. */
	void (*gone)(struct client *c);
	/* Last call: free the memory of what embeds c. */
	void (*free)(struct client *c);
};

struct client {
	const struct client_ops *ops;
	struct client *next, **link; /* the lot's lists */
	struct client *next_fresh;
	struct lot *lot;
	uv_poll_t poll;
	int fd;
	uint16_t request_id;
	bool is_open, is_polled, is_ending, wants_write;
	/* The writer: what of queue[head] is out, and the record it is in. */
	uint8_t head, count;
	uint8_t header_left;
	uint32_t sent;
	uint32_t record_left;
	unsigned char header[8];
	struct chunk *queue[CLIENT_QUEUE];
};

void client_init(struct client *c, const struct client_ops *ops, int fd,
		 uint16_t request_id);

/*
 * For the lot, once, when nobody is at work on the client: watch its connection. One
 * that was answered as soon as it reached the loop has none any more, and goes.
 */
void client_settle(struct client *c, uv_loop_t *loop);

static inline bool client_has_room(const struct client *c)
{
	/* One place stays free for the records that end the request. */
	return c->is_open && !c->is_ending && c->count < CLIENT_QUEUE - 1;
}

/* Queue a chunk (takes the reference; there must be room) and write what goes. */
void client_send(struct client *c, struct chunk *k);

/* After what is queued: the end of the request, then gone(). */
void client_end(struct client *c);

/* Both, for a chunk that is not empty; in one write, so nginx wakes once. */
void client_send_last(struct client *c, struct chunk *k);

/* Leave at once, without an end; gone() is called. Twice is fine. */
void client_close(struct client *c);

#endif
