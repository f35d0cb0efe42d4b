/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_API_CHANNELS_H
#define BACKEND_KUBERNETES_API_CHANNELS_H

#include <stdbool.h>

#include "backend/kubernetes/api/status.h"
#include "base/buf.h"
#include "base/err.h"
#include "net/websocket.h"

/*
 * The messages of an exec (v4.channel.k8s.io and v5): one byte names the channel,
 * the rest is its data. Standard output (1) is the stream's content; the first bytes
 * of standard error (2) are kept as words about what went wrong; on channel 3 the
 * server says one Status when the program has ended. A pump's codec. Pure but for
 * the masks' random bytes; what comes in is hostile. Zero it to start.
 */
enum {
	KUBE_CHANNELS_WORDS = 256,
	KUBE_CHANNELS_STATUS_MAX = 16 * 1024,
	/* A server reads a fragment as a message of its own, and ends a connection
	 * that sends much more than this at once. */
	KUBE_CHANNELS_FRAME = 32 * 1024,
};

struct kube_channels {
	struct ws_decoder ws;
	bool in_message, has_ping, has_status, is_success, is_broken;
	uint8_t channel; /* of the message */
	uint8_t ping[WS_CONTROL_MAX];
	size_t nping;
	char words[KUBE_CHANNELS_WORDS + 1];
	size_t nwords;
	struct buf text; /* on channel 3; has its ceiling after the first byte */
	struct kube_status status;
	char reason[WS_CONTROL_MAX + 1]; /* of the closing frame */
};
void kube_channels_release(struct kube_channels *c);

/* Appends the content in n bytes to out. -1: over, or not this protocol. */
int kube_channels_decode(struct kube_channels *c, const char *p, size_t n,
			 struct buf *out);

/* Appends the frames that carry n bytes to standard input. */
void kube_channels_encode(const char *p, size_t n, struct buf *out);

/* Appends the pong that is due, to the last ping. */
void kube_channels_answer(struct kube_channels *c, struct buf *out);

/*
 * Why the stream is over: the server's Status, with the words of standard error; or
 * that it closed without one, or just broke, which both are failures. -1.
 */
int kube_channels_why(const struct kube_channels *c, struct err *e);

#endif
