/* SPDX-License-Identifier: MIT */
#ifndef NET_HTTPCURL_H
#define NET_HTTPCURL_H

#include <curl/curl.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/err.h"

/* What http.c and hijack.c share of libcurl; private to fcgi/net. */
enum { HTTP_IDLE_MAX = 16 };

struct http {
	pthread_mutex_t lock;
	CURL *idle[HTTP_IDLE_MAX]; /* under lock, each with its connection */
	int nidle;
	char *base, *unix_socket, *ca_file, *cert_file, *key_file;
	bool no_verify;
};

/* The server, limits and TLS; words: CURL_ERROR_SIZE bytes that outlive the call. */
void http_set_target(const struct http *h, CURL *c, char *words);

/* Always -1. */
int http_failed(CURL *c, CURLcode rc, const char *words, struct err *e);

#endif
