/* SPDX-License-Identifier: MIT */
#ifndef WIRE_EDGEMSG_H
#define WIRE_EDGEMSG_H

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"

/*
 * The messages between an edge and the runner, one per packet of an
 * AF_UNIX SOCK_SEQPACKET pair that the master made and that outlives both.
 * Header: fixed struct, then a JSON object as the body. A body over
 * EDGEMSG_INLINE_MAX travels as a sealed memfd (write, grow, shrink and seal
 * sealed; the receiver checks and refuses otherwise), at most
 * EDGEMSG_BODY_MAX bytes.
 *
 * Requests carry an id the edge chose, unique in its life. Every request is
 * answered by exactly one MSG_OK or MSG_ERR with the same id. A runner that
 * starts says MSG_HELLO on every pair; the edge then sends again every request
 * that has no answer yet, oldest first. So every request is idempotent: the
 * names of new things (run_id, session_id) are chosen by the edge.
 *
 * A guest is a process on this machine that connected to control.sock: it may ask
 * what an edge may, has no doorbell but MSG_BELL, and is told nothing of others.
 *
 * "only", if given, is when the sandbox that may go was made (ms); 0: there was none.
 * One that was made at another time stays, and that is ERR_DENIED.
 *
 * MSG_RELAY is how one edge reaches the edge that holds a session's stream or an
 * awaited request: the runner gives its body to every edge, the sender too, and
 * looks at nothing but the session_id. Kinds (edge/relay.h): "frame" {"text"},
 * "cancel" {"request_id","reason"}, "opened" {"stream"}, "answer" {"message"},
 * "changed" {}.
 */
enum edgemsg_type {
	MSG_HELLO = 1, /* runner -> edge: {"pid"} */
	MSG_OK,        /* runner -> edge: the result's object */
	MSG_ERR,       /* runner -> edge: {"kind","message"} */
	MSG_RUN,       /* {"tenant","run_id","args":{tool arguments}}
			* -> {"run_id","identifier","sandbox_name"}; after the commit */
	MSG_CANCEL,    /* {"tenant","run_id","reason"} -> {"canceled":bool} */
	MSG_DELETE,    /* {"tenant","args":{},"only"} -> {"deleted":bool,"identifier"} */
	MSG_RESTART,   /* the same -> {"sandbox":{...}} when it is ready */
	MSG_SESSION_OPEN,  /* {"tenant","session_id","protocol_version","client_name",
			    * "client_version","client_can"} -> {} */
	MSG_SESSION_CLOSE, /* {"tenant","session_id"} -> {"closed":bool} */
	MSG_SESSION_TOUCH, /* {"session_ids":[...]} -> {} */
	MSG_STATUS,  /* {} -> {"backend":{"ok","message"},"store":{...},"metrics":text} */
	MSG_RELAY,   /* {"session_id","kind",...} -> {}: to all edges, see below */
	MSG_RELAYED, /* runner -> every edge, no answer: the body of a MSG_RELAY */
	MSG_BELL,    /* runner -> guest, no answer: {}, something was committed */
	/* The tools' arguments as in wire/filespec.h; none of them is stored. */
	MSG_FILE_READ,  /* {"tenant","args"} -> {"path","size","offset","data"}, base64 */
	MSG_FILE_WRITE, /* {"tenant","args"} -> {"path","size"} */
	MSG_FILE_LIST,  /* {"tenant","args"} -> {"path","entries":[{"path","type","size",
			 * "mode","uid","mtime_ms","error"}],"total","cut","more"} */
	MSG_SESSION_LEVEL, /* {"tenant","session_id","level"} -> {}: of log messages */
	MSG_SUBSCRIBE,     /* {"tenant","session_id","uri","on":bool} -> {} */
	MSG_TYPE_COUNT
};

enum {
	EDGEMSG_INLINE_MAX = 64 * 1024,
	EDGEMSG_BODY_MAX = 32 * 1024 * 1024,
	EDGEMSG_SUBSCRIPTIONS_MAX = 100, /* of one session */
};

struct edgemsg {
	enum edgemsg_type type;
	uint64_t id;
	json_t *body; /* owned; an object, never NULL */
};

/* Send; borrows body. ERR_BUSY when the socket would block (non-blocking fd). */
int edgemsg_send(int fd, enum edgemsg_type type, uint64_t id, const json_t *body,
		 struct err *e);

/*
 * Receive one packet. 1: got one; 0: nothing there (would block) or, with
 * *ret_eof set, the peer is gone; -1: a malformed packet (ERR_INVALID, it was
 * consumed) or a system error.
 */
int edgemsg_recv(int fd, struct edgemsg *ret, int *ret_eof, struct err *e);
void edgemsg_release(struct edgemsg *m);

/* The pure half of receiving: header and inline body. Fuzzed. */
int edgemsg_decode(const void *p, size_t n, struct edgemsg *ret, struct err *e);

#define AUTO_EDGEMSG __attribute__((cleanup(edgemsg_release))) struct edgemsg

#endif
