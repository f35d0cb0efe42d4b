/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_API_API_H
#define BACKEND_KUBERNETES_API_API_H

#include <jansson.h>
#include <stdbool.h>

#include "backend/kubernetes/api/credentials.h"
#include "backend/kubernetes/api/status.h"
#include "base/err.h"

/*
 * Requests to an API server, by HTTP with connections used again. Any thread; calls
 * block, each within its time limit.
 */
struct kube_api;

/* Reaches nothing yet. Takes no copy of args->conf. */
int kube_api_open(const struct kube_credentials_args *args, struct kube_api **ret,
		  struct err *e);

/* The server ends: nobody waits for a credential plugin any more. */
void kube_api_stop(struct kube_api *a);

/* No call may be under way. NULL is fine. */
void kube_api_close(struct kube_api *a);

struct kube_credentials *kube_api_credentials(struct kube_api *a);
const char *kube_api_namespace(const struct kube_api *a);

/* For how long calls are tried again and again at most; 30 s unless set. */
void kube_api_set_patience(struct kube_api *a, int64_t ms);

/*
 * A path below the namespace of sandboxes, to free(): kube_path(a, "pods/%s", name)
 * is "/api/v1/namespaces/NS/pods/NAME". What is put in must be a checked name.
 */
char *kube_path(const struct kube_api *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Appends &key=value (or ?key=value to what has no '?'), percent-encoded. */
void kube_query_add(struct buf *path, const char *key, const char *value);

/*
 * One request, for lists and watches; c without our login and path, which are put
 * to it. 0: an answer, of any status. One that is not taken (401) is made once more
 * when there is a newer login. -1: no answer, or none that is whole, with words on
 * where it was looked for; ERR_BUSY: stopped by c->stop_fd.
 */
int kube_attempt(struct kube_api *a, const struct http_call *c, struct http_answer *ret,
		 struct err *e);

/* The same for a request that leaves HTTP; *refusal: an answer that does not. */
int kube_upgrade(struct kube_api *a, const struct http_upgrade *u, struct hijack **ret,
		 struct http_answer *refusal, struct err *e);

/*
 * What an answer of 300 or more to a request means: *ret (may be NULL) and e, as of
 * kube_status_err(); a 403 has words on what a role must allow. -1.
 */
int kube_refusal(const char *method, const char *path, const struct http_answer *answer,
		 struct kube_status *ret, struct err *e);

struct kube_call {
	const char *method;
	const char *path; /* from '/', with its query */
	const json_t *json;
	const char *content_type; /* of json; NULL: application/json */
	int64_t timeout_ms;       /* of all tries together; 0: 30 s */
	/*
	 * A repeat does no harm, so a connection that broke and 5xx are tried again
	 * with growing pauses. GET and DELETE are always; a POST that creates by name
	 * may be, when the caller takes KUBE_EXISTS for "it may have been me" and
	 * looks. 429 and 401 come before anything was done: any call is tried again.
	 */
	bool may_repeat;
	bool once;                  /* never again: the caller does that */
	const int *stop_fd;         /* readable: ends it at once, ERR_BUSY; NULL: none */
	struct kube_status *status; /* filled with a refusal's details; NULL: none */
};

/*
 * *ret (may be NULL) is the answer's JSON object; the caller's. -1: a refusal as of
 * kube_status_err() (status->code > 0), or no answer (status->code == 0): then the
 * words say where the server was looked for and what is wrong.
 */
int kube_call(struct kube_api *a, const struct kube_call *c, json_t **ret, struct err *e);

#endif
