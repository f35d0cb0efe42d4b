/* SPDX-License-Identifier: MIT */
#include "fakekube.h"

#include <poll.h>

#include "backend/kubernetes/api/api.h"
#include "base/clock.h"
#include "base/json.h"

enum { PATIENCE_MS = 60000 }; /* then it hangs */

/* A server, and us as a client of it. */
struct world {
	struct fakekube k;
	struct conf conf;
	struct kube_api *api;
};

static void world_enter(struct world *w)
{
	struct err e = ERR_INIT;

	w->conf.kubeconfig = fakekube_kubeconfig(&w->k);
	if (kube_api_open(&(struct kube_credentials_args){.conf = &w->conf}, &w->api,
			  &e) < 0)
		fail_msg("%s", e.msg);
}

static void world_open(struct world *w, const struct fakekube_step *steps)
{
	*w = (struct world){0};
	fakekube_start(&w->k, steps);
	world_enter(w);
}

static void world_close(struct world *w)
{
	kube_api_close(w->api);
	free(w->conf.kubeconfig);
	fakekube_stop(&w->k);
}

static int call(struct world *w, const char *method, const char *what, json_t **ret,
		struct kube_status *s, struct err *e)
{
	AUTO_FREE char *path = kube_path(w->api, "%s", what);
	AUTO_JSON *body = json_must(json_pack("{s:s}", "kind", "Pod"));
	struct kube_call c = {.method = method,
			      .path = path,
			      .json = strcmp(method, "POST") == 0 ? body : NULL,
			      .timeout_ms = PATIENCE_MS,
			      .status = s};

	return kube_call(w->api, &c, ret, e);
}

static void a_call_has_its_login_and_gives_the_answers_json(void **state)
{
	static const struct fakekube_step steps[] = {
		{.request = "POST /api/v1/namespaces/sbx/pods HTTP/1.1\r\n",
		 .status = 201,
		 .body = "{\"kind\":\"Pod\",\"x\":1}"},
		{0}};
	struct world w;
	AUTO_JSON *v = NULL;
	struct kube_status s;
	struct err e = ERR_INIT;

	(void)state;
	world_open(&w, steps);
	assert_int_equal(call(&w, "POST", "pods", &v, &s, &e), 0);
	assert_int_equal(json_integer_value(json_object_get(v, "x")), 1);
	assert_int_equal(s.code, 0);
	assert_non_null(strstr(w.k.log.p, "\r\nAuthorization: Bearer t\r\n"));
	assert_non_null(strstr(w.k.log.p, "\r\nContent-Type: application/json\r\n"));
	assert_non_null(strstr(w.k.log.p, "\r\nUser-Agent: mcp-sandboxd/"));
	assert_non_null(strstr(w.k.log.p, "\r\n\r\n{\"kind\":\"Pod\"}"));
	world_close(&w);
}

static void one_connection_carries_many_calls(void **state)
{
	static const struct fakekube_step steps[] = {
		{.request = "GET ", .times = -1, .body = "{}"}, {0}};
	struct world w;
	int i;

	(void)state;
	world_open(&w, steps);
	for (i = 0; i < 5; i++) {
		struct err e = ERR_INIT;

		assert_int_equal(call(&w, "GET", "pods/x", NULL, NULL, &e), 0);
	}
	assert_int_equal(w.k.connections, 1);
	world_close(&w);
}

static void queries_are_encoded(void **state)
{
	AUTO_BUF b = BUF_INIT(100);

	(void)state;
	buf_puts(&b, "/pods");
	kube_query_add(&b, "labelSelector", "a/b=c,d");
	kube_query_add(&b, "command", "x y&\xc3\xa9");
	assert_string_equal(b.p,
			    "/pods?labelSelector=a%2Fb%3Dc%2Cd&command=x%20y%26%C3%A9");
}

/* ---- repeats */

#define BUSY503 FAKEKUBE_STATUS(503, "ServiceUnavailable", "etcd is away")
#define DENIED                                                                           \
	FAKEKUBE_STATUS(403, "Forbidden",                                                \
			"pods is forbidden: User \\\"u\\\" cannot create resource "      \
			"\\\"pods\\\" in API group \\\"\\\"")

static const struct {
	const char *name, *method;
	struct fakekube_step first;
	int rc, requests;
} repeats[] = {
	{"GET, 503", "GET", {"", 503, NULL, BUSY503, 0, false, NULL, false}, 0, 2},
	{"GET, dropped", "GET", {"", 0, NULL, NULL, 0, true, NULL, false}, 0, 2},
	{"DELETE, dropped", "DELETE", {"", 0, NULL, NULL, 0, true, NULL, false}, 0, 2},
	{"DELETE, 500",
	 "DELETE",
	 {"", 500, NULL, FAKEKUBE_STATUS(500, "InternalError", "x"), 0, false, NULL,
	  false},
	 0,
	 2},
	{"GET, 504", "GET", {"", 504, NULL, "late", 0, false, NULL, false}, 0, 2},
	{"POST, 503", "POST", {"", 503, NULL, BUSY503, 0, false, NULL, false}, -1, 1},
	{"POST, dropped", "POST", {"", 0, NULL, NULL, 0, true, NULL, false}, -1, 1},
	{"POST, 429", "POST", {"", 429, NULL, "Too many", 0, false, NULL, false}, 0, 2},
	{"POST, quota race",
	 "POST",
	 {"", 409, NULL,
	  "{\"status\":\"Failure\",\"reason\":\"Conflict\",\"details\":{\"kind\":"
	  "\"resourcequotas\"}}",
	  0, false, NULL, false},
	 0,
	 2},
	{"POST, 403", "POST", {"", 403, NULL, DENIED, 0, false, NULL, false}, -1, 1},
	{"GET, 404",
	 "GET",
	 {"", 404, NULL, FAKEKUBE_STATUS(404, "NotFound", "x"), 0, false, NULL, false},
	 -1,
	 1},
};

static void only_what_a_repeat_does_not_harm_is_repeated(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof repeats / sizeof *repeats; i++) {
		struct fakekube_step steps[] = {
			repeats[i].first, {.request = "", .body = "{}"}, {0}};
		struct world w;
		struct kube_status s;
		struct err e = ERR_INIT;

		world_open(&w, steps);
		if (call(&w, repeats[i].method, "pods", NULL, &s, &e) != repeats[i].rc)
			fail_msg("%s: %s", repeats[i].name, e.msg);
		if (fakekube_saw(&w.k, repeats[i].method) != repeats[i].requests)
			fail_msg("%s: %s", repeats[i].name, w.k.log.p);
		assert_int_equal(repeats[i].rc == 0, s.code == 0 && e.kind == ERR_NONE);
		world_close(&w);
	}
}

static void the_server_says_how_long_to_wait(void **state)
{
	static const struct fakekube_step steps[] = {
		{.request = "GET ",
		 .status = 429,
		 .headers = "Content-Type: text/plain\r\nRetry-After: 1\r\n",
		 .body = "Too many requests, please try again later.\n"},
		{.request = "GET ", .body = "{}"},
		{0}};
	struct world w;
	struct err e = ERR_INIT;
	int64_t began;

	(void)state;
	world_open(&w, steps);
	began = clock_mono_ms();
	assert_int_equal(call(&w, "GET", "pods", NULL, NULL, &e), 0);
	assert_true(clock_mono_ms() - began >= 1000);
	world_close(&w);
}

static void a_wait_beyond_the_calls_time_is_not_begun(void **state)
{
	static const struct fakekube_step steps[] = {{.request = "GET ",
						      .status = 429,
						      .headers = "Retry-After: 3600\r\n",
						      .body = "busy"},
						     {0}};
	struct world w;
	struct kube_status s;
	struct err e = ERR_INIT;

	(void)state;
	world_open(&w, steps);
	assert_int_equal(call(&w, "GET", "pods", NULL, &s, &e), -1);
	assert_int_equal(e.kind, ERR_BUSY);
	assert_int_equal(s.retry_after_ms, 3600000);
	world_close(&w);
}

static void be_silent(struct fakekube *k, int fd, const char *request)
{
	(void)k;
	(void)request;
	fakekube_wait_close(fd);
}

static void a_call_whose_time_is_over_is_not_waited_for(void **state)
{
	static const struct fakekube_step steps[] = {
		{.request = "GET ", .serve = be_silent, .times = -1}, {0}};
	struct kube_call c = {.method = "GET", .path = "/x", .timeout_ms = -1};
	struct world w;
	struct err e = ERR_INIT;

	(void)state;
	world_open(&w, steps);
	assert_int_equal(kube_call(w.api, &c, NULL, &e), -1);
	assert_int_equal(e.kind, ERR_TIMEOUT);
	world_close(&w);
}

/* ---- words */

static void a_missing_permission_names_verb_and_resource(void **state)
{
	static const struct {
		const char *method, *path, *words;
	} deeds[] = {
		{"POST", "/api/v1/namespaces/sbx/pods",
		 "a Role must allow create on pods in namespace sbx"},
		{"GET", "/api/v1/namespaces/sbx/pods?limit=5", "list on pods in"},
		{"GET", "/api/v1/namespaces/sbx/pods?watch=1", "watch on pods in"},
		{"GET", "/api/v1/namespaces/sbx/configmaps/a", "get on configmaps in"},
		{"DELETE", "/api/v1/namespaces/sbx/pods/a", "delete on pods in"},
		{"GET", "/api/v1/namespaces/sbx/pods/a/exec?command=x",
		 "get and create on pods/exec in namespace sbx"},
		{"GET", "/api/v1/nodes/n", "a ClusterRole must allow get on nodes"},
		{"GET", "/apis/apps/v1/namespaces/sbx/deployments/d",
		 "get on deployments in namespace sbx"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof deeds / sizeof *deeds; i++) {
		AUTO_HTTP_ANSWER a = {.status = 403, .body = BUF_INIT(1000)};
		struct kube_status s;
		struct err e = ERR_INIT;

		buf_puts(&a.body, DENIED);
		kube_refusal(deeds[i].method, deeds[i].path, &a, &s, &e);
		assert_int_equal(s.reason, KUBE_FORBIDDEN);
		assert_non_null(strstr(e.msg, "cannot create resource"));
		if (!strstr(e.msg, deeds[i].words))
			fail_msg("%s: %s", deeds[i].path, e.msg);
	}
}

static void a_server_that_is_away_is_said_with_where_it_was_looked_for(void **state)
{
	static const struct fakekube_step steps[] = {{0}};
	struct world w;
	struct kube_status s;
	struct err e = ERR_INIT;
	struct kube_call c = {
		.method = "POST", .path = "/x", .timeout_ms = PATIENCE_MS, .status = &s};

	(void)state;
	world_open(&w, steps);
	shutdown(w.k.listen_fd, SHUT_RDWR); /* nobody listens any more */
	assert_int_equal(kube_call(w.api, &c, NULL, &e), -1);
	assert_int_equal(e.kind, ERR_BACKEND);
	assert_int_equal(s.code, 0);
	assert_non_null(strstr(e.msg, "the API server at http://127.0.0.1:"));
	assert_non_null(strstr(e.msg, "(context c) is not reached: "));
	assert_non_null(strstr(e.msg, "refused"));
	world_close(&w);
}

static void *come_back(void *arg)
{
	poll(NULL, 0, 400);
	fakekube_listen(arg);
	return NULL;
}

static void a_server_that_restarts_is_waited_for_by_a_harmless_call(void **state)
{
	static const struct fakekube_step steps[] = {{.request = "GET ", .body = "{}"},
						     {0}};
	struct world w = {0};
	struct err e = ERR_INIT;
	pthread_t thread;

	(void)state;
	fakekube_bind(&w.k, steps); /* the port is its own, and nobody listens */
	world_enter(&w);
	assert_int_equal(pthread_create(&thread, NULL, come_back, &w.k), 0);
	if (call(&w, "GET", "pods", NULL, NULL, &e) < 0)
		fail_msg("%s", e.msg);
	pthread_join(thread, NULL);
	world_close(&w);
}

static void an_answer_that_is_no_json_is_refused(void **state)
{
	static const struct fakekube_step steps[] = {
		{.request = "GET ", .body = "<html>"}, {0}};
	struct world w;
	json_t *v = NULL;
	struct err e = ERR_INIT;

	(void)state;
	world_open(&w, steps);
	assert_int_equal(call(&w, "GET", "pods", &v, NULL, &e), -1);
	assert_null(v);
	assert_non_null(strstr(e.msg, "the API server's answer: not JSON"));
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_has_its_login_and_gives_the_answers_json),
		cmocka_unit_test(one_connection_carries_many_calls),
		cmocka_unit_test(queries_are_encoded),
		cmocka_unit_test(only_what_a_repeat_does_not_harm_is_repeated),
		cmocka_unit_test(the_server_says_how_long_to_wait),
		cmocka_unit_test(a_wait_beyond_the_calls_time_is_not_begun),
		cmocka_unit_test(a_call_whose_time_is_over_is_not_waited_for),
		cmocka_unit_test(a_missing_permission_names_verb_and_resource),
		cmocka_unit_test(
			a_server_that_is_away_is_said_with_where_it_was_looked_for),
		cmocka_unit_test(a_server_that_restarts_is_waited_for_by_a_harmless_call),
		cmocka_unit_test(an_answer_that_is_no_json_is_refused),
	};

	unsetenv("POD_NAMESPACE");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
