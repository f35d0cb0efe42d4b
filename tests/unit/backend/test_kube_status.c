/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "backend/kubernetes/api/status.h"
#include "base/json.h"

#define STATUS(message, reason, details, code)                                           \
	"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"         \
	"\"Failure\",\"message\":\"" message "\",\"reason\":\"" reason                   \
	"\",\"details\":{" details "},\"code\":" #code "}"

/* Shapes of real answers. */
static const struct {
	int code;
	const char *body;
	enum kube_reason reason;
	enum err_kind kind;
	const char *words;
} answers[] = {
	{401, STATUS("Unauthorized", "Unauthorized", "", 401), KUBE_UNAUTHORIZED,
	 ERR_BACKEND, "does not accept our credentials: Unauthorized"},
	{403,
	 STATUS("pods is forbidden: User \\\"system:serviceaccount:a:b\\\" cannot "
		"create resource \\\"pods\\\" in API group \\\"\\\" in the namespace "
		"\\\"sbx\\\"",
		"Forbidden", "\"kind\":\"pods\"", 403),
	 KUBE_FORBIDDEN, ERR_BACKEND, "cannot create resource \"pods\""},
	{403,
	 STATUS("forbidden: User \\\"x\\\" cannot get path \\\"/version\\\"", "Forbidden",
		"", 403),
	 KUBE_FORBIDDEN, ERR_BACKEND, "cannot get path"},
	{403,
	 STATUS("pods \\\"sbx-1\\\" is forbidden: exceeded quota: q, requested: pods=1, "
		"used: pods=5, limited: pods=5",
		"Forbidden", "\"name\":\"sbx-1\",\"kind\":\"pods\"", 403),
	 KUBE_QUOTA, ERR_LIMIT, "exceeded quota: q"},
	{403,
	 STATUS("pods \\\"x\\\" is forbidden: failed quota: q: must specify limits.cpu "
		"for: c",
		"Forbidden", "", 403),
	 KUBE_QUOTA, ERR_LIMIT, "must specify limits.cpu"},
	{403,
	 STATUS("pods \\\"x\\\" is forbidden: maximum cpu usage per Container is 1, but "
		"limit is 2",
		"Forbidden", "", 403),
	 KUBE_LIMIT_RANGE, ERR_BACKEND, "but limit is 2"},
	{403,
	 STATUS("pods \\\"x\\\" is forbidden: violates PodSecurity "
		"\\\"restricted:latest\\\": allowPrivilegeEscalation != false",
		"Forbidden", "", 403),
	 KUBE_POD_SECURITY, ERR_BACKEND, "restricted:latest"},
	{403,
	 STATUS("admission webhook \\\"w.x\\\" denied the request: you cannot exceeded",
		"Forbidden", "", 403),
	 KUBE_ADMISSION, ERR_BACKEND, "denied the request"},
	{403,
	 STATUS("pods \\\"x\\\" is forbidden: error looking up service account "
		"sbx/default: serviceaccount \\\"default\\\" not found",
		"Forbidden", "", 403),
	 KUBE_ADMISSION, ERR_BACKEND, "serviceaccount \"default\" not found"},
	{422,
	 STATUS("pods \\\"x\\\" is forbidden: ValidatingAdmissionPolicy 'p' with "
		"binding 'b' denied request: no",
		"Invalid", "", 422),
	 KUBE_ADMISSION, ERR_BACKEND, "denied request: no"},
	{404, STATUS("pods \\\"x\\\" not found", "NotFound", "\"kind\":\"pods\"", 404),
	 KUBE_NOT_FOUND, ERR_NOT_FOUND, "pods \"x\" not found"},
	{404,
	 STATUS("namespaces \\\"sbx\\\" not found", "NotFound",
		"\"name\":\"sbx\",\"kind\":\"namespaces\"", 404),
	 KUBE_NO_NAMESPACE, ERR_BACKEND, "namespaces \"sbx\" not found"},
	{409, STATUS("pods \\\"x\\\" already exists", "AlreadyExists", "", 409),
	 KUBE_EXISTS, ERR_CONFLICT, "already exists"},
	{409, STATUS("the UID in the precondition differs", "Conflict", "", 409),
	 KUBE_CONFLICT, ERR_CONFLICT, "UID"},
	{409,
	 STATUS("Operation cannot be fulfilled on resourcequotas \\\"q\\\"", "Conflict",
		"\"kind\":\"resourcequotas\"", 409),
	 KUBE_BUSY, ERR_BUSY, "resourcequotas"},
	{410, STATUS("too old resource version: 5 (907)", "Expired", "", 410),
	 KUBE_EXPIRED, ERR_BACKEND, "too old"},
	{413, STATUS("limit is 3145728", "RequestEntityTooLarge", "", 413),
	 KUBE_TOO_LARGE, ERR_BACKEND, "3145728"},
	{422,
	 STATUS("Pod \\\"x\\\" is invalid: spec.containers[0].image: Required value",
		"Invalid", "", 422),
	 KUBE_INVALID, ERR_BACKEND, "Required value"},
	{500, STATUS("Internal error occurred: x", "InternalError", "", 500),
	 KUBE_INTERNAL, ERR_BACKEND, "API server failed: Internal error"},
	{504, STATUS("Timeout: request did not complete", "Timeout", "", 504),
	 KUBE_TIMEOUT, ERR_TIMEOUT, "too slow"},
	{429, "Too many requests, please try again later.\n", KUBE_BUSY, ERR_BUSY,
	 "busy: Too many requests, please try again later."},
	{403, "", KUBE_FORBIDDEN, ERR_BACKEND, "it answered 403 without a word"},
	{502, "<html><h1>502 Bad Gateway</h1>", KUBE_INTERNAL, ERR_BACKEND,
	 "502 with a page of HTML"},
	{404, "404 page not found\n", KUBE_NOT_FOUND, ERR_NOT_FOUND, "404 page not"},
	{400, "{\"kind\":\"Pod\"}", KUBE_INVALID, ERR_BACKEND, "{\"kind\":\"Pod\"}"},
	{418, "tea", KUBE_OTHER, ERR_BACKEND, "tea"},
};

static void refusals_are_told_apart_and_keep_the_clusters_words(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof answers / sizeof *answers; i++) {
		struct kube_status s;
		struct err e = ERR_INIT;

		kube_status_parse(answers[i].code, str_of(answers[i].body), 0, &s);
		if (s.reason != answers[i].reason || !strstr(s.words, answers[i].words))
			fail_msg("%s: %d %s", answers[i].body, (int)s.reason, s.words);
		assert_int_equal(s.code, answers[i].code);
		assert_int_equal(kube_status_err(&s, &e), -1);
		assert_int_equal(e.kind, answers[i].kind);
		assert_string_equal(e.msg, s.words);
	}
}

static void the_time_to_wait_is_the_bodys_or_the_headers(void **state)
{
	static const char body[] =
		STATUS("storage is (re)initializing", "TooManyRequests",
		       "\"retryAfterSeconds\":2", 429);
	struct kube_status s;

	(void)state;
	kube_status_parse(429, str_of(body), 7, &s);
	assert_int_equal(s.retry_after_ms, 2000);
	kube_status_parse(429, str_of("later"), 7, &s);
	assert_int_equal(s.retry_after_ms, 7000);
	kube_status_parse(503, str_of("later"), 1 << 30, &s);
	assert_int_equal(s.retry_after_ms, 3600000);
}

static bool read_text(const char *text, struct kube_status *s)
{
	AUTO_JSON *v = NULL;
	struct err e = ERR_INIT;

	assert_int_equal(json_parse(text, strlen(text), &v, &e), 0);
	return kube_status_read(v, s);
}

static void the_end_of_an_exec_has_its_exit_code(void **state)
{
	struct kube_status s;

	(void)state;
	assert_true(read_text("{\"metadata\":{},\"status\":\"Success\"}", &s));
	assert_false(read_text(
		"{\"metadata\":{},\"status\":\"Failure\",\"message\":\"command "
		"terminated with non-zero exit code\",\"reason\":\"NonZeroExitCode\","
		"\"details\":{\"causes\":[{\"reason\":\"ExitCode\",\"message\":\"3\"}]}}",
		&s));
	assert_int_equal(s.reason, KUBE_EXIT);
	assert_int_equal(s.exit_code, 3);
	assert_false(read_text("{\"status\":\"Failure\",\"reason\":\"InternalError\","
			       "\"code\":500,\"message\":\"no such file\"}",
			       &s));
	assert_int_equal(s.reason, KUBE_INTERNAL);
	assert_non_null(strstr(s.words, "no such file"));
	assert_false(read_text("[1]", &s));
	assert_false(read_text("{\"status\":7,\"message\":8,\"details\":9}", &s));
	assert_string_not_equal(s.words, "");
}

static void words_are_one_printable_line_of_bounded_length(void **state)
{
	AUTO_BUF much = BUF_INIT(10000);
	struct kube_status s;
	size_t i;

	(void)state;
	kube_status_parse(500, str_of("a\r\n\tb\x1b[31m\xff"), 0, &s);
	assert_string_equal(s.words, "the API server failed: a   b [31m?");
	kube_status_parse(400, (struct str){"\0\0 x\0y", 6}, 0, &s);
	assert_string_equal(s.words, "   x y");
	kube_status_parse(400, (struct str){"\0\0\xc4", 3}, 0, &s);
	assert_string_equal(s.words, "it answered 400 without a word");
	for (i = 0; i < 3000; i++)
		buf_puts(&much, "\xc3\xa9");
	kube_status_parse(400, (struct str){much.p, much.len}, 0, &s);
	assert_in_range(strlen(s.words), sizeof s.words - 3, sizeof s.words - 1);
	assert_int_equal(strlen(s.words) % 2, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals_are_told_apart_and_keep_the_clusters_words),
		cmocka_unit_test(the_time_to_wait_is_the_bodys_or_the_headers),
		cmocka_unit_test(the_end_of_an_exec_has_its_exit_code),
		cmocka_unit_test(words_are_one_printable_line_of_bounded_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
