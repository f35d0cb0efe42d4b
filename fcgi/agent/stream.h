/* SPDX-License-Identifier: MIT */
#ifndef AGENT_STREAM_H
#define AGENT_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/loop.h"
#include "agent/ring.h"

/*
 * One output of a command: from a pipe into a ring, up to the cap; what comes
 * after the cap is counted and thrown away at full speed. A full ring stops
 * the reading, so the command waits: nothing that counts is ever dropped.
 */
struct stream {
	struct watch watch; /* fn and arg are set by the owner */
	struct loop *loop;
	struct ring ring; /* ring.end: bytes kept so far */
	uint64_t cap;
	uint64_t total;  /* bytes produced */
	uint64_t sent;   /* offset up to which the connection has it */
	bool is_blocked; /* the ring is full, the pipe is not being read */
	bool is_large;   /* the pipe was enlarged */
};

/* Make ring and pipe; *ret_child_fd is the writing end, owned by the caller.
 * 0, or -1 with errno. Nobody is told yet when something comes out of it. */
int stream_open(struct stream *s, struct loop *l, uint64_t cap, int *ret_child_fd);
/* From now on the owner is told. False: not possible now. Twice is fine. */
bool stream_watch(struct stream *s);
/* Read what is there, at most a few MiB; whether anything came. */
bool stream_pump(struct stream *s);
/* The runner has everything before offset. */
void stream_acked(struct stream *s, uint64_t offset);
bool stream_is_open(const struct stream *s);
/* Stop reading. Returns the pipe, or -1: the caller's to close or to drain. */
int stream_detach(struct stream *s);
void stream_release(struct stream *s);

/*
 * Throw away what comes out of a pipe until its end; owns fd from here on. For
 * background processes that go on writing when their command is over: closing
 * it would kill them. Beyond DRAINS_MAX it is closed all the same.
 */
enum { DRAINS_MAX = 256 };
void drain_start(struct loop *l, int fd);

#endif
