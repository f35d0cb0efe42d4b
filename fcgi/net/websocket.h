/* SPDX-License-Identifier: MIT */
#ifndef NET_WEBSOCKET_H
#define NET_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/*
 * The client's half of a WebSocket (RFC 6455): the check of the handshake's answer,
 * frames in, frames out. Pure: bytes to views and back, no I/O, no allocation; what
 * comes in is hostile. The connection itself is an http_upgrade().
 */

/* ---- the handshake (RFC 6455, 4.1) */
enum { WS_KEY_LEN = 24, WS_ACCEPT_LEN = 28 };

/* A fresh Sec-WebSocket-Key and a NUL. */
void ws_key(char ret[static WS_KEY_LEN + 1]);

/* What a server answers to that key, and a NUL. */
void ws_accept(const char *key, char ret[static WS_ACCEPT_LEN + 1]);

/*
 * Checks the head of a 101 (n bytes with its empty line) that answers the key.
 * *ret_protocol is the subprotocol that the server chose, a view of `offered` (a
 * comma list); its p is NULL when it chose none. ERR_BACKEND: it is no WebSocket.
 */
int ws_check_answer(const char *head, size_t n, const char *key, const char *offered,
		    struct str *ret_protocol, struct err *e);

/* ---- frames in (5.2) */
enum ws_opcode {
	WS_OP_CONTINUATION = 0,
	WS_OP_TEXT = 1,
	WS_OP_BINARY = 2,
	WS_OP_CLOSE = 8,
	WS_OP_PING = 9,
	WS_OP_PONG = 10,
};
enum { WS_CONTROL_MAX = 125 };

enum ws_event {
	WS_MORE, /* all of the input is used up */
	WS_DATA, /* a piece of a message, at least one byte; of any number */
	WS_END,  /* the message is whole; it may have had no byte at all */
	WS_PING, /* the view is what the pong has to carry */
	WS_PONG,
	WS_CLOSE, /* the view is the reason; close_code. Nothing follows. */
	WS_BAD,   /* that is no frame of a server (masked, reserved bits, ...) */
};

/* Zero it to start. A message has no limit of its own: its pieces are told as they
 * come, and fragments are joined. */
struct ws_decoder {
	uint8_t head[10];
	uint8_t nhead, need; /* of the frame's head; need 0: at a frame's start */
	bool in_payload, is_final, in_message, is_over;
	uint8_t opcode;
	uint64_t left; /* of the frame's payload */
	uint8_t control[WS_CONTROL_MAX + 1];
	uint8_t ncontrol;
	uint16_t close_code; /* after WS_CLOSE; 1005: it said none */
};

/*
 * The next thing in *in, of which it uses up the front. The view lies in the input,
 * or in the decoder until the next call. After WS_CLOSE and WS_BAD it stays so.
 */
enum ws_event ws_next(struct ws_decoder *d, struct str *in, struct str *ret);

/* ---- frames out */

/*
 * Appends one whole, masked frame of a client; never fragmented. The payload is
 * both parts; `second` may be empty. A control frame has at most WS_CONTROL_MAX.
 */
void ws_encode(struct buf *out, enum ws_opcode op, const uint8_t mask[static 4],
	       struct str first, struct str second);

#endif
