/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/api/api.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/mem.h"

enum {
	TIMEOUT_MS = 30000,
	PAUSE_FIRST_MS = 200,
	PAUSE_MOST_MS = 5000,
	ANSWER_MAX = 8 << 20, /* an object has 1.5 MiB at most; lists come in pages */
	HEADERS_MAX = 16,
};

struct kube_api {
	struct kube_credentials *cred;
	_Atomic int64_t patience_ms;
};

int kube_api_open(const struct kube_credentials_args *args, struct kube_api **ret,
		  struct err *e)
{
	struct kube_api *a = xcalloc(1, sizeof *a);

	a->patience_ms = TIMEOUT_MS;
	if (kube_credentials_open(args, &a->cred, e) < 0) {
		free(a);
		return -1;
	}
	*ret = a;
	return 0;
}

void kube_api_stop(struct kube_api *a)
{
	kube_credentials_stop(a->cred);
}

void kube_api_set_patience(struct kube_api *a, int64_t ms)
{
	a->patience_ms = ms;
}

void kube_api_close(struct kube_api *a)
{
	if (!a)
		return;
	kube_credentials_free(a->cred);
	free(a);
}

struct kube_credentials *kube_api_credentials(struct kube_api *a)
{
	return a->cred;
}

const char *kube_api_namespace(const struct kube_api *a)
{
	return kube_credentials_namespace(a->cred);
}

/* ---- paths */

char *kube_path(const struct kube_api *a, const char *fmt, ...)
{
	AUTO_BUF b = BUF_INIT(8192);
	char tail[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(tail, sizeof tail, fmt, ap);
	va_end(ap);
	buf_printf(&b, "/api/v1/namespaces/%s/%s", kube_api_namespace(a), tail);
	return xstrdup(b.p);
}

void kube_query_add(struct buf *path, const char *key, const char *value)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~";

	buf_printf(path, "%c%s=", strchr(path->p, '?') ? '&' : '?', key);
	for (; *value; value++) {
		if (strchr(plain, *value))
			buf_add(path, value, 1);
		else
			buf_printf(path, "%%%02X", (unsigned char)*value);
	}
}

/* ---- words */

/* What RBAC calls a request: "create" "pods/exec" in "sbx". */
struct deed {
	const char *verb;
	struct str resource, sub, name, ns;
};

static const char *verb_of(const char *method, bool has_name, bool watches)
{
	static const char *const verbs[][2] = {{"POST", "create"},
					       {"DELETE", "delete"},
					       {"PUT", "update"},
					       {"PATCH", "patch"}};
	size_t i;

	for (i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (strcmp(method, verbs[i][0]) == 0)
			return verbs[i][1];
	return has_name ? "get" : watches ? "watch" : "list";
}

/* "/api/v1/namespaces/NS/pods/NAME/exec?..." */
static struct deed deed_of(const char *method, const char *path)
{
	struct str rest = {path, strcspn(path, "?")}, ignored;
	struct deed d = {0};
	bool is_core = strncmp(path, "/api/", 5) == 0;
	int skip = is_core ? 3 : 4; /* "", api, v1; "", apis, group, version */

	while (skip-- > 0 && str_cut(&rest, '/', &ignored))
		;
	str_cut(&rest, '/', &d.resource);
	str_cut(&rest, '/', &d.name);
	if (str_eq(d.resource, "namespaces") && rest.p) {
		d.ns = d.name;
		d.name = (struct str){0};
		str_cut(&rest, '/', &d.resource);
		str_cut(&rest, '/', &d.name);
	}
	str_cut(&rest, '/', &d.sub);
	/* An exec is a GET; from 1.35 on it needs create as well. */
	d.verb = str_eq(d.sub, "exec")
			 ? "get and create"
			 : verb_of(method, d.name.n > 0, strstr(path, "watch=") != NULL);
	return d;
}

static void add_role_words(const char *method, const char *path, struct err *e)
{
	struct deed d = deed_of(method, path);
	size_t n = strlen(e->msg);

	if (d.resource.n == 0)
		return;
	snprintf(e->msg + n, sizeof e->msg - n,
		 "; a %s must allow %s on %.*s%s%.*s%s%.*s",
		 d.ns.n ? "Role" : "ClusterRole", d.verb, (int)d.resource.n, d.resource.p,
		 d.sub.n ? "/" : "", (int)d.sub.n, d.sub.p,
		 d.ns.n ? " in namespace " : "", (int)d.ns.n, d.ns.p);
}

int kube_refusal(const char *method, const char *path, const struct http_answer *answer,
		 struct kube_status *ret, struct err *e)
{
	struct kube_status s;

	kube_status_parse(answer->status, (struct str){answer->body.p, answer->body.len},
			  answer->retry_after_s, &s);
	kube_status_err(&s, e);
	if (s.reason == KUBE_FORBIDDEN)
		add_role_words(method, path, e);
	if (ret)
		*ret = s;
	return -1;
}

static int not_reached(const struct kube_api *a, int status, const struct err *why,
		       struct err *e)
{
	if (why->kind == ERR_BUSY || why->kind == ERR_LIMIT) {
		*e = *why;
		return -1;
	}
	if (status != 0)
		return err_set(e, why->kind, "the API server's answer broke off: %.300s",
			       why->msg);
	return err_set(e, why->kind == ERR_SYSTEM ? ERR_BACKEND : why->kind,
		       "the API server at %.200s is not reached: %.250s",
		       kube_credentials_where(a->cred), why->msg);
}

/* ---- one request */

/* What goes with it: one of the kind of request, the login's, then more of them. */
static const char **all_headers(const struct kube_login *l, const char *first,
				const char *const *more)
{
	size_t n = 0, i, room = strv_len(l->headers) + HEADERS_MAX;
	const char **all = xcalloc(room + 1, sizeof *all);

	all[n++] = first;
	for (i = 0; l->headers[i]; i++)
		all[n++] = l->headers[i];
	for (i = 0; more && more[i] && n < room; i++)
		all[n++] = more[i];
	return all;
}

static char *full_path(const struct kube_api *a, const char *path)
{
	return xasprintf("%s%s", kube_credentials_path(a->cred), path);
}

/* A request of either kind, made with a login. */
struct request {
	struct kube_api *api;
	int (*send)(const struct request *r, const struct kube_login *l,
		    struct http_answer *ret, struct err *e);
	const struct http_call *call;
	const struct http_upgrade *upgrade;
	struct hijack **ret_hijack;
};

static int send_call(const struct request *r, const struct kube_login *l,
		     struct http_answer *ret, struct err *e)
{
	AUTO_FREE char *path = full_path(r->api, r->call->path);
	AUTO_FREE const char **headers =
		all_headers(l, "Accept: application/json", r->call->headers);
	struct http_call c = *r->call;

	c.path = path;
	c.headers = headers;
	return http_call(l->http, &c, ret, e);
}

static int send_upgrade(const struct request *r, const struct kube_login *l,
			struct http_answer *ret, struct err *e)
{
	AUTO_FREE char *path = full_path(r->api, r->upgrade->path);
	/* A container runtime refuses (406) an upgrade that wants JSON only. */
	AUTO_FREE const char **headers =
		all_headers(l, "Accept: */*", r->upgrade->headers);
	struct http_upgrade u = *r->upgrade;

	u.path = path;
	u.headers = headers;
	u.host = kube_credentials_host(r->api->cred);
	return http_upgrade(l->http, &u, r->ret_hijack, ret, e);
}

/* True: the same again with a newer login may do better. */
static bool was_refused(const struct request *r, const struct kube_login *l, int rc,
			const struct http_answer *answer, const struct err *why)
{
	bool unreached = rc < 0 && answer->status == 0 &&
			 (why->kind == ERR_BACKEND || why->kind == ERR_DENIED);

	if (answer->status != 401 && !unreached)
		return false;
	kube_login_refused(r->api->cred, l, answer->status == 401);
	return true;
}

static int send_request(const struct request *r, struct http_answer *ret, struct err *e)
{
	const struct kube_login *l = NULL, *newer = NULL;
	struct err why = ERR_INIT, ignored = ERR_INIT;
	int rc;

	if (kube_login_get(r->api->cred, &l, e) < 0)
		return -1;
	rc = r->send(r, l, ret, &why);
	if (was_refused(r, l, rc, ret, &why) &&
	    kube_login_get(r->api->cred, &newer, &ignored) == 0 && newer != l) {
		http_answer_release(ret);
		*ret = (struct http_answer)HTTP_ANSWER_INIT;
		why = (struct err)ERR_INIT;
		rc = r->send(r, newer, ret, &why);
	}
	kube_login_put(newer);
	kube_login_put(l);
	return rc < 0 ? not_reached(r->api, ret->status, &why, e) : 0;
}

int kube_attempt(struct kube_api *a, const struct http_call *c, struct http_answer *ret,
		 struct err *e)
{
	struct request r = {.api = a, .send = send_call, .call = c};

	return send_request(&r, ret, e);
}

int kube_upgrade(struct kube_api *a, const struct http_upgrade *u, struct hijack **ret,
		 struct http_answer *refusal, struct err *e)
{
	struct request r = {
		.api = a, .send = send_upgrade, .upgrade = u, .ret_hijack = ret};

	return send_request(&r, refusal, e);
}

/* ---- a call with its repeats */

struct tries {
	int64_t deadline, again_until, pause_ms;
	bool may_repeat, once;
	const int *stop_fd;
};

/* Full jitter on the upper half: many callers do not come back at the same time. */
static int64_t jittered(int64_t ms)
{
	uint16_t r;

	id_random_bytes(&r, sizeof r);
	return ms / 2 + ms / 2 * r / UINT16_MAX;
}

/* Waits for the next try. False: there is no time for one, or it is stopped. */
static bool pause_for(struct tries *t, int64_t retry_after_ms)
{
	struct pollfd stop = {.fd = t->stop_fd ? *t->stop_fd : -1, .events = POLLIN};
	int64_t ms = retry_after_ms ? retry_after_ms : jittered(t->pause_ms);
	int n;

	if (clock_mono_ms() + ms >= t->deadline || clock_mono_ms() + ms >= t->again_until)
		return false;
	t->pause_ms = t->pause_ms * 2 < PAUSE_MOST_MS ? t->pause_ms * 2 : PAUSE_MOST_MS;
	n = poll(&stop, 1, (int)ms);
	return n == 0 || (n < 0 && errno == EINTR);
}

static bool is_worth_another(const struct tries *t, const struct kube_status *s,
			     const struct err *why)
{
	if (t->once)
		return false;
	if (s->reason == KUBE_BUSY && s->code != 503)
		return true;
	if (s->code == 0)
		return t->may_repeat && why->kind == ERR_BACKEND;
	return t->may_repeat && (s->reason == KUBE_BUSY || s->reason == KUBE_TIMEOUT ||
				 s->reason == KUBE_INTERNAL);
}

static int read_answer(const struct http_answer *answer, json_t **ret, struct err *e)
{
	if (!ret)
		return 0;
	*ret = NULL;
	if (json_parse(answer->body.p, answer->body.len, ret, e) < 0)
		return err_wrap(e, "the API server's answer");
	return 0;
}

static int try_once(struct kube_api *a, const struct http_call *c, json_t **ret,
		    struct kube_status *s, struct err *e)
{
	AUTO_HTTP_ANSWER answer = HTTP_ANSWER_INIT;

	*s = (struct kube_status){0};
	if (kube_attempt(a, c, &answer, e) < 0)
		return -1;
	if (answer.status >= 200 && answer.status < 300)
		return read_answer(&answer, ret, e);
	return kube_refusal(c->method, c->path, &answer, s, e);
}

static int try_all(struct kube_api *a, struct http_call *c, struct tries *t, json_t **ret,
		   struct kube_status *s, struct err *e)
{
	struct err why;
	int64_t left;
	int rc;

	do {
		why = (struct err)ERR_INIT;
		left = t->deadline - clock_mono_ms();
		c->timeout_ms = left > 0 ? left : 1; /* 0 and less are no limit */
		rc = try_once(a, c, ret, s, &why);
	} while (rc < 0 && is_worth_another(t, s, &why) &&
		 pause_for(t, s->retry_after_ms));
	if (rc < 0)
		*e = why;
	return rc;
}

int kube_call(struct kube_api *a, const struct kube_call *c, json_t **ret, struct err *e)
{
	AUTO_FREE char *text = c->json ? json_dumps(c->json, JSON_COMPACT) : NULL;
	AUTO_FREE char *type =
		xasprintf("Content-Type: %s",
			  c->content_type ? c->content_type : "application/json");
	const char *headers[] = {text ? type : NULL, NULL};
	struct http_call call = {.method = c->method,
				 .path = c->path,
				 .headers = headers,
				 .body = text,
				 .len = text ? strlen(text) : 0,
				 .stop_fd = c->stop_fd,
				 .answer_max = ANSWER_MAX};
	struct tries t = {.deadline = clock_mono_ms() +
				      (c->timeout_ms ? c->timeout_ms : TIMEOUT_MS),
			  .again_until = clock_mono_ms() + a->patience_ms,
			  .pause_ms = PAUSE_FIRST_MS,
			  .may_repeat = c->may_repeat || strcmp(c->method, "GET") == 0 ||
					strcmp(c->method, "DELETE") == 0,
			  .once = c->once,
			  .stop_fd = c->stop_fd};
	struct kube_status s;
	int rc = try_all(a, &call, &t, ret, &s, e);

	if (c->status)
		*c->status = s;
	return rc;
}
