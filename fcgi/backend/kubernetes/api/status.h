/* SPDX-License-Identifier: MIT */
#ifndef BACKEND_KUBERNETES_API_STATUS_H
#define BACKEND_KUBERNETES_API_STATUS_H

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/*
 * What an API server says when it refuses: a `kind: Status` or plain text, as a
 * kind that code decides on and one line of words for people, the cluster's own.
 * Pure; what comes in is hostile.
 */
enum kube_reason {
	KUBE_OTHER,
	KUBE_UNAUTHORIZED, /* 401 */
	KUBE_FORBIDDEN,    /* 403: a role lacks a verb; the words say which, where */
	KUBE_QUOTA,        /* 403: a ResourceQuota is full, or demands limits */
	KUBE_LIMIT_RANGE,  /* 403: a LimitRange does not allow it */
	KUBE_POD_SECURITY, /* 403: the namespace's Pod Security level does not */
	KUBE_ADMISSION,    /* 403 and others: another admission plugin or a webhook */
	KUBE_NOT_FOUND,    /* 404 */
	KUBE_NO_NAMESPACE, /* 404, and what is missing is the namespace */
	KUBE_EXISTS,       /* 409 AlreadyExists */
	KUBE_CONFLICT,     /* 409: changed meanwhile, other uid */
	KUBE_EXPIRED,      /* 410: the resourceVersion or continue is too old */
	KUBE_TOO_LARGE,    /* 413 */
	KUBE_INVALID,      /* 400, 422 */
	KUBE_BUSY,         /* 429, 503, quota races: again after retry_after_ms */
	KUBE_TIMEOUT,      /* 504 and reason Timeout */
	KUBE_INTERNAL,     /* other 5xx */
	KUBE_EXIT,         /* the end of an exec: the program ended with exit_code */
	KUBE_REASON_COUNT
};

struct kube_status {
	int code;
	enum kube_reason reason;
	int64_t retry_after_ms; /* 0: it said none */
	int exit_code;          /* KUBE_EXIT; else 0 */
	char words[440];        /* one line of printable text, never empty */
};

/*
 * An answer of status `code` with this body; retry_after_s is the header's, 0 none.
 * Always fills *ret.
 */
void kube_status_parse(int code, struct str body, int64_t retry_after_s,
		       struct kube_status *ret);

/*
 * A Status object, as an ERROR event of a watch or the last words of an exec have.
 * True: it says Success.
 */
bool kube_status_read(const json_t *status, struct kube_status *ret);

/*
 * As an error: its words, and the kind ERR_NOT_FOUND, ERR_CONFLICT (exists,
 * conflict), ERR_LIMIT (quota), ERR_BUSY, ERR_TIMEOUT or ERR_BACKEND. -1.
 */
int kube_status_err(const struct kube_status *s, struct err *e);

#endif
