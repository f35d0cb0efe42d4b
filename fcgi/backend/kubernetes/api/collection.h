/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_API_COLLECTION_H
#define BACKEND_KUBERNETES_API_COLLECTION_H

#include "backend/kubernetes/api/api.h"

/*
 * All objects of a collection, and what becomes of them: lists and single watches.
 * follow.h keeps a list up to date by these. Any thread.
 */
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
	bool once;          /* no request is repeated: the caller repeats the list */
	int64_t timeout_ms; /* of each request; 0: 30 s */
	const int *stop_fd; /* readable: ends it at once, ERR_BUSY; NULL: none */
	struct kube_status *status; /* a refusal's details; NULL: none */
};
int kube_list(struct kube_api *a, const struct kube_list *l,
	      char ret_version[static KUBE_VERSION_MAX], struct err *e);

enum kube_event { KUBE_ADDED, KUBE_MODIFIED, KUBE_DELETED, KUBE_BOOKMARK };

/*
 * One watch, from `version` on, until the server ends it (about five minutes: 0, go
 * on from version, which is kept up to date) or *stop_fd is readable (0). -1 with
 * status->reason KUBE_EXPIRED: list again. -1 otherwise: no answer, a refusal, or a
 * stream that broke; go on from version after a pause. Bookmarks are told too.
 */
struct kube_watch {
	const char *path, *label_selector;
	const int *stop_fd; /* NULL: none */
	int (*event)(void *arg, enum kube_event what, json_t *object, struct err *e);
	void *arg;
	struct kube_status *status;
};
int kube_watch(struct kube_api *a, const struct kube_watch *w,
	       char version[static KUBE_VERSION_MAX], struct err *e);

#endif
