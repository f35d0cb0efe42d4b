/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/api/channels.h"

#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "base/json.h"
#include "base/utf8.h"

enum { CHANNEL_STDIN, CHANNEL_STDOUT, CHANNEL_STDERR, CHANNEL_ERROR };

void kube_channels_release(struct kube_channels *c)
{
	if (c->text.max > 0)
		buf_release(&c->text);
	*c = (struct kube_channels){0};
}

/* ---- in */

static void keep_words(struct kube_channels *c, struct str s)
{
	size_t room = KUBE_CHANNELS_WORDS - c->nwords, n = s.n < room ? s.n : room;

	memcpy(c->words + c->nwords, s.p, n);
	c->nwords += n;
}

static void keep_status(struct kube_channels *c, struct str s)
{
	if (c->text.max == 0)
		c->text = (struct buf)BUF_INIT(KUBE_CHANNELS_STATUS_MAX);
	buf_add(&c->text, s.p, s.n);
}

/* What comes on another channel means nothing (the server ignores it too). */
static void take_piece(struct kube_channels *c, struct str s, struct buf *out)
{
	if (!c->in_message && s.n > 0) {
		c->in_message = true;
		c->channel = (uint8_t)*s.p++;
		s.n--;
	}
	if (s.n == 0)
		return;
	if (c->channel == CHANNEL_STDOUT)
		buf_add(out, s.p, s.n);
	else if (c->channel == CHANNEL_STDERR)
		keep_words(c, s);
	else if (c->channel == CHANNEL_ERROR && !c->has_status)
		keep_status(c, s);
}

/* The server says one Status, in one message; an empty one opened the stream. */
static void take_end(struct kube_channels *c)
{
	AUTO_JSON *v = NULL;
	struct err ignored = ERR_INIT;

	c->in_message = false;
	if (c->channel != CHANNEL_ERROR || c->text.len == 0 || c->has_status)
		return;
	c->has_status = true;
	if (buf_ok(&c->text) && json_parse(c->text.p, c->text.len, &v, &ignored) == 0)
		c->is_success = kube_status_read(v, &c->status);
	else
		kube_status_parse(500, (struct str){c->text.p, c->text.len}, 0,
				  &c->status);
}

static void take_ping(struct kube_channels *c, struct str s)
{
	memcpy(c->ping, s.p, s.n);
	c->nping = s.n;
	c->has_ping = true;
}

int kube_channels_decode(struct kube_channels *c, const char *p, size_t n,
			 struct buf *out)
{
	struct str in = {p, n}, s;

	for (;;) {
		switch (ws_next(&c->ws, &in, &s)) {
		case WS_MORE:
			return 0;
		case WS_DATA:
			take_piece(c, s, out);
			break;
		case WS_END:
			take_end(c);
			break;
		case WS_PING:
			take_ping(c, s);
			break;
		case WS_PONG:
			break;
		case WS_CLOSE:
			snprintf(c->reason, sizeof c->reason, "%.*s", (int)s.n, s.p);
			return -1;
		case WS_BAD:
			c->is_broken = true;
			return -1;
		}
	}
}

/* ---- out */

static void encode(enum ws_opcode op, struct str first, struct str second,
		   struct buf *out)
{
	uint8_t mask[4];

	id_random_bytes(mask, sizeof mask);
	ws_encode(out, op, mask, first, second);
}

void kube_channels_encode(const char *p, size_t n, struct buf *out)
{
	static const char channel = CHANNEL_STDIN;
	size_t part;

	for (; n > 0; p += part, n -= part) {
		part = n < KUBE_CHANNELS_FRAME - 1 ? n : KUBE_CHANNELS_FRAME - 1;
		encode(WS_OP_BINARY, (struct str){&channel, 1}, (struct str){p, part},
		       out);
	}
}

void kube_channels_answer(struct kube_channels *c, struct buf *out)
{
	if (!c->has_ping)
		return;
	c->has_ping = false;
	encode(WS_OP_PONG, (struct str){(const char *)c->ping, c->nping},
	       (struct str){"", 0}, out);
}

/* ---- the end */

/* One printable line. */
static void settle(char *s)
{
	utf8_settle(s);
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = ' ';
}

static int no_status(const struct kube_channels *c, struct err *e)
{
	if (c->is_broken)
		return err_set(e, ERR_BACKEND,
			       "the API server's stream is not framed as a WebSocket");
	if (c->ws.is_over)
		return err_set(e, ERR_BACKEND,
			       "the API server closed the stream without saying how it "
			       "ended (close %d%s%s)",
			       c->ws.close_code, *c->reason ? ": " : "", c->reason);
	return err_set(e, ERR_BACKEND, "the connection to the API server broke");
}

int kube_channels_why(const struct kube_channels *c, struct err *e)
{
	char words[KUBE_CHANNELS_WORDS + 1];
	const char *status = c->is_success ? "the program ended" : c->status.words;

	memcpy(words, c->words, sizeof words);
	settle(words);
	if (!c->has_status)
		no_status(c, e);
	else if (c->status.reason == KUBE_EXIT && c->status.exit_code > 0)
		err_set(e, ERR_BACKEND, "the program ended with exit code %d",
			c->status.exit_code);
	else
		err_set(e, ERR_BACKEND, "%s", status);
	if (*words)
		err_wrap(e, "%s", words);
	settle(e->msg);
	return -1;
}
