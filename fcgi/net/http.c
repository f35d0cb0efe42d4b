/* SPDX-License-Identifier: MIT */
#include "net/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"
#include "net/httpcurl.h"

enum {
	ANSWER_MAX = 1 << 20,
	TIMEOUT_MS = 30000,
	CONNECT_MS = 10000,
	/* A silent peer that is gone is noticed after two minutes. */
	KEEPALIVE_IDLE_S = 30,
	KEEPALIVE_INTERVAL_S = 10,
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

static char *dup_or_null(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

static struct buf dup_pem(struct str s)
{
	struct buf b = BUF_INIT(s.n);

	buf_add(&b, s.p, s.n);
	return b;
}

/* The url names whom the certificate has to; the connection goes where it went. */
static void set_tls_name(struct http *h, const char *name)
{
	const char *at = strstr(h->base, "://"), *port;
	AUTO_FREE char *dial = NULL;
	char *base;

	if (!at)
		return;
	at += 3;
	port = strrchr(at, ':');
	if (!port || strchr(port, ']'))
		port = at + strlen(at);
	dial = xasprintf("::%.*s:%s", (int)(port - at), at, *port ? port + 1 : "443");
	h->dial = curl_slist_append(NULL, dial);
	h->host = xasprintf("Host: %s", at);
	base = xasprintf("%.*s%s%s", (int)(at - h->base), h->base, name, port);
	free(h->base);
	h->base = base;
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
	h->ca_pem = dup_pem(t->ca_pem);
	h->cert_pem = dup_pem(t->cert_pem);
	h->key_pem = dup_pem(t->key_pem);
	h->proxy = dup_or_null(t->proxy);
	if (t->tls_name)
		set_tls_name(h, t->tls_name);
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
	buf_release(&h->ca_pem);
	buf_release(&h->cert_pem);
	buf_release(&h->key_pem);
	curl_slist_free_all(h->dial);
	free(h->host);
	free(h->proxy);
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

static void set_pem(CURL *c, CURLoption as_file, const char *file, CURLoption as_blob,
		    const struct buf *pem)
{
	struct curl_blob blob = {.data = pem->p, .len = pem->len}; /* not copied */

	if (pem->len > 0)
		curl_easy_setopt(c, as_blob, &blob);
	else if (file)
		curl_easy_setopt(c, as_file, file);
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
	curl_easy_setopt(c, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_IDLE_S);
	curl_easy_setopt(c, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_INTERVAL_S);
	if (h->unix_socket) {
		curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, h->unix_socket);
		curl_easy_setopt(c, CURLOPT_PROXY, "");
	}
	set_pem(c, CURLOPT_CAINFO, h->ca_file, CURLOPT_CAINFO_BLOB, &h->ca_pem);
	set_pem(c, CURLOPT_SSLCERT, h->cert_file, CURLOPT_SSLCERT_BLOB, &h->cert_pem);
	set_pem(c, CURLOPT_SSLKEY, h->key_file, CURLOPT_SSLKEY_BLOB, &h->key_pem);
	if (h->ca_file || h->ca_pem.len > 0) /* and not the system's beside it */
		curl_easy_setopt(c, CURLOPT_CAPATH, NULL);
	curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (h->dial)
		curl_easy_setopt(c, CURLOPT_CONNECT_TO, h->dial);
	if (h->proxy)
		curl_easy_setopt(c, CURLOPT_PROXY, h->proxy);
	if (h->no_verify) {
		curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
	}
}

/* One of the two did not prove to the other who it is: no other try will do better. */
static bool is_untrusted(CURLcode rc)
{
	return rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CERTPROBLEM ||
	       rc == CURLE_SSL_CACERT_BADFILE;
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
	return err_set(e, is_untrusted(rc) ? ERR_DENIED : ERR_BACKEND, "%s",
		       *words ? words : curl_easy_strerror(rc));
}

/* One call under way. */
struct transfer {
	CURL *curl;
	const struct http_call *call;
	struct buf body;
	int64_t heard_ms;
	int rc;
	struct err e;
};

static size_t on_write(char *p, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	long status = 0;

	n *= size;
	t->heard_ms = clock_mono_ms();
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
	if (c->timeout_ms > 0 || c->idle_ms == 0)
		curl_easy_setopt(t->curl, CURLOPT_TIMEOUT_MS,
				 (long)(c->timeout_ms ? c->timeout_ms : TIMEOUT_MS));
	curl_easy_setopt(t->curl, CURLOPT_WRITEFUNCTION, on_write);
	curl_easy_setopt(t->curl, CURLOPT_WRITEDATA, t);
}

static int perform(struct http *h, struct transfer *t, const char *url,
		   struct curl_slist *headers, struct http_answer *a, struct err *e)
{
	struct http_wait w = {.idle_ms = t->call->idle_ms,
			      .stop_fd = t->call->stop_fd,
			      .heard_ms = &t->heard_ms};
	char words[CURL_ERROR_SIZE];
	curl_off_t retry_after = 0;
	long status = 0;
	CURLcode rc;

	http_set_target(h, t->curl, words);
	set_call(t, url, headers);
	rc = http_perform(t->curl, &w);
	curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(t->curl, CURLINFO_RETRY_AFTER, &retry_after);
	a->status = (int)status;
	a->retry_after_s = retry_after;
	if (w.was_stopped)
		return err_set(e, ERR_BUSY, "stopped");
	if (w.was_idle)
		return err_set(e, ERR_TIMEOUT, "nothing came for %lld s",
			       (long long)w.idle_ms / 1000);
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
		.heard_ms = clock_mono_ms(),
		.e = ERR_INIT,
		.body = BUF_INIT(c->answer_max ? c->answer_max : ANSWER_MAX)};
	/* No "Expect: 100-continue": it costs a round trip, and engines do not need it.
	 */
	struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
	struct http_answer a = {0};
	size_t i;
	int rc;

	if (h->host)
		headers = curl_slist_append(headers, h->host);
	for (i = 0; c->headers && c->headers[i]; i++)
		headers = curl_slist_append(headers, c->headers[i]);
	rc = perform(h, &t, url, headers, &a, e);
	curl_slist_free_all(headers);
	handle_put(h, t.curl);
	if (rc < 0)
		buf_release(&t.body);
	*ret = a;
	ret->body = t.body;
	return rc;
}
