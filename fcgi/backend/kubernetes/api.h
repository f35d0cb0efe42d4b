/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_API_H
#define BACKEND_KUBERNETES_API_H

#include <jansson.h>
#include <stdbool.h>

#include "backend/kubernetes/credentials.h"
#include "backend/kubernetes/status.h"
#include "base/err.h"

/*
 * An API server: single requests, lists and watches, by HTTP with connections used
 * again. Any thread; calls block, each within its time limit. follow.h keeps a list
 * up to date by these.
 */
struct kube_api;

/* Reaches nothing yet. Takes no copy of args->conf. */
int kube_api_open(const struct kube_credentials_args *args, struct kube_api **ret,
		  struct err *e);

/* No call may be under way. NULL is fine. */
void kube_api_close(struct kube_api *a);

struct kube_credentials *kube_api_credentials(struct kube_api *a);
const char *kube_api_namespace(const struct kube_api *a);

/*
 * A path below the namespace of sandboxes, to free(): kube_path(a, "pods/%s", name)
 * is "/api/v1/namespaces/NS/pods/NAME". What is put in must be a checked name.
 */
char *kube_path(const struct kube_api *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Appends &key=value (or ?key=value to what has no '?'), percent-encoded. */
void kube_query_add(struct buf *path, const char *key, const char *value);

struct kube_call {
	const char *method;
	const char *path; /* from '/', with its query */
	const json_t *json;
	const char *content_type; /* of json; NULL: application/json */
	int64_t timeout_ms;       /* of all tries together; 0: 30 s */
	/*
	 * A repeat does no harm, so a connection that broke, 429 (which always comes
	 * before anything was done) and 5xx are tried again with growing pauses.
	 * GET and DELETE are; a POST that creates by name is, when the caller takes
	 * KUBE_EXISTS for "it may have been me" and looks.
	 */
	bool may_repeat;
	struct kube_status *status; /* filled with a refusal's details; NULL: none */
};

/*
 * *ret (may be NULL) is the answer's JSON object; the caller's. -1: a refusal as of
 * kube_status_err() (status->code > 0), or no answer (status->code == 0): then the
 * words say where the server was looked for and what is wrong.
 */
int kube_call(struct kube_api *a, const struct kube_call *c, json_t **ret, struct err *e);

enum { KUBE_VERSION_MAX = 128 }; /* a resourceVersion; opaque */

/*
 * All objects of a collection, page by page. item() is called for each, borrowed;
 * -1 with e filled ends it. begin() is called before the first page, again when the
 * list had to start anew because it took so long that its snapshot expired: what
 * was told before is void then.
 */
struct kube_list {
	const char *path;           /* may have a query */
	const char *label_selector; /* NULL: none */
	void (*begin)(void *arg);   /* NULL: none */
	int (*item)(void *arg, json_t *object, struct err *e);
	void *arg;
	struct kube_status *status; /* as above */
};
int kube_list(struct kube_api *a, const struct kube_list *l,
	      char ret_version[static KUBE_VERSION_MAX], struct err *e);

enum kube_event { KUBE_ADDED, KUBE_MODIFIED, KUBE_DELETED, KUBE_BOOKMARK };

/*
 * One watch, from `version` on, until the server ends it (about five minutes: 0, go
 * on from version, which is kept up to date) or stop_fd is readable (0). -1 with
 * status->reason KUBE_EXPIRED: list again. -1 otherwise: no answer, a refusal, or a
 * stream that broke; go on from version after a pause. Bookmarks are told too.
 */
struct kube_watch {
	const char *path, *label_selector;
	int stop_fd; /* -1: none */
	int (*event)(void *arg, enum kube_event what, json_t *object, struct err *e);
	void *arg;
	struct kube_status *status;
};
int kube_watch(struct kube_api *a, const struct kube_watch *w,
	       char version[static KUBE_VERSION_MAX], struct err *e);

#endif
