/* SPDX-License-Identifier: MIT */
#include "net/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/auto.h"
#include "base/mem.h"
#include "net/httpcurl.h"

enum { ANSWER_MAX = 1 << 20, TIMEOUT_MS = 30000, CONNECT_MS = 10000 };

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

static char *dup_or_null(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

struct http *http_new(const struct http_target *t)
{
	struct http *h = xcalloc(1, sizeof *h);

	pthread_once(&curl_once, init_curl);
	pthread_mutex_init(&h->lock, NULL);
	h->base = xstrdup(t->base);
	h->unix_socket = dup_or_null(t->unix_socket);
	h->ca_file = dup_or_null(t->ca_file);
	h->cert_file = dup_or_null(t->cert_file);
	h->key_file = dup_or_null(t->key_file);
	h->no_verify = t->no_verify;
	return h;
}

void http_free(struct http *h)
{
	int i;

	if (!h)
		return;
	for (i = 0; i < h->nidle; i++)
		curl_easy_cleanup(h->idle[i]);
	pthread_mutex_destroy(&h->lock);
	free(h->base);
	free(h->unix_socket);
	free(h->ca_file);
	free(h->cert_file);
	free(h->key_file);
	free(h);
}

void http_answer_release(struct http_answer *a)
{
	buf_release(&a->body);
}

static CURL *handle_get(struct http *h)
{
	CURL *c = NULL;

	pthread_mutex_lock(&h->lock);
	if (h->nidle > 0)
		c = h->idle[--h->nidle];
	pthread_mutex_unlock(&h->lock);
	if (!c)
		c = curl_easy_init();
	if (!c)
		abort();
	return c;
}

static void handle_put(struct http *h, CURL *c)
{
	curl_easy_reset(c); /* the connection stays */
	pthread_mutex_lock(&h->lock);
	if (h->nidle < HTTP_IDLE_MAX) {
		h->idle[h->nidle++] = c;
		c = NULL;
	}
	pthread_mutex_unlock(&h->lock);
	curl_easy_cleanup(c);
}

void http_set_target(const struct http *h, CURL *c, char *words)
{
	words[0] = '\0';
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, words);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
	if (h->unix_socket) {
		curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, h->unix_socket);
		curl_easy_setopt(c, CURLOPT_PROXY, "");
	}
	if (h->ca_file)
		curl_easy_setopt(c, CURLOPT_CAINFO, h->ca_file);
	if (h->cert_file)
		curl_easy_setopt(c, CURLOPT_SSLCERT, h->cert_file);
	if (h->key_file)
		curl_easy_setopt(c, CURLOPT_SSLKEY, h->key_file);
	curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (h->no_verify) {
		curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
	}
}

int http_failed(CURL *c, CURLcode rc, const char *words, struct err *e)
{
	long sys = 0;

	if (rc == CURLE_OPERATION_TIMEDOUT)
		return err_set(e, ERR_TIMEOUT, "no answer in time: %s",
			       *words ? words : curl_easy_strerror(rc));
	curl_easy_getinfo(c, CURLINFO_OS_ERRNO, &sys);
	if (rc == CURLE_COULDNT_CONNECT && sys != 0) {
		errno = (int)sys;
		return err_sys(e, "connect");
	}
	return err_set(e, ERR_BACKEND, "%s", *words ? words : curl_easy_strerror(rc));
}

/* One call under way. */
struct transfer {
	CURL *curl;
	const struct http_call *call;
	struct buf body;
	int rc;
	struct err e;
};

static size_t on_write(char *p, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	long status = 0;

	n *= size;
	if (t->call->on_data)
		curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 200 && status < 300) {
		t->rc = t->call->on_data(t->call->arg, p, n, &t->e);
		return t->rc < 0 ? 0 : n;
	}
	buf_add(&t->body, p, n);
	if (buf_ok(&t->body))
		return n;
	t->rc = err_set(&t->e, ERR_LIMIT, "the answer is larger than %zu bytes",
			t->body.max);
	return 0;
}

static void set_call(struct transfer *t, const char *url, struct curl_slist *headers)
{
	const struct http_call *c = t->call;
	bool sends = c->len > 0 || strcmp(c->method, "POST") == 0 ||
		     strcmp(c->method, "PUT") == 0;

	curl_easy_setopt(t->curl, CURLOPT_URL, url);
	curl_easy_setopt(t->curl, CURLOPT_HTTPHEADER, headers);
	if (sends) {
		curl_easy_setopt(t->curl, CURLOPT_POSTFIELDSIZE_LARGE,
				 (curl_off_t)c->len);
		curl_easy_setopt(t->curl, CURLOPT_POSTFIELDS, c->len ? c->body : "");
	}
	curl_easy_setopt(t->curl, CURLOPT_CUSTOMREQUEST, c->method);
	if (strcmp(c->method, "HEAD") == 0)
		curl_easy_setopt(t->curl, CURLOPT_NOBODY, 1L);
	curl_easy_setopt(t->curl, CURLOPT_TIMEOUT_MS,
			 (long)(c->timeout_ms ? c->timeout_ms : TIMEOUT_MS));
	curl_easy_setopt(t->curl, CURLOPT_WRITEFUNCTION, on_write);
	curl_easy_setopt(t->curl, CURLOPT_WRITEDATA, t);
}

static int perform(struct http *h, struct transfer *t, const char *url,
		   struct curl_slist *headers, long *ret_status, struct err *e)
{
	char words[CURL_ERROR_SIZE];
	CURLcode rc;

	http_set_target(h, t->curl, words);
	set_call(t, url, headers);
	rc = curl_easy_perform(t->curl);
	curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, ret_status);
	if (t->rc < 0) {
		*e = t->e;
		return -1;
	}
	return rc == CURLE_OK ? 0 : http_failed(t->curl, rc, words, e);
}

int http_call(struct http *h, const struct http_call *c, struct http_answer *ret,
	      struct err *e)
{
	AUTO_FREE char *url = xasprintf("%s%s", h->base, c->path);
	struct transfer t = {
		.call = c,
		.curl = handle_get(h),
		.e = ERR_INIT,
		.body = BUF_INIT(c->answer_max ? c->answer_max : ANSWER_MAX)};
	/* No "Expect: 100-continue": it costs a round trip, and engines do not need it.
	 */
	struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
	long status = 0;
	size_t i;
	int rc;

	for (i = 0; c->headers && c->headers[i]; i++)
		headers = curl_slist_append(headers, c->headers[i]);
	rc = perform(h, &t, url, headers, &status, e);
	curl_slist_free_all(headers);
	handle_put(h, t.curl);
	if (rc < 0) {
		buf_release(&t.body);
		return -1;
	}
	ret->status = (int)status;
	ret->body = t.body;
	return 0;
}
