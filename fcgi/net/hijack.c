/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"
#include "net/http.h"
#include "net/httpcurl.h"
#include "net/httphead.h"

enum { UPGRADE_TIMEOUT_MS = 30000, READ_PART = 4096 };

struct hijack {
	CURL *curl; /* its easy handle carries the connection, and TLS */
	int fd;
	struct buf early; /* came with the head; not yet read */
	size_t early_at;
	char words[CURL_ERROR_SIZE];
};

void hijack_close(struct hijack *j)
{
	if (!j)
		return;
	curl_easy_cleanup(j->curl);
	buf_release(&j->early);
	free(j);
}

int hijack_fd(const struct hijack *j)
{
	return j->fd;
}

ptrdiff_t hijack_read(struct hijack *j, void *p, size_t n)
{
	size_t got = 0;
	CURLcode rc;

	if (j->early_at < j->early.len) {
		got = j->early.len - j->early_at;
		got = got < n ? got : n;
		memcpy(p, j->early.p + j->early_at, got);
		j->early_at += got;
		return (ptrdiff_t)got;
	}
	rc = curl_easy_recv(j->curl, p, n, &got);
	if (rc == CURLE_AGAIN)
		return -1;
	/* A TLS end without its farewell is an error to curl and an end to us. */
	return rc == CURLE_OK ? (ptrdiff_t)got : -2;
}

ptrdiff_t hijack_write(struct hijack *j, const void *p, size_t n)
{
	size_t sent = 0;
	CURLcode rc = curl_easy_send(j->curl, p, n, &sent);

	if (rc == CURLE_AGAIN)
		return -1;
	return rc == CURLE_OK ? (ptrdiff_t)sent : -2;
}

static int wait_for(const struct hijack *j, short events, int64_t deadline, struct err *e)
{
	struct pollfd p = {.fd = j->fd, .events = events};
	int64_t left = deadline - clock_mono_ms();

	if (left <= 0)
		return err_set(e, ERR_TIMEOUT, "no answer in time");
	if (poll(&p, 1, left > 60000 ? 60000 : (int)left) < 0 && errno != EINTR)
		return err_sys(e, "poll");
	return 0;
}

static int send_all(struct hijack *j, const struct buf *b, int64_t deadline,
		    struct err *e)
{
	size_t at = 0;
	ptrdiff_t n;

	while (at < b->len) {
		n = hijack_write(j, b->p + at, b->len - at);
		if (n == -2)
			return err_set(e, ERR_BACKEND, "the connection broke");
		if (n > 0)
			at += (size_t)n;
		else if (wait_for(j, POLLOUT, deadline, e) < 0)
			return -1;
	}
	return 0;
}

/* Appends what comes; *ret_end: the other end closed. */
static int receive(struct hijack *j, struct buf *b, int64_t deadline, bool *ret_end,
		   struct err *e)
{
	char part[READ_PART];
	ptrdiff_t n = hijack_read(j, part, sizeof part);

	if (n == -1)
		return wait_for(j, POLLIN, deadline, e);
	if (n == -2)
		return err_set(e, ERR_BACKEND, "the connection broke");
	*ret_end = n == 0;
	buf_add(b, part, (size_t)n);
	return buf_ok(b) ? 0 : err_set(e, ERR_BACKEND, "the answer is too large");
}

static int receive_head(struct hijack *j, struct buf *b, int64_t deadline,
			struct httphead *h, struct err *e)
{
	bool end = false;

	for (;;) {
		switch (httphead_parse(b->p, b->len, h)) {
		case HTTPHEAD_OK:
			return 0;
		case HTTPHEAD_BAD:
			return err_set(e, ERR_BACKEND, "the answer is no HTTP");
		case HTTPHEAD_MORE:
			break;
		}
		if (end)
			return err_set(e, ERR_BACKEND, "the connection was closed");
		if (receive(j, b, deadline, &end, e) < 0)
			return -1;
	}
}

/* The words of a server that did not upgrade; as much of them as comes. */
static int receive_refusal(struct hijack *j, struct buf *b, const struct httphead *h,
			   int64_t deadline, struct http_answer *ret, struct err *e)
{
	bool end = false;

	while (!end && buf_ok(b) &&
	       (h->content_length < 0 || (int64_t)(b->len - h->len) < h->content_length))
		if (receive(j, b, deadline, &end, e) < 0)
			return -1;
	ret->status = h->status;
	ret->body = (struct buf)BUF_INIT(2 * HTTPHEAD_MAX);
	buf_add(&ret->body, b->p + h->len, b->len - h->len);
	return err_set(e, ERR_BACKEND, "the answer was %d", h->status);
}

static void write_request(const struct http_upgrade *u, struct buf *b)
{
	size_t i;

	buf_printf(b,
		   "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\n"
		   "Upgrade: %s\r\n",
		   u->method ? u->method : "POST", u->path, u->host, u->protocol);
	for (i = 0; u->headers && u->headers[i]; i++)
		buf_printf(b, "%s\r\n", u->headers[i]);
	if (u->content_type)
		buf_printf(b, "Content-Type: %s\r\nContent-Length: %zu\r\n",
			   u->content_type, u->len);
	buf_puts(b, "\r\n");
	buf_add(b, u->body, u->len);
}

static int converse(struct hijack *j, const struct http_upgrade *u,
		    struct http_answer *refusal, struct err *e)
{
	AUTO_BUF request = BUF_INIT(1 << 20);
	AUTO_BUF answer = BUF_INIT(2 * HTTPHEAD_MAX);
	int64_t deadline =
		clock_mono_ms() + (u->timeout_ms ? u->timeout_ms : UPGRADE_TIMEOUT_MS);
	struct httphead h;

	write_request(u, &request);
	if (!buf_ok(&request))
		return err_set(e, ERR_LIMIT, "the request is too large");
	if (send_all(j, &request, deadline, e) < 0 ||
	    receive_head(j, &answer, deadline, &h, e) < 0)
		return -1;
	if (h.status != 101 && !(h.status == 200 && h.is_raw_stream))
		return receive_refusal(j, &answer, &h, deadline, refusal, e);
	if (u->head)
		buf_add(u->head, answer.p, h.len);
	buf_add(&j->early, answer.p + h.len, answer.len - h.len);
	return 0;
}

static int dial(struct http *h, struct hijack *j, struct err *e)
{
	curl_socket_t fd = CURL_SOCKET_BAD;
	CURLcode rc;

	http_set_target(h, j->curl, j->words);
	curl_easy_setopt(j->curl, CURLOPT_URL, h->base);
	curl_easy_setopt(j->curl, CURLOPT_CONNECT_ONLY, 1L);
	curl_easy_setopt(j->curl, CURLOPT_BUFFERSIZE, 1024L); /* it uses none of it */
	if (h->proxy) /* a stream is none of a proxy's business */
		curl_easy_setopt(j->curl, CURLOPT_HTTPPROXYTUNNEL, 1L);
	rc = curl_easy_perform(j->curl);
	if (rc != CURLE_OK)
		return http_failed(j->curl, rc, j->words, e);
	curl_easy_getinfo(j->curl, CURLINFO_ACTIVESOCKET, &fd);
	if (fd == CURL_SOCKET_BAD)
		return err_set(e, ERR_BACKEND, "the connection was closed at once");
	j->fd = fd;
	return 0;
}

int http_upgrade(struct http *h, const struct http_upgrade *u, struct hijack **ret,
		 struct http_answer *refusal, struct err *e)
{
	struct hijack *j = xcalloc(1, sizeof *j);

	j->curl = curl_easy_init();
	if (!j->curl)
		abort();
	j->early = (struct buf)BUF_INIT(2 * HTTPHEAD_MAX);
	if (dial(h, j, e) < 0 || converse(j, u, refusal, e) < 0) {
		hijack_close(j);
		return -1;
	}
	*ret = j;
	return 0;
}
