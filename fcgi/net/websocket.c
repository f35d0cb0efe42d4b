/* SPDX-License-Identifier: MIT */
#include "net/websocket.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/auto.h"
#include "base/base64.h"
#include "base/id.h"
#include "base/sha1.h"
#include "net/httphead.h"

enum {
	HEAD_FINAL = 0x80,
	HEAD_RESERVED = 0x70,
	HEAD_OPCODE = 0x0f,
	HEAD_MASKED = 0x80,
	LEN_16 = 126, /* two bytes of length follow */
	LEN_64 = 127, /* eight */
	CLOSE_NONE = 1005,
	CLOSE_LEAST = 1000, /* 7.4.2: below it, none is used */
};

/* ---- the handshake */

void ws_key(char ret[static WS_KEY_LEN + 1])
{
	AUTO_BUF text = BUF_INIT(WS_KEY_LEN);
	uint8_t raw[16];

	id_random_bytes(raw, sizeof raw);
	base64_add(&text, raw, sizeof raw);
	memcpy(ret, text.p, WS_KEY_LEN + 1);
}

void ws_accept(const char *key, char ret[static WS_ACCEPT_LEN + 1])
{
	static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* 1.3 */
	AUTO_BUF both = BUF_INIT(256);
	AUTO_BUF text = BUF_INIT(WS_ACCEPT_LEN);
	uint8_t raw[SHA1_LEN];

	buf_puts(&both, key);
	buf_puts(&both, guid);
	sha1_raw(both.p, both.len, raw);
	base64_add(&text, raw, sizeof raw);
	memcpy(ret, text.p, WS_ACCEPT_LEN + 1);
}

/* A word of a comma list, of any case. */
static bool list_has(struct str list, const char *word)
{
	struct str item;

	while (str_cut(&list, ',', &item)) {
		item = str_trim(item);
		if (item.n == strlen(word) && strncasecmp(item.p, word, item.n) == 0)
			return true;
	}
	return false;
}

static bool field_has(const char *head, size_t n, const char *name, const char *word)
{
	struct str value;

	return httphead_field(head, n, name, &value) && list_has(value, word);
}

/* One of what was offered; an empty one is none, as old servers say it. */
static int check_protocol(struct str chosen, const char *offered, struct str *ret,
			  struct err *e)
{
	struct str list = str_of(offered), item;

	if (chosen.n == 0) {
		*ret = (struct str){0};
		return 0;
	}
	while (str_cut(&list, ',', &item)) {
		item = str_trim(item);
		if (item.n != chosen.n || memcmp(item.p, chosen.p, item.n) != 0)
			continue;
		*ret = item;
		return 0;
	}
	return err_set(e, ERR_BACKEND,
		       "the server chose a subprotocol that was not offered");
}

int ws_check_answer(const char *head, size_t n, const char *key, const char *offered,
		    struct str *ret_protocol, struct err *e)
{
	struct str accept = {0}, protocol = {0};
	char want[WS_ACCEPT_LEN + 1];

	ws_accept(key, want);
	if (!field_has(head, n, "upgrade", "websocket") ||
	    !field_has(head, n, "connection", "upgrade"))
		return err_set(e, ERR_BACKEND,
			       "the server switched to something that is no WebSocket");
	if (!httphead_field(head, n, "sec-websocket-accept", &accept) ||
	    !str_eq(accept, want))
		return err_set(e, ERR_BACKEND,
			       "the server's answer belongs to another handshake");
	if (httphead_field(head, n, "sec-websocket-extensions", &protocol) && protocol.n)
		return err_set(e, ERR_BACKEND,
			       "the server chose an extension and none was offered");
	protocol = (struct str){0};
	httphead_field(head, n, "sec-websocket-protocol", &protocol);
	return check_protocol(protocol, offered, ret_protocol, e);
}

/* ---- frames in */

static bool is_control(uint8_t opcode)
{
	return opcode & 8;
}

static bool is_known(uint8_t opcode)
{
	return opcode <= WS_OP_BINARY || (opcode >= WS_OP_CLOSE && opcode <= WS_OP_PONG);
}

/* The first two bytes tell how many more there are. */
static bool take_start(struct ws_decoder *d)
{
	uint8_t len = d->head[1];

	d->is_final = d->head[0] & HEAD_FINAL;
	d->opcode = d->head[0] & HEAD_OPCODE;
	if ((d->head[0] & HEAD_RESERVED) || (len & HEAD_MASKED) || !is_known(d->opcode))
		return false;
	if (is_control(d->opcode) && (!d->is_final || len > WS_CONTROL_MAX))
		return false;
	if (!is_control(d->opcode) && (d->opcode == WS_OP_CONTINUATION) != d->in_message)
		return false;
	d->need = len == LEN_64 ? 10 : len == LEN_16 ? 4 : 2;
	return true;
}

/* The head is whole. A length is said in the fewest bytes, and has no sign (5.2). */
static bool take_head(struct ws_decoder *d)
{
	uint64_t n = 0;
	uint8_t i;

	for (i = 2; i < d->need; i++)
		n = n << 8 | d->head[i];
	d->left = d->need == 2 ? d->head[1] : n;
	if ((d->need == 4 && n < LEN_16) || (d->need == 10 && (n <= 0xffff || n >> 63)))
		return false;
	if (!is_control(d->opcode))
		d->in_message = true;
	d->ncontrol = 0;
	d->in_payload = true;
	return true;
}

/* False: bad. Not yet whole: in_payload stays false. */
static bool feed_head(struct ws_decoder *d, struct str *in)
{
	while (in->n > 0 && !d->in_payload) {
		d->head[d->nhead++] = (uint8_t)*in->p++;
		in->n--;
		if (d->nhead == 2 && !take_start(d))
			return false;
		if (d->nhead >= 2 && d->nhead == d->need && !take_head(d))
			return false;
	}
	return true;
}

static void frame_done(struct ws_decoder *d)
{
	d->nhead = d->need = 0;
	d->in_payload = false;
}

static struct str take(struct ws_decoder *d, struct str *in)
{
	size_t n = d->left < in->n ? (size_t)d->left : in->n;
	struct str piece = {in->p, n};

	in->p += n;
	in->n -= n;
	d->left -= n;
	return piece;
}

static enum ws_event take_close(struct ws_decoder *d, struct str *ret)
{
	d->is_over = true;
	d->close_code = CLOSE_NONE;
	if (d->ncontrol >= 2)
		d->close_code = (uint16_t)(d->control[0] << 8 | d->control[1]);
	if (d->ncontrol == 1 || d->close_code < CLOSE_LEAST)
		return WS_BAD;
	*ret = (struct str){(const char *)d->control + 2,
			    d->ncontrol ? d->ncontrol - 2U : 0};
	return WS_CLOSE;
}

static enum ws_event feed_control(struct ws_decoder *d, struct str *in, struct str *ret)
{
	struct str piece = take(d, in);

	memcpy(d->control + d->ncontrol, piece.p, piece.n);
	d->ncontrol = (uint8_t)(d->ncontrol + piece.n);
	if (d->left > 0)
		return WS_MORE;
	frame_done(d);
	if (d->opcode == WS_OP_CLOSE)
		return take_close(d, ret);
	*ret = (struct str){(const char *)d->control, d->ncontrol};
	return d->opcode == WS_OP_PING ? WS_PING : WS_PONG;
}

/* WS_MORE here: nothing to tell; there may be more input. */
static enum ws_event feed_data(struct ws_decoder *d, struct str *in, struct str *ret)
{
	if (d->left > 0) {
		*ret = take(d, in);
		return ret->n ? WS_DATA : WS_MORE;
	}
	frame_done(d);
	if (!d->is_final)
		return WS_MORE;
	d->in_message = false;
	return WS_END;
}

static bool can_go_on(const struct ws_decoder *d, struct str in)
{
	return in.n > 0 || (d->in_payload && d->left == 0);
}

enum ws_event ws_next(struct ws_decoder *d, struct str *in, struct str *ret)
{
	enum ws_event ev = WS_MORE;

	*ret = (struct str){"", 0};
	if (d->is_over)
		return d->close_code ? WS_CLOSE : WS_BAD;
	while (ev == WS_MORE && can_go_on(d, *in)) {
		if (!d->in_payload && !feed_head(d, in)) {
			d->is_over = true;
			return WS_BAD;
		}
		if (!d->in_payload)
			return WS_MORE;
		ev = is_control(d->opcode) ? feed_control(d, in, ret)
					   : feed_data(d, in, ret);
	}
	if (ev == WS_BAD)
		d->close_code = 0;
	return ev;
}

/* ---- frames out */

static void add_masked(struct buf *out, const uint8_t mask[static 4], struct str s,
		       size_t phase)
{
	size_t at = out->len, i;

	buf_add(out, s.p, s.n);
	if (!buf_ok(out))
		return;
	for (i = 0; i < s.n; i++)
		out->p[at + i] = (char)((uint8_t)out->p[at + i] ^ mask[(phase + i) & 3]);
}

void ws_encode(struct buf *out, enum ws_opcode op, const uint8_t mask[static 4],
	       struct str first, struct str second)
{
	uint64_t n = first.n + second.n;
	uint8_t head[14] = {(uint8_t)(HEAD_FINAL | op)};
	size_t len = 2, i, bytes = n < LEN_16 ? 0 : n <= 0xffff ? 2 : 8;

	assert(!is_control((uint8_t)op) || n <= WS_CONTROL_MAX);
	head[1] = (uint8_t)(HEAD_MASKED | (bytes == 0   ? n
					   : bytes == 2 ? LEN_16
							: LEN_64));
	for (i = 0; i < bytes; i++)
		head[len++] = (uint8_t)(n >> 8 * (bytes - 1 - i));
	memcpy(head + len, mask, 4);
	buf_add(out, head, len + 4);
	add_masked(out, mask, first, 0);
	add_masked(out, mask, second, first.n);
}
