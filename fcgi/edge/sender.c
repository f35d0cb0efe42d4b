/* SPDX-License-Identifier: MIT */
#include "edge/sender.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/log.h"
#include "base/mem.h"
#include "edge/client.h"
#include "edge/lot.h"

enum { PIECE_MAX = 64 * 1024, HEAD_MAX = 8192, REPLY_MAX = 512 * 1024 * 1024 };

struct sender {
	struct client client; /* first */
	struct edge *edge;
	struct chunk *first;              /* head, or head and body */
	struct store_output_query output; /* max 0: no more than `first` */
	int64_t left;                     /* INT64_MAX: to the end of what is stored */
	char run_id[STORE_RUN_ID_SIZE];
};

static struct sender *of_client(struct client *c)
{
	return (struct sender *)c;
}

/* Nothing (more) could be read. A length that was promised and is not met shows. */
static void end_early(struct sender *s, const struct err *why)
{
	if (why->kind == ERR_NONE && s->left == INT64_MAX) {
		client_end(&s->client);
		return;
	}
	log_warn("output of %s: %s", s->run_id,
		 why->kind == ERR_NONE ? "it is gone" : why->msg);
	client_close(&s->client);
}

static bool send_piece(struct sender *s)
{
	AUTO_BUF piece = BUF_INIT(PIECE_MAX);
	struct err e = ERR_INIT;
	size_t n = 0;

	s->output.max = s->left < PIECE_MAX ? (size_t)s->left : PIECE_MAX;
	if (store_read_output(s->edge->reader, &s->output, &piece, &n, &e) < 0 ||
	    n == 0) {
		end_early(s, &e);
		return false;
	}
	s->output.offset += (int64_t)n;
	if (s->left != INT64_MAX)
		s->left -= (int64_t)n;
	client_send(&s->client, chunk_new(piece.p, piece.len));
	return true;
}

static void go_on(struct client *c)
{
	struct sender *s = of_client(c);

	while (s->left > 0 && client_has_room(c) && send_piece(s))
		;
	if (s->left == 0)
		client_end(c);
}

static void on_start(struct client *c)
{
	client_send(c, MOVE(of_client(c)->first));
	go_on(c);
}

static void on_gone(struct client *c)
{
	(void)c;
}

/* What was promised is sent to the end; the edge waits for it a while. */
static void on_stop(struct client *c)
{
	(void)c;
}

static void on_free(struct client *c)
{
	chunk_put(of_client(c)->first);
	free(c);
}

static const struct client_ops sender_ops = {
	.start = on_start,
	.drained = go_on,
	.stop = on_stop,
	.gone = on_gone,
	.free = on_free,
};

/* The answer's first bytes, from r with the headers of h. */
static struct chunk *first_chunk(struct http *h, const struct reply *r, long long length)
{
	AUTO_BUF b = BUF_INIT(REPLY_MAX);
	AUTO_BUF headers = BUF_INIT(HEAD_MAX);
	struct reply with_cors = *r;

	buf_add(&headers, h->cors->p, h->cors->len);
	if (r->headers)
		buf_puts(&headers, r->headers);
	with_cors.headers = headers.p;
	reply_add_head(&with_cors, length, &b);
	buf_add(&b, r->body, r->n);
	return chunk_new(b.p, b.len);
}

static void park(struct sender *s, struct edge *edge, struct http *h, int status)
{
	uint16_t id;
	int fd;

	s->edge = edge;
	stats_count(h->stats, h->route, status);
	http_log(h->log, h->method_name, h->path, status, h->started_us);
	http_detach(h, &fd, &id);
	client_init(&s->client, &sender_ops, fd, id);
	lot_park(edge->lot, &s->client);
}

void send_reply(struct edge *edge, struct http *h, const struct reply *r)
{
	struct err e = ERR_INIT;
	struct sender *s;

	if (r->n <= REPLY_SMALL_MAX) {
		http_answer(h, r);
		return;
	}
	if (lot_take_place(edge->lot, &e) < 0) {
		http_fail(h, &e);
		return;
	}
	s = xcalloc(1, sizeof(*s));
	s->first = first_chunk(h, r, (long long)r->n);
	park(s, edge, h, r->status);
}

void send_output(struct edge *edge, struct http *h, const struct store_output_query *q,
		 int64_t total, const struct reply *head)
{
	struct err e = ERR_INIT;
	struct sender *s;

	if (lot_take_place(edge->lot, &e) < 0) {
		http_fail(h, &e);
		return;
	}
	s = xcalloc(1, sizeof(*s));
	assert(strlen(q->run_id) < sizeof(s->run_id));
	memcpy(s->run_id, q->run_id, strlen(q->run_id) + 1);
	s->output = *q;
	s->output.run_id = s->run_id;
	s->left = total < 0 ? INT64_MAX : total;
	if (h->method == HTTP_HEAD)
		s->left = 0;
	s->first = first_chunk(h, head, total);
	park(s, edge, h, head->status);
}
