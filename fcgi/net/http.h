/* SPDX-License-Identifier: MIT */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/*
 * HTTP to one server, over TCP, TLS or a unix socket; libcurl inside. Connections
 * are kept and used again. Every call has a time limit and a cap on what it takes
 * in; no redirect is followed and no proxy used for a unix socket. With certificates
 * of ours to check the server by, no other is trusted. Any thread; calls at once have
 * connections of their own.
 */
struct http_target {
	const char *base; /* "http://host:port" or "https://…", no slash at its end */
	const char *unix_socket;                    /* path; NULL: TCP, by base */
	const char *ca_file, *cert_file, *key_file; /* PEM; NULL: none */
	bool no_verify; /* https: take any certificate, as Docker's own client can */
	/* PEM text in the place of those files; it wins. p NULL: none. */
	struct str ca_pem, cert_pem, key_pem;
	const char *tls_name; /* whom the server has to prove to be; NULL: as in base */
	const char *proxy;    /* its url; NULL: as the environment says */
};

struct http;

/* Copies the target. */
struct http *http_new(const struct http_target *t);

/* No call may be under way. NULL is fine. */
void http_free(struct http *h);

struct http_call {
	const char *method;         /* upper case */
	const char *path;           /* with its query, from '/' */
	const char *const *headers; /* "Name: value", NULL-terminated; NULL: none */
	const void *body;           /* sent when len > 0 or the method is POST or PUT */
	size_t len;
	int64_t timeout_ms; /* whole call; 0: 30 s, or no limit with idle_ms */
	int64_t idle_ms;    /* ERR_TIMEOUT when nothing came for that long; 0: no limit */
	const int
		*stop_fd;  /* readable: ends the call, at once, as ERR_BUSY; NULL: none */
	size_t answer_max; /* 0: 1 MiB; more is ERR_LIMIT */
	/*
	 * With on_data the body of a 2xx answer is told piece by piece instead of
	 * being kept; -1 with e filled ends the call.
	 */
	int (*on_data)(void *arg, const char *p, size_t n, struct err *e);
	void *arg;
};

struct http_answer {
	int status;
	int64_t retry_after_s; /* Retry-After; 0: not said */
	struct buf body;
};
#define HTTP_ANSWER_INIT                                                                 \
	{                                                                                \
		.body = BUF_INIT(0)                                                      \
	}
void http_answer_release(struct http_answer *a);
#define AUTO_HTTP_ANSWER __attribute__((cleanup(http_answer_release))) struct http_answer

/*
 * 0: there was an answer, of whatever status. -1: ERR_SYSTEM with `sys` when the
 * connection was refused by the system, ERR_DENIED when a certificate does not do,
 * ERR_TIMEOUT, ERR_LIMIT, else ERR_BACKEND;
 * ret->status is that of an answer that had begun, else 0.
 */
int http_call(struct http *h, const struct http_call *c, struct http_answer *ret,
	      struct err *e);

/*
 * A connection that left HTTP: the server answered an upgrade, and what follows is
 * a stream of its own. One thread at a time, and any.
 */
struct hijack;

/*
 * Sends the request and asks for an upgrade to `protocol`. An answer that is neither
 * 101 nor a 200 with a raw stream is *refusal (its body, cut to its max) with -1 and
 * ERR_BACKEND; its status is 0 when there was no answer.
 */
struct http_upgrade {
	const char *method;      /* NULL: POST */
	const char *path, *host; /* host: what the Host header says */
	const char *protocol;
	const char *const *headers; /* more of them, NULL-terminated; NULL: none */
	const char *content_type;   /* NULL: there is no body */
	const void *body;
	size_t len;
	int64_t timeout_ms; /* 0: 30 s */
	struct buf *head;   /* the head of an answer that did is appended; NULL: none */
};
int http_upgrade(struct http *h, const struct http_upgrade *u, struct hijack **ret,
		 struct http_answer *refusal, struct err *e);

/* To watch; level-triggered readiness, see hijack_read(). */
int hijack_fd(const struct hijack *j);

/*
 * Without blocking. > 0 bytes; 0 the other end closed; -1 nothing now; -2 broken.
 * Over TLS, bytes may be there although the descriptor is not readable: read until
 * -1 before waiting.
 */
ptrdiff_t hijack_read(struct hijack *j, void *p, size_t n);

/* Without blocking. >= 0 bytes taken, -1 none now, -2 broken. */
ptrdiff_t hijack_write(struct hijack *j, const void *p, size_t n);

/* NULL is fine. */
void hijack_close(struct hijack *j);

#endif
