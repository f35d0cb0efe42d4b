/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_AGENTCONN_H
#define RUNNER_AGENTCONN_H

#include <stdbool.h>
#include <uv.h>

#include "base/err.h"
#include "wire/agentproto.h"

/*
 * A connection to an agent: frames in and out over a non-blocking stream on the
 * loop. Nothing of what the frames mean is known here. What comes in is hostile:
 * a frame that does not decode ends the connection. Loop only.
 *
 * Frames to send are gathered and go out with agentconn_flush(), so that what a
 * turn says to an agent is one write.
 */
struct agentconn;

/*
 * What the connections of one loop share: who has something to send, and a buffer
 * for input. 130 KiB are needed only while half a frame waits; a connection that
 * waits for nothing holds none. Zero it to start; agentconns_release() at the end.
 */
struct agentconns {
	struct agentconn *talkers;
	struct ap_reader *spare;
};
void agentconns_flush(struct agentconns *all);
void agentconns_release(struct agentconns *all);

struct agentconn_events {
	/* The agent's HELLO, once and first. */
	void (*hello)(void *arg, const struct ap_hello *h);
	/* Any later message but PING and PONG; its views live for the call. */
	void (*message)(void *arg, const struct ap_msg *m);
	/* Over, in words. Called once; the handler frees the connection. */
	void (*closed)(void *arg, const char *why);
};

/* Takes fd. Says HELLO. `all` outlives it. */
struct agentconn_args {
	uv_loop_t *loop;
	struct agentconns *all;
	int fd;
	const struct agentconn_events *ev;
	void *arg;
};
int agentconn_new(const struct agentconn_args *a, struct agentconn **ret, struct err *e);

/* From here on it is another's. Not inside an event. */
void agentconn_hand_over(struct agentconn *c, const struct agentconn_events *ev,
			 void *arg);

void agentconn_send(struct agentconn *c, const struct ap_msg *m);

/*
 * An answer to what the agent said unasked. Left out while a megabyte waits: who
 * talks without reading gets no memory for it.
 */
void agentconn_reply(struct agentconn *c, const struct ap_msg *m);

/*
 * What the agent need not know soon: it goes out with the next frame that must, at
 * the latest with the heartbeat or when a few of them wait. Said at once it would
 * wake the agent for nothing.
 */
void agentconn_send_later(struct agentconn *c, const struct ap_msg *m);

void agentconn_flush(struct agentconn *c);

/* Bytes that wait because the agent does not read. */
size_t agentconn_backlog(const struct agentconn *c);

/*
 * Called every few seconds: asks a silent agent for a sign of life; one that was
 * silent for AGENTCONN_SILENCE_MS, has not said hello after AGENTCONN_HELLO_MS, or
 * reads nothing of very much is closed.
 */
enum {
	AGENTCONN_PING_MS = 15000,
	AGENTCONN_SILENCE_MS = 45000,
	AGENTCONN_HELLO_MS = 10000,
};
void agentconn_heartbeat(struct agentconn *c, int64_t mono_ms);

/* Closes; no event is told any more. NULL is fine; fine inside an event. */
void agentconn_free(struct agentconn *c);

#endif
