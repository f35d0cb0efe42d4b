/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/api/exec.h"

#include <stdio.h>
#include <string.h>

#include "backend/kubernetes/api/channels.h"
#include "base/auto.h"
#include "base/mem.h"

/* v5 is 1.30's; an older server hands the list to the container runtime: v4. */
#define PROTOCOLS "v5.channel.k8s.io, v4.channel.k8s.io"

enum {
	FIRST_BYTES_MS = 15000,
	FIRST_BYTES_MAX = 256 * 1024,
	HEAD_MAX = 32 * 1024,
	PATH_BYTES = 8192,
};

/* A stream: the pump's codec state, and whom to tell of its end. */
struct stream {
	struct kube_channels ch;
	char *pod;
	void (*ended)(void *arg, const char *pod, const struct err *why);
	void *arg;
};

static int decode(void *state, const char *p, size_t n, struct buf *out)
{
	struct stream *s = state;

	return kube_channels_decode(&s->ch, p, n, out);
}

static void encode(void *state, const char *p, size_t n, struct buf *out)
{
	(void)state;
	kube_channels_encode(p, n, out);
}

static void answer(void *state, struct buf *out)
{
	struct stream *s = state;

	kube_channels_answer(&s->ch, out);
}

static void over(void *state, bool by_far)
{
	struct stream *s = state;
	struct err why = ERR_INIT;

	if (!by_far || !s->ended)
		return;
	kube_channels_why(&s->ch, &why);
	s->ended(s->arg, s->pod, &why);
}

static void stream_free(void *state)
{
	struct stream *s = state;

	kube_channels_release(&s->ch);
	free(s->pod);
	free(s);
}

static const struct pump_codec codec = {.decode = decode,
					.encode = encode,
					.answer = answer,
					.over = over,
					.free = stream_free};

/* ---- the handshake */

static int make_path(const struct kube_api *a, const struct kube_exec *x,
		     struct buf *path, struct err *e)
{
	AUTO_FREE char *start = kube_path(a, "pods/%s/exec", x->pod);
	const char *const *arg;

	buf_puts(path, start);
	for (arg = x->argv; *arg; arg++)
		kube_query_add(path, "command", *arg);
	kube_query_add(path, "container", x->container);
	buf_puts(path, "&stderr=true&stdin=true&stdout=true");
	return buf_ok(path) ? 0 : err_set(e, ERR_LIMIT, "the command is too long");
}

static int no_websocket(int code, struct err *e)
{
	e->kind = ERR_NONE;
	return err_set(e, ERR_BACKEND,
		       "the API server, or a proxy in front of it, takes no exec by "
		       "WebSocket (it answered %d): v4.channel.k8s.io or "
		       "v5.channel.k8s.io is needed, and the Upgrade header must reach "
		       "it",
		       code);
}

/*
 * A server that has no WebSocket exec, or none of our protocols, says so without a
 * Status: 403 and nothing else (it is not RBAC's then), 405, an ordinary answer, or
 * 400 when a proxy dropped the headers.
 */
static int refused(const char *path, const struct http_answer *answer,
		   struct kube_status *status, struct err *e)
{
	struct kube_status s;

	e->kind = ERR_NONE;
	kube_refusal("GET", path, answer, &s, e);
	if (status)
		*status = s;
	if ((answer->status == 403 && answer->body.len == 0) || answer->status == 405 ||
	    answer->status < 300 ||
	    (answer->status == 400 && strstr(s.words, "pgrade request required")))
		return no_websocket(answer->status, e);
	return -1;
}

static int dial(struct kube_api *a, const struct kube_exec *x, struct hijack **ret,
		struct err *e)
{
	AUTO_BUF path = BUF_INIT(PATH_BYTES), head = BUF_INIT(HEAD_MAX);
	AUTO_HTTP_ANSWER refusal = HTTP_ANSWER_INIT;
	char key[WS_KEY_LEN + 1], key_line[64];
	const char *headers[] = {key_line, "Sec-WebSocket-Version: 13",
				 "Sec-WebSocket-Protocol: " PROTOCOLS, NULL};
	struct http_upgrade u = {.method = "GET",
				 .protocol = "websocket",
				 .headers = headers,
				 .head = &head};
	struct hijack *j = NULL;
	struct str protocol = {0};

	if (make_path(a, x, &path, e) < 0)
		return -1;
	ws_key(key);
	snprintf(key_line, sizeof key_line, "Sec-WebSocket-Key: %s", key);
	u.path = path.p;
	if (kube_upgrade(a, &u, &j, &refusal, e) < 0)
		return refusal.status ? refused(path.p, &refusal, x->status, e) : -1;
	if (ws_check_answer(head.p, head.len, key, PROTOCOLS, &protocol, e) == 0) {
		if (protocol.p) {
			*ret = j;
			return 0;
		}
		no_websocket(101, e);
	}
	hijack_close(j);
	return -1;
}

/* ---- the stream */

/* What a stream said that ended before it was one. */
static int ended_early(struct stream *s, const struct kube_exec *x, struct err *e)
{
	if (e->kind != ERR_BACKEND)
		return err_wrap(e, "the program in pod %.63s", x->pod);
	if (x->status && s->ch.has_status)
		*x->status = s->ch.status;
	e->kind = ERR_NONE;
	kube_channels_why(&s->ch, e);
	if (s->ch.has_status && s->ch.status.reason == KUBE_NOT_FOUND)
		e->kind = ERR_NOT_FOUND;
	return -1;
}

int kube_exec_open(struct kube_api *a, struct pump *p, const struct kube_exec *x,
		   int *ret_fd, struct err *e)
{
	AUTO_BUF ready = BUF_INIT(FIRST_BYTES_MAX);
	struct pump_stream ps = {.codec = &codec, .ready = &ready};
	struct stream *s;

	if (x->status)
		*x->status = (struct kube_status){0};
	if (dial(a, x, &ps.hijack, e) < 0)
		return -1;
	s = xcalloc(1, sizeof *s);
	s->pod = xstrdup(x->pod);
	s->ended = x->ended;
	s->arg = x->arg;
	ps.state = s;
	if (pump_first_bytes(&ps, FIRST_BYTES_MS, &ready, e) == 0)
		return pump_add(p, &ps, ret_fd, e);
	ended_early(s, x, e);
	hijack_close(ps.hijack);
	stream_free(s);
	return -1;
}
