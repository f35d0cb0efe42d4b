/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BACKEND_FAKEKUBE_H
#define TESTS_BACKEND_FAKEKUBE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "net/websocket.h"
#include "tests/unit/testdir.h"

/*
 * An API server for tests, on loopback, that follows a script: for every request the
 * first step that fits and is not used up says the answer. What fits no step is
 * answered 500 and counted. A thread per connection; connections are kept alive.
 *
 *	static const struct fakekube_step steps[] = {
 *		{.request = "GET /api/v1/namespaces/sbx/pods?", .body = "{...}"},
 *		{.request = "POST ", .status = 409, .body = FAKEKUBE_STATUS(...)},
 *		{0}};
 *	struct fakekube k;
 *	struct conf c;
 *
 *	fakekube_start(&k, steps);
 *	c.kubeconfig = fakekube_kubeconfig(&k); namespace "sbx", token "t"
 *	... fakekube_saw(&k, "DELETE /api/..."), k.log ...
 *	fakekube_stop(&k); asserts that nothing came unexpected
 */
enum { FAKEKUBE_CONNECTIONS = 64, FAKEKUBE_STEPS = 128 };

struct fakekube;

struct fakekube_step {
	const char *request; /* what "METHOD /path" begins with; NULL: the end of all */
	int status;          /* 0: 200 */
	const char *headers; /* whole lines; NULL: Content-Type: application/json */
	const char *body;    /* NULL: empty */
	int times;           /* 0: once; -1: for ever */
	bool drops;          /* closes the connection instead of an answer */
	/* Answers by itself; the connection is closed after it unless it is kept. */
	void (*serve)(struct fakekube *k, int fd, const char *request);
	bool is_kept;
};

struct fakekube {
	const struct fakekube_step *steps;
	void *arg; /* the test's, for serve() */
	int port;
	/* the rest is under lock */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* the log grew, or stopping */
	struct buf log;         /* whole requests, head and body, one after another */
	int used[FAKEKUBE_STEPS];
	int unexpected, connections; /* ever made */
	bool stopping;
	int listen_fd, fds[FAKEKUBE_CONNECTIONS];
	pthread_t acceptor, threads[FAKEKUBE_CONNECTIONS];
	char dir[64];
};

#define FAKEKUBE_STATUS(code, reason, message)                                           \
	"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"         \
	"\"Failure\",\"message\":\"" message "\",\"reason\":\"" reason                   \
	"\",\"code\":" #code "}"

static inline void fakekube_write(int fd, const void *p, size_t n)
{
	struct err gone = ERR_INIT; /* a client that left is what some tests are about */

	io_write_all(fd, p, n, &gone);
}

/* One piece of a chunked body; the head has to have said so. */
static inline void fakekube_chunk(int fd, const char *text)
{
	AUTO_BUF b = BUF_INIT(1 << 20);

	buf_printf(&b, "%zx\r\n%s\r\n", strlen(text), text);
	fakekube_write(fd, b.p, b.len);
}
#define FAKEKUBE_CHUNKED                                                                 \
	"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"                          \
	"Transfer-Encoding: chunked\r\n\r\n"
#define FAKEKUBE_LAST_CHUNK "0\r\n\r\n"

/* Reads until the other end closes. */
static inline void fakekube_wait_close(int fd)
{
	char part[4096];

	while (read(fd, part, sizeof part) > 0)
		;
}

/* ---- exec */

/* Answers the handshake in `request` with the subprotocol ("" none). */
static inline void fakekube_ws_accept(int fd, const char *request, const char *protocol)
{
	const char *key = strstr(request, "Sec-WebSocket-Key: ");
	char accept[WS_ACCEPT_LEN + 1], mine[WS_KEY_LEN + 1];
	AUTO_BUF b = BUF_INIT(1000);

	assert_non_null(key);
	snprintf(mine, sizeof mine, "%s", key + strlen("Sec-WebSocket-Key: "));
	ws_accept(mine, accept);
	buf_printf(&b,
		   "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
		   "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n"
		   "Sec-WebSocket-Protocol: %s\r\n\r\n",
		   accept, protocol);
	fakekube_write(fd, b.p, b.len);
}

/* One frame of a server: unmasked; first: its first byte (a channel), -1 none. */
static inline void fakekube_ws_frame(int fd, int head, int first, const void *p, size_t n)
{
	uint8_t h[11] = {(uint8_t)head};
	size_t all = n + (first >= 0), len = 2;

	if (all < 126) {
		h[1] = (uint8_t)all;
	} else if (all < 65536) {
		h[1] = 126;
		h[2] = (uint8_t)(all >> 8);
		h[3] = (uint8_t)all;
		len = 4;
	} else {
		h[1] = 127;
		h[6] = (uint8_t)(all >> 24);
		h[7] = (uint8_t)(all >> 16);
		h[8] = (uint8_t)(all >> 8);
		h[9] = (uint8_t)all;
		len = 10;
	}
	if (first >= 0)
		h[len++] = (uint8_t)first;
	fakekube_write(fd, h, len);
	fakekube_write(fd, p, n);
}

static inline void fakekube_ws_send(int fd, int channel, const void *p, size_t n)
{
	fakekube_ws_frame(fd, 0x82, channel, p, n);
}

static inline bool fakekube_read(int fd, void *p, size_t n)
{
	size_t at = 0;
	ssize_t got = 1;

	for (; at < n && got > 0; at += got > 0 ? (size_t)got : 0)
		got = read(fd, (char *)p + at, n - at);
	return at == n;
}

/*
 * The next frame of the client, unmasked into p: its payload's length, -1 at the end
 * or when it breaks a rule (unmasked, fragmented, above 32 KiB). *ret_op: the opcode.
 */
static inline ptrdiff_t fakekube_ws_recv(int fd, void *p, size_t room, int *ret_op)
{
	uint8_t h[8], *out = p;
	size_t n, i;

	if (!fakekube_read(fd, h, 2) || !(h[1] & 0x80) || !(h[0] & 0x80))
		return -1;
	n = h[1] & 0x7f;
	*ret_op = h[0] & 0x0f;
	if (n == 126) {
		if (!fakekube_read(fd, h, 2))
			return -1;
		n = (size_t)h[0] << 8 | h[1];
	}
	if (n > 32 * 1024 || n > room || !fakekube_read(fd, h, 4) ||
	    !fakekube_read(fd, p, n))
		return -1;
	for (i = 0; i < n; i++)
		out[i] ^= h[i & 3];
	return (ptrdiff_t)n;
}

/* ---- the server */

static inline const struct fakekube_step *fakekube_choose(struct fakekube *k,
							  const char *request)
{
	const struct fakekube_step *s = k->steps;
	size_t i;

	for (i = 0; s[i].request; i++) {
		if (strncmp(request, s[i].request, strlen(s[i].request)) != 0)
			continue;
		if (s[i].times < 0 || k->used[i] < (s[i].times ? s[i].times : 1)) {
			k->used[i]++;
			return &s[i];
		}
	}
	k->unexpected++;
	print_message("fakekube: unexpected: %.200s\n", request);
	return NULL;
}

static inline const struct fakekube_step *fakekube_note(struct fakekube *k,
							const struct buf *request)
{
	const struct fakekube_step *s;

	pthread_mutex_lock(&k->lock);
	buf_add(&k->log, request->p, request->len);
	buf_puts(&k->log, "\n");
	s = fakekube_choose(k, request->p);
	pthread_cond_broadcast(&k->changed);
	pthread_mutex_unlock(&k->lock);
	return s;
}

static inline void fakekube_answer(int fd, const struct fakekube_step *s)
{
	static const struct fakekube_step none = {
		.status = 500,
		.body = FAKEKUBE_STATUS(500, "InternalError", "no step of the script")};
	AUTO_BUF b = BUF_INIT(8 << 20);

	s = s ? s : &none;
	buf_printf(&b, "HTTP/1.1 %d X\r\n%sContent-Length: %zu\r\n\r\n%s",
		   s->status ? s->status : 200,
		   s->headers ? s->headers : "Content-Type: application/json\r\n",
		   s->body ? strlen(s->body) : 0, s->body ? s->body : "");
	fakekube_write(fd, b.p, b.len);
}

/* A head and the body that its Content-Length tells of. */
static inline bool fakekube_read_request(int fd, struct buf *b)
{
	const char *end = NULL, *length;
	size_t want = 0;
	char part[8192];
	ssize_t n;

	for (;;) {
		if (!end && (end = strstr(b->p, "\r\n\r\n"))) {
			length = strstr(b->p, "Content-Length: ");
			want = (size_t)(end - b->p) + 4 +
			       (length && length < end ? strtoul(length + 16, NULL, 10)
						       : 0);
		}
		if (end && b->len >= want)
			return true;
		n = read(fd, part, sizeof part);
		if (n <= 0)
			return false;
		buf_add(b, part, (size_t)n);
	}
}

struct fakekube_client {
	struct fakekube *k;
	int fd;
};

static inline void *fakekube_serve(void *arg)
{
	struct fakekube_client c = *(struct fakekube_client *)arg;
	const struct fakekube_step *s;
	bool goes_on = true;

	free(arg);
	while (goes_on) {
		AUTO_BUF request = BUF_INIT(8 << 20);

		if (!fakekube_read_request(c.fd, &request))
			break;
		s = fakekube_note(c.k, &request);
		goes_on = !s || (!s->drops && (!s->serve || s->is_kept));
		if (s && s->serve)
			s->serve(c.k, c.fd, request.p);
		else if (goes_on)
			fakekube_answer(c.fd, s);
	}
	shutdown(c.fd, SHUT_RDWR); /* closed by fakekube_stop(), which may use it */
	return NULL;
}

static inline void *fakekube_accept(void *arg)
{
	struct fakekube *k = arg;
	int fd;

	while ((fd = accept4(k->listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		struct fakekube_client *c = xmalloc(sizeof *c);

		*c = (struct fakekube_client){k, fd};
		pthread_mutex_lock(&k->lock);
		if (k->connections >= FAKEKUBE_CONNECTIONS)
			abort();
		k->fds[k->connections] = fd;
		pthread_create(&k->threads[k->connections++], NULL, fakekube_serve, c);
		pthread_mutex_unlock(&k->lock);
	}
	return NULL;
}

/* Has a port, where nobody listens yet. */
static inline void fakekube_bind(struct fakekube *k, const struct fakekube_step *steps)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof a;

	signal(SIGPIPE, SIG_IGN); /* clients leave whenever they like */
	*k = (struct fakekube){.steps = steps, .log = BUF_INIT(64 << 20)};
	pthread_mutex_init(&k->lock, NULL);
	pthread_cond_init(&k->changed, NULL);
	k->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(k->listen_fd, (struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(getsockname(k->listen_fd, (struct sockaddr *)&a, &len), 0);
	k->port = ntohs(a.sin_port);
}

static inline void fakekube_listen(struct fakekube *k)
{
	assert_int_equal(listen(k->listen_fd, 64), 0);
	assert_int_equal(pthread_create(&k->acceptor, NULL, fakekube_accept, k), 0);
}

static inline void fakekube_start(struct fakekube *k, const struct fakekube_step *steps)
{
	fakekube_bind(k, steps);
	fakekube_listen(k);
}

/* A kubeconfig for it; token "t", namespace "sbx". For struct conf and to free. */
static inline char *fakekube_kubeconfig(struct fakekube *k)
{
	AUTO_BUF b = BUF_INIT(4096);
	struct err e = ERR_INIT;
	char *path;

	test_folder(k->dir, sizeof k->dir, "kube");
	path = xasprintf("%s/kubeconfig", k->dir);
	buf_printf(&b,
		   "current-context: c\n"
		   "clusters: [{name: k, cluster: {server: 'http://127.0.0.1:%d'}}]\n"
		   "users: [{name: u, user: {token: t}}]\n"
		   "contexts: [{name: c, context: {cluster: k, user: u, namespace: "
		   "sbx}}]\n",
		   k->port);
	assert_int_equal(io_write_file_atomic(path, b.p, b.len, 0600, &e), 0);
	return path;
}

/* The answers that came to requests beginning so, until now. */
static inline int fakekube_saw(struct fakekube *k, const char *request)
{
	const char *at;
	int n = 0;

	pthread_mutex_lock(&k->lock);
	for (at = k->log.p; (at = strstr(at, request)); at += strlen(request))
		n += at == k->log.p || at[-1] == '\n';
	pthread_mutex_unlock(&k->lock);
	return n;
}

/* Waits until that many requests beginning so have come. */
static inline void fakekube_await(struct fakekube *k, const char *request, int n)
{
	pthread_mutex_lock(&k->lock);
	for (;;) {
		const char *at;
		int seen = 0;

		for (at = k->log.p; (at = strstr(at, request)); at += strlen(request))
			seen += at == k->log.p || at[-1] == '\n';
		if (seen >= n)
			break;
		pthread_cond_wait(&k->changed, &k->lock);
	}
	pthread_mutex_unlock(&k->lock);
}

/* Cuts every connection that is open now, as a server does that is killed. */
static inline void fakekube_cut(struct fakekube *k)
{
	int i;

	pthread_mutex_lock(&k->lock);
	for (i = 0; i < k->connections; i++)
		shutdown(k->fds[i], SHUT_RDWR);
	pthread_mutex_unlock(&k->lock);
}

static inline void fakekube_stop(struct fakekube *k)
{
	AUTO_FREE char *file = NULL;
	int i;

	shutdown(k->listen_fd, SHUT_RDWR);
	pthread_join(k->acceptor, NULL);
	pthread_mutex_lock(&k->lock);
	k->stopping = true;
	pthread_cond_broadcast(&k->changed);
	pthread_mutex_unlock(&k->lock);
	fakekube_cut(k);
	for (i = 0; i < k->connections; i++) {
		pthread_join(k->threads[i], NULL);
		close(k->fds[i]);
	}
	close(k->listen_fd);
	if (*k->dir) {
		file = xasprintf("%s/kubeconfig", k->dir);
		unlink(file);
		rmdir(k->dir);
	}
	buf_release(&k->log);
	pthread_mutex_destroy(&k->lock);
	pthread_cond_destroy(&k->changed);
	assert_int_equal(k->unexpected, 0);
}

#endif
