/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/api/collection.h"

#include <stdio.h>
#include <string.h>

#include "backend/kubernetes/api/jsonstream.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/mem.h"

enum {
	PAGE = 250, /* objects; fewer when so many are more than an answer may be */
	PAGE_PART = 10,
	LIST_MAX = 200000,      /* objects, and pages of none; a list must end */
	PATH_MAX_BYTES = 16384, /* a continue token has up to some kilobytes */
	RESTARTS = 3,
	WATCH_S = 290,
	/* Bookmarks come about every minute; silence longer than this is no answer,
	 * and neither is a trickle that goes on after the end. */
	WATCH_IDLE_MS = 150000,
	WATCH_MAX_MS = (WATCH_S + 60) * 1000,
};

static const char *version_of(const json_t *object)
{
	const char *v =
		json_get_string(json_object_get(object, "metadata"), "resourceVersion");

	return v && *v && strlen(v) < KUBE_VERSION_MAX ? v : NULL;
}

static void set_version(char version[static KUBE_VERSION_MAX], const char *v)
{
	snprintf(version, KUBE_VERSION_MAX, "%s", v);
}

/* ---- lists */

static int read_items(const struct kube_list *l, json_t *page, struct err *e)
{
	json_t *items = json_object_get(page, "items");
	size_t i;

	if (!json_is_array(items) && items && !json_is_null(items))
		return err_set(e, ERR_BACKEND, "the API server's list has no items");
	for (i = 0; i < json_array_size(items); i++)
		if (l->item(l->arg, json_array_get(items, i), e) < 0)
			return -1;
	return 0;
}

/* Where a list is. */
struct place {
	struct buf token; /* "" at first and after the last page */
	int page;
	size_t told;
};

static int ask_page(struct kube_api *a, const struct kube_list *l, const struct place *at,
		    json_t **ret, struct kube_status *s, struct err *e)
{
	AUTO_BUF path = BUF_INIT(PATH_MAX_BYTES);
	struct kube_call c = {.method = "GET",
			      .once = l->once,
			      .timeout_ms = l->timeout_ms,
			      .stop_fd = l->stop_fd,
			      .status = s};

	buf_puts(&path, l->path);
	if (l->label_selector)
		kube_query_add(&path, "labelSelector", l->label_selector);
	buf_printf(&path, "%climit=%d", strchr(path.p, '?') ? '&' : '?', at->page);
	if (at->token.len > 0)
		kube_query_add(&path, "continue", at->token.p);
	if (!buf_ok(&path))
		return err_set(e, ERR_BACKEND, "a continue token that is too long");
	c.path = path.p;
	return kube_call(a, &c, ret, e);
}

/* Memory has a bound: pages that are too large are asked for in smaller ones. */
static int get_page(struct kube_api *a, const struct kube_list *l, struct place *at,
		    json_t **ret, struct kube_status *s, struct err *e)
{
	struct err why = ERR_INIT;

	while (ask_page(a, l, at, ret, s, &why) < 0) {
		if (why.kind != ERR_LIMIT || s->code != 0 || at->page == 1) {
			*e = why;
			return -1;
		}
		at->page = at->page > PAGE_PART ? at->page / PAGE_PART : 1;
		why = (struct err)ERR_INIT;
	}
	return 0;
}

static int read_page(struct kube_api *a, const struct kube_list *l, struct place *at,
		     char ret_version[static KUBE_VERSION_MAX], struct kube_status *s,
		     struct err *e)
{
	AUTO_JSON *page = NULL;
	const char *next, *version;

	if (get_page(a, l, at, &page, s, e) < 0)
		return -1;
	version = version_of(page);
	if (!version)
		return err_set(e, ERR_BACKEND, "the API server's list has no version");
	set_version(ret_version, version);
	next = json_get_string(json_object_get(page, "metadata"), "continue");
	at->token.len = 0;
	buf_puts(&at->token, next ? next : "");
	at->told += 1 + json_array_size(json_object_get(page, "items"));
	if (at->told > LIST_MAX || !buf_ok(&at->token))
		return err_set(e, ERR_BACKEND, "the API server's list does not end");
	return read_items(l, page, e);
}

static int list_once(struct kube_api *a, const struct kube_list *l,
		     char ret_version[static KUBE_VERSION_MAX], struct kube_status *s,
		     struct err *e)
{
	struct place at = {.token = BUF_INIT(PATH_MAX_BYTES), .page = PAGE};
	int rc;

	if (l->begin)
		l->begin(l->arg);
	do
		rc = read_page(a, l, &at, ret_version, s, e);
	while (rc == 0 && at.token.len > 0);
	buf_release(&at.token);
	return rc;
}

int kube_list(struct kube_api *a, const struct kube_list *l,
	      char ret_version[static KUBE_VERSION_MAX], struct err *e)
{
	struct kube_status s = {0};
	struct err why = ERR_INIT;
	int i, rc = -1;

	for (i = 0; i < RESTARTS && rc < 0; i++) {
		why = (struct err)ERR_INIT;
		rc = list_once(a, l, ret_version, &s, &why);
		if (s.reason != KUBE_EXPIRED)
			break;
	}
	if (l->status)
		*l->status = s;
	if (rc < 0)
		*e = why;
	return rc;
}

/* ---- watches */

struct watching {
	const struct kube_watch *w;
	char *version;
	struct jsonstream stream;
	struct kube_status status;
	struct err failed; /* what an event was, or made of it */
};

static const char *const event_names[] = {[KUBE_ADDED] = "ADDED",
					  [KUBE_MODIFIED] = "MODIFIED",
					  [KUBE_DELETED] = "DELETED",
					  [KUBE_BOOKMARK] = "BOOKMARK"};

static int take_error(struct watching *g, const json_t *object, struct err *e)
{
	kube_status_read(object, &g->status);
	return kube_status_err(&g->status, e);
}

static int take_event(void *arg, const char *p, size_t n, struct err *e)
{
	struct watching *g = arg;
	AUTO_JSON *event = NULL;
	json_t *object;
	const char *type, *version;
	size_t i;

	if (json_parse(p, n, &event, e) < 0)
		return -1;
	type = json_get_string(event, "type");
	object = json_object_get(event, "object");
	if (!type || !json_is_object(object))
		return err_set(e, ERR_BACKEND, "an event without type and object");
	if (strcmp(type, "ERROR") == 0)
		return take_error(g, object, e);
	for (i = 0; i < sizeof event_names / sizeof *event_names; i++)
		if (strcmp(type, event_names[i]) == 0)
			break;
	version = version_of(object);
	if (i == sizeof event_names / sizeof *event_names || !version)
		return err_set(e, ERR_BACKEND, "an event of no known type or version");
	if (g->w->event(g->w->arg, (enum kube_event)i, object, e) < 0)
		return -1;
	set_version(g->version, version);
	return 0;
}

static int on_data(void *arg, const char *p, size_t n, struct err *e)
{
	struct watching *g = arg;

	if (jsonstream_feed(&g->stream, p, n, take_event, g, e) == 0)
		return 0;
	g->failed = *e;
	return -1;
}

static int watch_path(const struct kube_watch *w, const char *version, struct buf *path,
		      struct err *e)
{
	buf_puts(path, w->path);
	if (w->label_selector)
		kube_query_add(path, "labelSelector", w->label_selector);
	kube_query_add(path, "watch", "1");
	kube_query_add(path, "allowWatchBookmarks", "true");
	kube_query_add(path, "resourceVersion", version);
	buf_printf(path, "&timeoutSeconds=%d", WATCH_S);
	return buf_ok(path) ? 0 : err_set(e, ERR_LIMIT, "a path that is too long");
}

static int watch_once(struct kube_api *a, struct watching *g, struct err *e)
{
	AUTO_BUF path = BUF_INIT(PATH_MAX_BYTES);
	AUTO_HTTP_ANSWER answer = HTTP_ANSWER_INIT;
	struct http_call call = {.method = "GET",
				 .idle_ms = WATCH_IDLE_MS,
				 .timeout_ms = WATCH_MAX_MS,
				 .stop_fd = g->w->stop_fd,
				 .on_data = on_data,
				 .arg = g};
	struct err why = ERR_INIT;

	if (watch_path(g->w, g->version, &path, e) < 0)
		return -1;
	call.path = path.p;
	if (kube_attempt(a, &call, &answer, &why) < 0) {
		if (g->failed.kind == ERR_NONE && why.kind == ERR_BUSY)
			return 0; /* stopped */
		*e = g->failed.kind != ERR_NONE ? g->failed : why;
		return -1;
	}
	if (answer.status >= 200 && answer.status < 300)
		return 0;
	return kube_refusal(call.method, call.path, &answer, &g->status, e);
}

int kube_watch(struct kube_api *a, const struct kube_watch *w,
	       char version[static KUBE_VERSION_MAX], struct err *e)
{
	struct watching g = {.w = w, .version = version, .stream = JSONSTREAM_INIT};
	int rc = watch_once(a, &g, e);

	jsonstream_release(&g.stream);
	if (w->status)
		*w->status = g.status;
	return rc;
}
