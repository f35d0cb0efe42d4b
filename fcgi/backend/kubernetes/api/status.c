/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/api/status.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "base/utf8.h"

enum { RETRY_MAX_S = 3600 };

/* metav1.StatusReason; the code decides where the reason is none of these. */
static const struct {
	const char *name;
	enum kube_reason reason;
} by_name[] = {
	{"Unauthorized", KUBE_UNAUTHORIZED}, {"Forbidden", KUBE_FORBIDDEN},
	{"NotFound", KUBE_NOT_FOUND},        {"AlreadyExists", KUBE_EXISTS},
	{"Conflict", KUBE_CONFLICT},         {"Gone", KUBE_EXPIRED},
	{"Expired", KUBE_EXPIRED},           {"RequestEntityTooLarge", KUBE_TOO_LARGE},
	{"Invalid", KUBE_INVALID},           {"BadRequest", KUBE_INVALID},
	{"TooManyRequests", KUBE_BUSY},      {"ServiceUnavailable", KUBE_BUSY},
	{"Timeout", KUBE_TIMEOUT},           {"ServerTimeout", KUBE_TIMEOUT},
	{"InternalError", KUBE_INTERNAL},    {"NonZeroExitCode", KUBE_EXIT},
};

static const struct {
	int code;
	enum kube_reason reason;
} by_code[] = {
	{400, KUBE_INVALID},   {401, KUBE_UNAUTHORIZED}, {403, KUBE_FORBIDDEN},
	{404, KUBE_NOT_FOUND}, {409, KUBE_CONFLICT},     {410, KUBE_EXPIRED},
	{413, KUBE_TOO_LARGE}, {422, KUBE_INVALID},      {429, KUBE_BUSY},
	{503, KUBE_BUSY},      {504, KUBE_TIMEOUT},
};

/*
 * Admission says 403 Forbidden as RBAC does; only the text tells them apart
 * (plugin/pkg/admission, pod-security-admission). RBAC's is the last: the others
 * may quote anything.
 */
static const struct {
	const char *part;
	enum kube_reason reason;
} by_text[] = {
	{"violates PodSecurity", KUBE_POD_SECURITY},
	{"exceeded quota:", KUBE_QUOTA},
	{"failed quota:", KUBE_QUOTA},
	{"status unknown for quota:", KUBE_QUOTA},
	{" usage per Container is ", KUBE_LIMIT_RANGE},
	{" usage per Pod is ", KUBE_LIMIT_RANGE},
	{" usage per PersistentVolumeClaim is ", KUBE_LIMIT_RANGE},
	{" limit to request ratio per ", KUBE_LIMIT_RANGE},
	{"admission webhook ", KUBE_ADMISSION},
	{"ValidatingAdmissionPolicy ", KUBE_ADMISSION},
	{" cannot ", KUBE_FORBIDDEN},
};

static const char *const leads[KUBE_REASON_COUNT] = {
	[KUBE_UNAUTHORIZED] = "the cluster does not accept our credentials: ",
	[KUBE_BUSY] = "the API server is busy: ",
	[KUBE_INTERNAL] = "the API server failed: ",
	[KUBE_TIMEOUT] = "the API server was too slow: ",
};

/* ---- words */

static bool is_blank(struct str s)
{
	size_t i;

	for (i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] > 0x20)
			return false;
	return true;
}

static void copy_words(struct kube_status *s, const char *lead, struct str text)
{
	size_t at = (size_t)snprintf(s->words, sizeof s->words, "%s", lead), i;
	size_t room = sizeof s->words - 1 - at, n = text.n < room ? text.n : room;

	for (i = 0; i < n; i++, at++)
		s->words[at] = (unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f
				       ? ' '
				       : text.p[i];
	s->words[at] = '\0';
	utf8_settle(s->words);
}

/* One line of UTF-8; a cut spares no character, and what is left may be nothing. */
static void set_words(struct kube_status *s, struct str text)
{
	char none[48];

	if (!is_blank(text))
		copy_words(s, leads[s->reason] ? leads[s->reason] : "", text);
	if (!is_blank(str_of(s->words)))
		return;
	snprintf(none, sizeof none, "it answered %d without a word", s->code);
	copy_words(s, leads[s->reason] ? leads[s->reason] : "", str_of(none));
}

static void set_plain_words(struct kube_status *s, struct str body)
{
	char text[64];

	body = str_trim(body);
	if (body.n > 0 && body.p[0] == '<') {
		snprintf(text, sizeof text, "it answered %d with a page of HTML",
			 s->code);
		body = str_of(text);
	}
	set_words(s, body);
}

/* ---- what it means */

static enum kube_reason reason_of(const char *name, int code)
{
	size_t i;

	for (i = 0; name && i < sizeof by_name / sizeof *by_name; i++)
		if (strcmp(by_name[i].name, name) == 0)
			return by_name[i].reason;
	for (i = 0; i < sizeof by_code / sizeof *by_code; i++)
		if (by_code[i].code == code)
			return by_code[i].reason;
	return code >= 500 ? KUBE_INTERNAL : KUBE_OTHER;
}

static enum kube_reason refine(enum kube_reason r, const char *message)
{
	size_t i;

	if (r != KUBE_FORBIDDEN && r != KUBE_INVALID && r != KUBE_OTHER)
		return r;
	for (i = 0; i < sizeof by_text / sizeof *by_text; i++)
		if (strstr(message, by_text[i].part))
			return r == KUBE_FORBIDDEN || by_text[i].reason == KUBE_ADMISSION
				       ? by_text[i].reason
				       : r;
	return r == KUBE_FORBIDDEN ? KUBE_ADMISSION : r;
}

static int read_exit_code(const json_t *details)
{
	const json_t *causes = json_object_get(details, "causes");
	struct err ignored = ERR_INIT;
	const char *reason, *message;
	int64_t v;
	size_t i;

	for (i = 0; i < json_array_size(causes); i++) {
		reason = json_get_string(json_array_get(causes, i), "reason");
		message = json_get_string(json_array_get(causes, i), "message");
		if (reason && message && strcmp(reason, "ExitCode") == 0 &&
		    num_parse(message, 0, 255, &v, &ignored) == 0)
			return (int)v;
	}
	return -1;
}

static void set_retry(struct kube_status *s, int64_t seconds)
{
	if (seconds > 0)
		s->retry_after_ms =
			(seconds < RETRY_MAX_S ? seconds : RETRY_MAX_S) * 1000;
}

static void read_details(struct kube_status *s, const json_t *details)
{
	const char *kind = json_get_string(details, "kind");

	set_retry(s, json_integer_value(json_object_get(details, "retryAfterSeconds")));
	if (s->reason == KUBE_EXIT)
		s->exit_code = read_exit_code(details);
	if (s->reason == KUBE_NOT_FOUND && kind && strcmp(kind, "namespaces") == 0)
		s->reason = KUBE_NO_NAMESPACE;
	/* Two creations raced for the quota's counter: nothing was done. */
	if (s->reason == KUBE_CONFLICT && kind && strcmp(kind, "resourcequotas") == 0)
		s->reason = KUBE_BUSY;
}

static bool is_status(const json_t *v)
{
	const char *status = json_get_string(v, "status");

	return status &&
	       (strcmp(status, "Failure") == 0 || strcmp(status, "Success") == 0);
}

bool kube_status_read(const json_t *v, struct kube_status *ret)
{
	const char *message = json_get_string(v, "message");
	const char *name = json_get_string(v, "reason");
	json_int_t code = json_integer_value(json_object_get(v, "code"));
	struct kube_status s = {.code = code >= 100 && code <= 599 ? (int)code : 0};

	s.reason = refine(reason_of(name, s.code), message ? message : "");
	read_details(&s, json_object_get(v, "details"));
	set_words(&s, str_of(message && *message ? message
			     : name && *name     ? name
						 : "it says no reason"));
	*ret = s;
	return is_status(v) && strcmp(json_get_string(v, "status"), "Success") == 0;
}

void kube_status_parse(int code, struct str body, int64_t retry_after_s,
		       struct kube_status *ret)
{
	AUTO_JSON *v = NULL;
	struct err ignored = ERR_INIT;
	struct kube_status s = {.code = code, .reason = reason_of(NULL, code)};

	if (json_parse(body.p, body.n, &v, &ignored) == 0 && is_status(v)) {
		kube_status_read(v, &s);
		s.code = code;
	} else {
		set_plain_words(&s, body);
	}
	if (s.retry_after_ms == 0)
		set_retry(&s, retry_after_s);
	*ret = s;
}

int kube_status_err(const struct kube_status *s, struct err *e)
{
	static const enum err_kind kinds[KUBE_REASON_COUNT] = {
		[KUBE_NOT_FOUND] = ERR_NOT_FOUND, [KUBE_EXISTS] = ERR_CONFLICT,
		[KUBE_CONFLICT] = ERR_CONFLICT,   [KUBE_QUOTA] = ERR_LIMIT,
		[KUBE_BUSY] = ERR_BUSY,           [KUBE_TIMEOUT] = ERR_TIMEOUT,
	};
	enum err_kind kind = kinds[s->reason];

	return err_set(e, kind != ERR_NONE ? kind : ERR_BACKEND, "%s", s->words);
}
