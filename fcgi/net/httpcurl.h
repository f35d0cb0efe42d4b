/* SPDX-License-Identifier: MIT */
#ifndef NET_HTTPCURL_H
#define NET_HTTPCURL_H

#include <curl/curl.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/* What http.c and hijack.c share of libcurl; private to fcgi/net. */
enum { HTTP_IDLE_MAX = 16 };

struct http {
	pthread_mutex_t lock;
	CURL *idle[HTTP_IDLE_MAX]; /* under lock, each with its connection */
	int nidle;
	char *base, *unix_socket, *ca_file, *cert_file, *key_file;
	struct buf ca_pem, cert_pem, key_pem; /* len 0: none */
	struct curl_slist *dial;              /* CURLOPT_CONNECT_TO; NULL: as in base */
	char *host;                           /* "Host: …" for that case, or NULL */
	char *proxy;
	bool no_verify;
};

/* The server, limits and TLS; words: CURL_ERROR_SIZE bytes that outlive the call. */
void http_set_target(const struct http *h, CURL *c, char *words);

/*
 * curl_easy_perform() with what it does not have: an end when no byte has come for
 * idle_ms (0: never) or *stop_fd (NULL: none) is readable. *heard_ms is the
 * monotonic time of the last byte, kept up to date by the caller's write function.
 */
struct http_wait {
	int64_t idle_ms;
	const int *stop_fd;
	const int64_t *heard_ms;
	bool was_idle, was_stopped; /* why it ended, if so */
};
CURLcode http_perform(CURL *c, struct http_wait *w);

/* Always -1. */
int http_failed(CURL *c, CURLcode rc, const char *words, struct err *e);

#endif
