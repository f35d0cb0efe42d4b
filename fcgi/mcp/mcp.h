/* SPDX-License-Identifier: MIT */
#ifndef MCP_MCP_H
#define MCP_MCP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "conf/conf.h"
#include "store/reader.h"
#include "wire/edgemsg.h"

/*
 * MCP over HTTP, every era on one URL: the bytes of one HTTP request in, what to
 * do next out. Nothing here blocks or touches a socket; it reads the store
 * through struct mcp_reads. The edge drives it:
 *
 *	next = mcp_post(server, &reads, &http, &call);   (or mcp_get, mcp_delete)
 *	MCP_REPLY      write mcp_call_reply(call), then mcp_call_free(call)
 *	MCP_SEND       send mcp_call_message(call) to the runner; on its answer
 *	               next = mcp_call_answer(call, &reads, msg); when it cannot
 *	               be sent or is refused here, next = mcp_call_fail(call, ...)
 *	MCP_AWAIT_RUN  park until mcp_call_await(call).run_id is terminal or its
 *	               time is over: next = mcp_call_run_done(call, &reads); when
 *	               it cannot be waited for, next = mcp_call_fail(call, ...)
 *	MCP_ASK        the client is asked: put mcp_call_questions(call) on the
 *	               answer's stream and park until mcp_call_told() says so, or
 *	               after MCP_ASK_MS: next = mcp_call_fail(call, ...)
 *	MCP_STREAM     the request stays open, beginning with mcp_call_head(): its
 *	               session's stream (mcp_get()), or one of subscriptions
 *	               (mcp_call_listens())
 *
 * and so on until MCP_REPLY.
 *
 * Where the answer goes is mcp_call_way(call), fixed when mcp_post() returns:
 *
 *	MCP_WAY_HTTP     one HTTP answer
 *	MCP_WAY_SSE      an HTTP answer that is a stream as soon as the call waits
 *	                 for a run: mcp_call_head(), what mcp_call_progress() gives
 *	                 on the way, at the end mcp_call_frame()
 *	MCP_WAY_SESSION  202 now; every frame goes to the session's stream (HTTP+SSE
 *	                 transport of 2024-11-05), whichever process holds it
 *
 * When the client leaves: mcp_call_free(), and what the runner was asked for goes
 * on, unless mcp_call_ends_with_client() (modern era): then the run of
 * mcp_call_cancel_run() is canceled. A legacy client cancels by a notification,
 * which arrives as a relayed message (MSG_RELAYED, kind "cancel") at every edge.
 *
 * A server may be used by all threads at once; a call by one thread at a time
 * (it may move from an accepting thread to the loop). `reads` is a parameter of
 * each step because every thread has its own connection to the store.
 */
struct mcp_server;
struct mcp_call;

/* A session as it is stored. */
struct mcp_session {
	char version[16];    /* of the protocol */
	char client_can[64]; /* comma list: what it lets itself be asked */
	char log_level[16];  /* "": it wants no log messages */
};

/* Which bytes of which artifact. */
struct mcp_artifact {
	const char *tenant, *identifier, *run_id, *path;
	int64_t offset;
	size_t max;
};

enum { MCP_KEY_SIZE = 128 };
/* Members and elements of one body. The largest run that is allowed has fewer. */
enum { MCP_VALUES_MAX = 200 * 1000 };

/* What MCP needs of the store. mcp/reads.h has the real one. */
struct mcp_reads {
	void *arg;
	/* 1: alive; 0: no such session; -1: failed. */
	int (*session)(void *arg, const char *tenant, const char *session_id,
		       struct mcp_session *ret, struct err *e);
	/* The uris it has subscribed to, an array of strings. */
	int (*subscriptions)(void *arg, const char *session_id, json_t **ret,
			     struct err *e);
	/* What this instance signs with. */
	int (*key)(void *arg, char ret[static MCP_KEY_SIZE], struct err *e);
	/*
	 * The run object, its output bounded for a model (mcp/runobj.h). base_url
	 * as in struct mcp_http. 1: *ret is owned by the caller; 0: no such run.
	 */
	int (*run)(void *arg, const char *tenant, const char *run_id,
		   const char *base_url, json_t **ret, struct err *e);
	/* Raw output of a command, at most q->max bytes; the run was looked at. */
	int (*output)(void *arg, const struct store_output_query *q, struct buf *out,
		      struct err *e);
	/* An artifact's bytes from the disk. 1; 0: no such file. */
	int (*artifact)(void *arg, const struct mcp_artifact *a, struct buf *out,
			int64_t *ret_size, struct err *e);
	/* At most limit sandboxes after that identifier (NULL: from the first), as
	 * list_sandboxes shows them. */
	int (*sandboxes)(void *arg, const char *tenant, const char *after, size_t limit,
			 json_t **ret, struct err *e);
	/* When the identifier's sandbox was made, in ms; 0: there is none. */
	int (*made_at)(void *arg, const char *tenant, const char *identifier,
		       int64_t *ret, struct err *e);
	/*
	 * At most limit runs after that run_id (NULL: from the newest), each with its
	 * artifacts: {run_id, identifier, state, created_at, started_at, ended_at,
	 * error, artifacts:[{path,size}]}.
	 */
	int (*runs)(void *arg, const char *tenant, const char *after, size_t limit,
		    json_t **ret, struct err *e);
	/* The newest ended run of the identifier that left artifacts. 1; 0: none. */
	int (*latest)(void *arg, const char *tenant, const char *identifier,
		      char ret_run_id[static ID_RUN_LEN + 1], struct err *e);
	/* Identifiers or run ids that begin so: {values:[...], hasMore}. */
	int (*words)(void *arg, const char *tenant, enum store_word what,
		     const char *prefix, json_t **ret, struct err *e);
};

/* One HTTP request; everything is borrowed for the call. NULL: absent. */
struct mcp_http {
	const char *tenant;
	const char *content_type;
	const char *accept;
	const char *session_id;       /* Mcp-Session-Id */
	const char *stream_session;   /* ?sessionId=, of the HTTP+SSE transport */
	const char *protocol_version; /* MCP-Protocol-Version */
	const char *method;           /* Mcp-Method */
	const char *name;             /* Mcp-Name */
	const char *identifier;       /* Mcp-Param-Identifier */
	const char *last_event_id;    /* Last-Event-ID */
	bool is_stdio; /* a line of standard input: there are no headers to be checked */
	const char *base_url; /* "https://host:port" or "": put in front of paths */
	const char *body;
	size_t body_len;
};

enum mcp_next { MCP_REPLY, MCP_SEND, MCP_AWAIT_RUN, MCP_ASK, MCP_STREAM };
enum mcp_way { MCP_WAY_HTTP, MCP_WAY_SSE, MCP_WAY_SESSION };

/* An HTTP answer; owned by the call. A body is always application/json. */
struct mcp_reply {
	int status;
	const char *session_id; /* Mcp-Session-Id to set, or NULL */
	int retry_after_s;      /* Retry-After to set, or 0 */
	const char *body;
	size_t body_len; /* 0: empty (202, 204) */
};

struct mcp_message {
	enum edgemsg_type type;
	const json_t *body; /* owned by the call until its next step */
};

struct mcp_await {
	const char *run_id;
	int64_t timeout_ms; /* may be 0: look once */
};

/* PUBLIC_URL, or scheme and host as nginx passed them, or "" into dst. */
void mcp_base_url(const struct mcp_server *s, const char *scheme, const char *host,
		  char *dst, size_t size);

/* Fails when a denylist pattern or a description is not usable. */
int mcp_server_new(const struct conf *c, struct mcp_server **ret, struct err *e);
void mcp_server_free(struct mcp_server *s);

enum mcp_next mcp_post(struct mcp_server *s, const struct mcp_reads *r,
		       const struct mcp_http *in, struct mcp_call **ret);
/*
 * GET: the stream of a session; the beginning of an HTTP+SSE session; or, by
 * Last-Event-ID, the rest of an answer that was a stream. 405 for all else.
 */
enum mcp_next mcp_get(struct mcp_server *s, const struct mcp_reads *r,
		      const struct mcp_http *in, struct mcp_call **ret);
/* DELETE: ends the session (204), 400 without an id, 404 for an unknown one. */
enum mcp_next mcp_delete(struct mcp_server *s, const struct mcp_reads *r,
			 const struct mcp_http *in, struct mcp_call **ret);

enum mcp_next mcp_call_answer(struct mcp_call *c, const struct mcp_reads *r,
			      const struct edgemsg *m);
/*
 * After MCP_SEND: as if the runner had answered MSG_ERR (queue full, too slow).
 * After MCP_AWAIT_RUN: no place to wait in; the run itself is accepted.
 */
enum mcp_next mcp_call_fail(struct mcp_call *c, const struct mcp_reads *r,
			    const struct err *why);
/* Instead of whatever it was about to begin with: there is no place for it. MCP_REPLY,
 * an answer that is no stream. */
enum mcp_next mcp_call_refuse(struct mcp_call *c, const struct err *why);
/* The run's row decides whether it has ended, not who woke us. */
enum mcp_next mcp_call_run_done(struct mcp_call *c, const struct mcp_reads *r);
void mcp_call_free(struct mcp_call *c); /* NULL is fine */

/* ---- streams */
enum mcp_way mcp_call_way(const struct mcp_call *c);
/* The answer must be a stream even if nothing was waited for. */
bool mcp_call_is_stream(const struct mcp_call *c);
/* The session of the stream (MCP_STREAM, MCP_WAY_SESSION) or of the call; "": none. */
const char *mcp_call_session(const struct mcp_call *c);
/* What the stream begins with; may be nothing. */
void mcp_call_head(struct mcp_call *c, struct buf *b);
/* Is it worth hearing of more than the run's end? */
bool mcp_call_wants_progress(const struct mcp_call *c);
/* An event of the awaited run. True: there is news for mcp_call_progress(). */
bool mcp_call_note(struct mcp_call *c, const struct store_event *ev);
/* Appends one frame that tells how far it is. Call it at most every
 * MCP_PROGRESS_MS. */
enum { MCP_PROGRESS_MS = 1000 };
void mcp_call_progress(struct mcp_call *c, struct buf *b);
/* The reply as a frame; nothing when there is none. */
void mcp_call_frame(struct mcp_call *c, struct buf *b);

/*
 * All of these have a form for standard output: the same messages, each a line.
 * What is told of in the last moment comes before the reply.
 */
void mcp_call_progress_line(struct mcp_call *c, struct buf *b);
void mcp_call_last_lines(struct mcp_call *c, struct buf *b);
void mcp_call_question_lines(const struct mcp_call *c, struct buf *b);

/* ---- asking the client (mcp/ask.h) */
enum { MCP_ASK_MS = 5 * 60 * 1000 };
void mcp_call_questions(const struct mcp_call *c, struct buf *b);
bool mcp_call_is_asking(const struct mcp_call *c); /* and waits for the answers */
/*
 * A response of that session's client (NULL: whoever sits at the other end).
 * True: it was the last one that this call waits for, and *next is the next step.
 */
bool mcp_call_told(struct mcp_call *c, const struct mcp_reads *r, const char *session_id,
		   const json_t *message, enum mcp_next *next);
/* The id of a response of the client; NULL: message is no response. */
const json_t *mcp_response_id(const json_t *message);

/* ---- subscriptions (mcp/subscribe.h) */
/* What a stream of the modern era wants to hear of: {"uris":[],"tasks":[]}; NULL:
 * it is no such stream. Borrowed. */
const json_t *mcp_call_listens(const struct mcp_call *c);
/* What the stream begins with, as a message. */
void mcp_call_acknowledgment(const struct mcp_call *c, struct buf *b);
/* Appends one message: the resource or the task has changed. c: whose stream it is;
 * NULL: a session's. */
void mcp_call_updated(const struct mcp_call *c, const char *uri, struct buf *b);
void mcp_call_task_changed(struct mcp_call *c, const struct mcp_reads *r,
			   const char *run_id, struct buf *b);
/* The last one: a stream of subscriptions ends because the server wants it. */
void mcp_call_closing(const struct mcp_call *c, struct buf *b);
/* What is stored of its session is not what it was; all edges are told by a relayed
 * message, standard input and output is not. */
bool mcp_call_has_changed_session(const struct mcp_call *c);
/* JSON text as a frame of an event stream. */
void mcp_frame(const char *p, size_t n, struct buf *b);
/* What is known of a session may have changed: it is asked for again. */
void mcp_server_doubt_session(struct mcp_server *s, const char *session_id);

/* ---- the end before the end */
/* Is this the request in hand, whatever its session? */
bool mcp_call_has_id(const struct mcp_call *c, const json_t *id);
bool mcp_call_ends_with_client(const struct mcp_call *c);
/*
 * The body of MSG_CANCEL for the run that the call waits for or has just asked
 * for, NULL when there is none or it was handed out. The caller owns it.
 */
json_t *mcp_call_cancel_run(const struct mcp_call *c, const char *reason);
bool mcp_call_has_run(const struct mcp_call *c); /* there is such a run */
/* Is this the request in hand? id: of the session's client. */
bool mcp_call_is(const struct mcp_call *c, const char *session_id, const json_t *id);
/* It was canceled: it gets no answer. */
enum mcp_next mcp_call_canceled(struct mcp_call *c, const struct mcp_reads *r);

/* Valid after a step that returned the matching enum mcp_next. */
struct mcp_reply mcp_call_reply(const struct mcp_call *c);
struct mcp_message mcp_call_message(const struct mcp_call *c);
struct mcp_await mcp_call_await(const struct mcp_call *c);
/* For the log: method and tool of the member in hand, "-" when there is none. */
const char *mcp_call_method(const struct mcp_call *c);
const char *mcp_call_tool(const struct mcp_call *c);

/*
 * A body for MSG_SESSION_TOUCH with the sessions used since the last call;
 * NULL: none. The edge sends it about once a minute; the caller owns it.
 */
json_t *mcp_server_drain_touched(struct mcp_server *s);

/*
 * A reply for a fault the edge finds before MCP is reached (413, 403, 429):
 * a JSON-RPC error without an id. The caller frees.
 */
char *mcp_error_body(int code, const char *message);

#endif
