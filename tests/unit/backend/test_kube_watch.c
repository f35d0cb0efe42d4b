/* SPDX-License-Identifier: MIT */
#include "fakekube.h"

#include <sys/eventfd.h>

#include "backend/kubernetes/api/follow.h"
#include "backend/kubernetes/api/jsonstream.h"
#include "backend/kubernetes/pods/podwatch.h"
#include "base/clock.h"
#include "base/json.h"

struct world {
	struct fakekube k;
	struct conf conf;
	struct kube_api *api;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct buf told; /* under lock: one word for each thing, blanks between */
};

static void world_open(struct world *w, const struct fakekube_step *steps)
{
	struct err e = ERR_INIT;

	*w = (struct world){.told = BUF_INIT(100000)};
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	fakekube_start(&w->k, steps);
	w->conf.kubeconfig = fakekube_kubeconfig(&w->k);
	if (kube_api_open(&(struct kube_credentials_args){.conf = &w->conf}, &w->api,
			  &e) < 0)
		fail_msg("%s", e.msg);
}

static void world_close(struct world *w)
{
	kube_api_close(w->api);
	free(w->conf.kubeconfig);
	fakekube_stop(&w->k);
	buf_release(&w->told);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->changed);
}

static void tell(struct world *w, const char *what, const json_t *object)
{
	const char *name = json_get_string(json_object_get(object, "metadata"), "name");

	pthread_mutex_lock(&w->lock);
	buf_printf(&w->told, "%s%s%s ", what, name ? ":" : "", name ? name : "");
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

#define PODS "/api/v1/namespaces/sbx/pods"
#define POD(name, version)                                                               \
	"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name                               \
	"\",\"resourceVersion\":\"" version "\"}}"
#define LIST(version, next, items)                                                       \
	"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version             \
	"\",\"continue\":\"" next "\"},\"items\":[" items "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define TOO_OLD             FAKEKUBE_STATUS(410, "Expired", "too old resource version: 5 (907)")

/* ---- JSON in a stream */

static int collect(void *arg, const char *p, size_t n, struct err *e)
{
	(void)e;
	buf_add(arg, p, n);
	buf_puts(arg, "|");
	return 0;
}

static void objects_are_found_wherever_they_are_cut(void **state)
{
	static const char text[] =
		"{\"a\":\"}\\\"{\"}\n{\"b\":{\"c\":[{}]}}{\"d\":\"\\\\\"} \r\n";
	size_t cut, n = sizeof text - 1;

	(void)state;
	for (cut = 0; cut <= n; cut++) {
		struct jsonstream s = JSONSTREAM_INIT;
		AUTO_BUF out = BUF_INIT(1000);
		struct err e = ERR_INIT;

		assert_int_equal(jsonstream_feed(&s, text, cut, collect, &out, &e), 0);
		assert_int_equal(
			jsonstream_feed(&s, text + cut, n - cut, collect, &out, &e), 0);
		assert_string_equal(out.p, "{\"a\":\"}\\\"{\"}|{\"b\":{\"c\":[{}]}}|"
					   "{\"d\":\"\\\\\"}|");
		jsonstream_release(&s);
	}
}

static void what_is_no_object_ends_the_stream(void **state)
{
	static const char *const bad[] = {"[", "null", "{}}", "{}\n<html>", "\"{}\""};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct jsonstream s = JSONSTREAM_INIT;
		AUTO_BUF out = BUF_INIT(1000);
		struct err e = ERR_INIT;

		assert_int_equal(
			jsonstream_feed(&s, bad[i], strlen(bad[i]), collect, &out, &e),
			-1);
		jsonstream_release(&s);
	}
}

/* ---- lists */

static void on_begin(void *arg)
{
	tell(arg, "begin", NULL);
}

static int on_item(void *arg, json_t *object, struct err *e)
{
	(void)e;
	tell(arg, "item", object);
	return 0;
}

static int list(struct world *w, char version[static KUBE_VERSION_MAX],
		struct kube_status *s, struct err *e)
{
	return kube_list(w->api,
			 &(struct kube_list){.path = PODS,
					     .label_selector = "a=b",
					     .begin = on_begin,
					     .item = on_item,
					     .arg = w,
					     .status = s},
			 version, e);
}

static void a_list_is_read_page_by_page(void **state)
{
	static const struct fakekube_step steps[] = {
		{.request = "GET " PODS "?labelSelector=a%3Db&limit=250 HTTP",
		 .body = LIST("7", "to/k=", POD("a", "1") "," POD("b", "2"))},
		{.request = "GET " PODS
			    "?labelSelector=a%3Db&limit=250&continue=to%2Fk%3D HTTP",
		 .body = LIST("7", "", POD("c", "3"))},
		{0}};
	char version[KUBE_VERSION_MAX];
	struct world w;
	struct err e = ERR_INIT;

	(void)state;
	world_open(&w, steps);
	if (list(&w, version, NULL, &e) < 0)
		fail_msg("%s", e.msg);
	assert_string_equal(version, "7");
	assert_string_equal(w.told.p, "begin item:a item:b item:c ");
	world_close(&w);
}

static void a_list_that_took_too_long_begins_anew(void **state)
{
	static const struct fakekube_step steps[] = {
		{.request = "GET " PODS, .body = LIST("7", "t", POD("a", "1"))},
		{.request = "GET " PODS, .status = 410, .body = TOO_OLD},
		{.request = "GET " PODS, .body = LIST("9", "", POD("b", "8"))},
		{0}};
	char version[KUBE_VERSION_MAX];
	struct world w;
	struct err e = ERR_INIT;

	(void)state;
	world_open(&w, steps);
	assert_int_equal(list(&w, version, NULL, &e), 0);
	assert_string_equal(version, "9");
	assert_string_equal(w.told.p, "begin item:a begin item:b ");
	world_close(&w);
}

static void a_list_that_is_none_is_refused(void **state)
{
	static const char *const bad[] = {"[]", "{}", LIST("", "", ""),
					  "{\"metadata\":{\"resourceVersion\":\"1\"},"
					  "\"items\":7}"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		const struct fakekube_step steps[] = {{.request = "GET ", .body = bad[i]},
						      {0}};
		char version[KUBE_VERSION_MAX];
		struct world w;
		struct err e = ERR_INIT;

		world_open(&w, steps);
		assert_int_equal(list(&w, version, NULL, &e), -1);
		world_close(&w);
	}
}

/* More than an answer may be, if 250 are asked for at once. */
static void serve_much(struct fakekube *k, int fd, const char *request)
{
	static const char head[] =
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";
	char blanks[4096];
	size_t i;

	(void)k;
	(void)request;
	memset(blanks, ' ', sizeof blanks);
	fakekube_write(fd, head, sizeof head - 1);
	for (i = 0; i < (9U << 20) / sizeof blanks; i++)
		fakekube_write(fd, blanks, sizeof blanks);
}

static void a_page_that_is_too_large_is_asked_for_in_smaller_ones(void **state)
{
	static const struct fakekube_step steps[] = {
		{.request = "GET " PODS "?labelSelector=a%3Db&limit=250 ",
		 .body = LIST("7", "t", POD("a", "1"))},
		{.request = "GET " PODS "?labelSelector=a%3Db&limit=250&continue=t ",
		 .serve = serve_much},
		{.request = "GET " PODS "?labelSelector=a%3Db&limit=25&continue=t ",
		 .serve = serve_much},
		{.request = "GET " PODS "?labelSelector=a%3Db&limit=2&continue=t ",
		 .body = LIST("7", "u", POD("b", "2"))},
		{.request = "GET " PODS "?labelSelector=a%3Db&limit=2&continue=u ",
		 .serve = serve_much},
		{.request = "GET " PODS "?labelSelector=a%3Db&limit=1&continue=u ",
		 .body = LIST("7", "", POD("c", "3"))},
		{0}};
	char version[KUBE_VERSION_MAX];
	struct world w;
	struct err e = ERR_INIT;

	(void)state;
	world_open(&w, steps);
	if (list(&w, version, NULL, &e) < 0)
		fail_msg("%s", e.msg);
	assert_string_equal(w.told.p, "begin item:a item:b item:c ");
	world_close(&w);
}

static void serve_endlessly(struct fakekube *k, int fd, const char *request)
{
	AUTO_BUF b = BUF_INIT(1 << 20);
	const char *items = k->arg;

	(void)request;
	buf_puts(&b, "{\"metadata\":{\"resourceVersion\":\"1\",\"continue\":\"t\"},"
		     "\"items\":[");
	buf_puts(&b, items);
	buf_puts(&b, "]}");
	fakekube_answer(fd, &(struct fakekube_step){.body = b.p});
}

static int ignore(void *arg, json_t *object, struct err *e)
{
	(void)arg;
	(void)object;
	(void)e;
	return 0;
}

static void a_list_without_an_end_is_refused(void **state)
{
	static const struct fakekube_step steps[] = {{.request = "GET ",
						      .times = -1,
						      .serve = serve_endlessly,
						      .is_kept = true},
						     {0}};
	const struct kube_list l = {.path = PODS, .item = ignore};
	AUTO_BUF items = BUF_INIT(100000);
	char version[KUBE_VERSION_MAX];
	struct world w;
	struct err e = ERR_INIT;
	int i;

	(void)state;
	for (i = 0; i < 20000; i++)
		buf_puts(&items, i ? ",{}" : "{}");
	world_open(&w, steps);
	w.k.arg = items.p;
	assert_int_equal(kube_list(w.api, &l, version, &e), -1);
	assert_non_null(strstr(e.msg, "does not end"));
	world_close(&w);
}

/* Taken for "" it would be a list that is whole, and what it lacks would be gone. */
static void a_continue_token_that_is_too_long_is_no_end(void **state)
{
	AUTO_BUF body = BUF_INIT(100000);
	struct fakekube_step steps[] = {{.request = "GET ", .times = -1}, {0}};
	char version[KUBE_VERSION_MAX];
	struct world w;
	struct err e = ERR_INIT;
	int i;

	(void)state;
	buf_puts(&body, "{\"metadata\":{\"resourceVersion\":\"1\",\"continue\":\"");
	for (i = 0; i < 20000; i++)
		buf_puts(&body, "t");
	buf_puts(&body, "\"},\"items\":[]}");
	steps[0].body = body.p;
	world_open(&w, steps);
	assert_int_equal(list(&w, version, NULL, &e), -1);
	world_close(&w);
}

/* ---- watches */

static int on_event(void *arg, enum kube_event what, json_t *object, struct err *e)
{
	static const char *const names[] = {[KUBE_ADDED] = "added",
					    [KUBE_MODIFIED] = "modified",
					    [KUBE_DELETED] = "deleted",
					    [KUBE_BOOKMARK] = "bookmark"};

	(void)e;
	tell(arg, names[what], object);
	return 0;
}

static int watch(struct world *w, const int *stop_fd,
		 char version[static KUBE_VERSION_MAX], struct kube_status *s,
		 struct err *e)
{
	return kube_watch(w->api,
			  &(struct kube_watch){.path = PODS,
					       .stop_fd = stop_fd,
					       .event = on_event,
					       .arg = w,
					       .status = s},
			  version, e);
}

static void serve_events(struct fakekube *k, int fd, const char *request)
{
	static const char bookmark[] =
		EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"907\"}}");

	(void)k;
	(void)request;
	fakekube_write(fd, FAKEKUBE_CHUNKED, strlen(FAKEKUBE_CHUNKED));
	fakekube_chunk(fd, "{\"type\":\"ADDED\",\"obj");
	fakekube_chunk(fd, "ect\":" POD("a", "6") "}\n" EVENT("MODIFIED", POD("a", "8")));
	fakekube_chunk(fd, EVENT("DELETED", POD("a", "9")));
	fakekube_chunk(fd, bookmark);
	fakekube_write(fd, FAKEKUBE_LAST_CHUNK, strlen(FAKEKUBE_LAST_CHUNK));
}

static void a_watch_tells_events_and_keeps_its_version(void **state)
{
	static const struct fakekube_step steps[] = {
		{.request = "GET " PODS
			    "?watch=1&allowWatchBookmarks=true&resourceVersion=5&"
			    "timeoutSeconds=290 HTTP",
		 .serve = serve_events},
		{0}};
	char version[KUBE_VERSION_MAX] = "5";
	struct world w;
	struct err e = ERR_INIT;

	(void)state;
	world_open(&w, steps);
	if (watch(&w, NULL, version, NULL, &e) < 0)
		fail_msg("%s", e.msg);
	assert_string_equal(w.told.p, "added:a modified:a deleted:a bookmark ");
	assert_string_equal(version, "907");
	world_close(&w);
}

static void serve_too_old(struct fakekube *k, int fd, const char *request)
{
	(void)k;
	(void)request;
	fakekube_write(fd, FAKEKUBE_CHUNKED, strlen(FAKEKUBE_CHUNKED));
	fakekube_chunk(fd, EVENT("ERROR", TOO_OLD));
	fakekube_wait_close(fd);
}

static void serve_rubbish(struct fakekube *k, int fd, const char *request)
{
	(void)k;
	(void)request;
	fakekube_write(fd, FAKEKUBE_CHUNKED, strlen(FAKEKUBE_CHUNKED));
	fakekube_chunk(fd, EVENT("RENAMED", POD("a", "6")));
	fakekube_wait_close(fd);
}

static void serve_cut(struct fakekube *k, int fd, const char *request)
{
	(void)k;
	(void)request;
	fakekube_write(fd, FAKEKUBE_CHUNKED, strlen(FAKEKUBE_CHUNKED));
	fakekube_chunk(fd, EVENT("ADDED", POD("a", "6")) "{\"type\"");
}

static void the_end_of_a_watch_says_what_to_do(void **state)
{
	static const struct {
		struct fakekube_step step;
		enum kube_reason reason;
		const char *words, *version;
	} ends[] = {
		{{"GET ", 410, NULL, TOO_OLD, 0, false, NULL, false},
		 KUBE_EXPIRED,
		 "too old",
		 "5"},
		{{"GET ", 0, NULL, NULL, 0, false, serve_too_old, false},
		 KUBE_EXPIRED,
		 "too old resource version: 5 (907)",
		 "5"},
		{{"GET ", 0, NULL, NULL, 0, false, serve_rubbish, false},
		 KUBE_OTHER,
		 "no known type",
		 "5"},
		{{"GET ", 0, NULL, NULL, 0, false, serve_cut, false},
		 KUBE_OTHER,
		 "the API server's answer broke off",
		 "6"},
		{{"GET ", 403, NULL, FAKEKUBE_STATUS(403, "Forbidden", "x cannot watch"),
		  0, false, NULL, false},
		 KUBE_FORBIDDEN,
		 "a Role must allow watch on pods in namespace sbx",
		 "5"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof ends / sizeof *ends; i++) {
		const struct fakekube_step steps[] = {ends[i].step, {0}};
		char version[KUBE_VERSION_MAX] = "5";
		struct kube_status s;
		struct world w;
		struct err e = ERR_INIT;

		world_open(&w, steps);
		assert_int_equal(watch(&w, NULL, version, &s, &e), -1);
		if (!strstr(e.msg, ends[i].words) || s.reason != ends[i].reason)
			fail_msg("%zu: %d %s", i, (int)s.reason, e.msg);
		assert_string_equal(version, ends[i].version);
		world_close(&w);
	}
}

static void serve_quiet(struct fakekube *k, int fd, const char *request)
{
	(void)k;
	(void)request;
	fakekube_write(fd, FAKEKUBE_CHUNKED, strlen(FAKEKUBE_CHUNKED));
	fakekube_wait_close(fd);
}

static void *ring(void *arg)
{
	struct world *w = arg;
	uint64_t one = 1;

	fakekube_await(&w->k, "GET ", 1);
	poll(NULL, 0, 50);
	assert_int_equal(write(*(int *)w->k.arg, &one, sizeof one), sizeof one);
	return NULL;
}

/* A busy machine may need longer than AT_ONCE_MS: once in so many times it must do. */
enum { AT_ONCE_MS = 900, TIMES = 20 };

/* curl alone looks once a second. */
static int64_t time_of_a_watch(void)
{
	static const struct fakekube_step steps[] = {
		{.request = "GET ", .serve = serve_quiet}, {0}};
	int stop_fd = eventfd(0, EFD_CLOEXEC);
	char version[KUBE_VERSION_MAX] = "5";
	struct world w;
	struct err e = ERR_INIT;
	pthread_t thread;
	int64_t began = clock_mono_ms();

	world_open(&w, steps);
	w.k.arg = &stop_fd;
	assert_int_equal(pthread_create(&thread, NULL, ring, &w), 0);
	assert_int_equal(watch(&w, &stop_fd, version, NULL, &e), 0);
	began = clock_mono_ms() - began;
	pthread_join(thread, NULL);
	close(stop_fd);
	world_close(&w);
	return began;
}

static void a_quiet_watch_is_stopped_at_once(void **state)
{
	int i = 0;

	(void)state;
	while (time_of_a_watch() >= AT_ONCE_MS)
		assert_true(++i < TIMES);
}

/* ---- follow */

static void f_object(void *arg, const json_t *o)
{
	tell(arg, "object", o);
}

static void f_gone(void *arg, const json_t *o)
{
	tell(arg, "gone", o);
}

static void f_listed(void *arg)
{
	tell(arg, "listed", NULL);
}

static void f_trouble(void *arg, const struct err *why)
{
	(void)why;
	tell(arg, "trouble", NULL);
}

static const struct kube_follow_events follow_events = {.begin = on_begin,
							.object = f_object,
							.gone = f_gone,
							.listed = f_listed,
							.trouble = f_trouble};

static struct kube_follow *follow(struct world *w)
{
	struct kube_follow *f = NULL;
	struct err e = ERR_INIT;

	assert_int_equal(
		kube_follow_start(&(struct kube_follow_args){.api = w->api,
							     .path = PODS,
							     .label_selector = NULL,
							     .ev = &follow_events,
							     .arg = w},
				  &f, &e),
		0);
	return f;
}

/* This is told; it may be that more is, already. */
static void await_told(struct world *w, const char *all)
{
	pthread_mutex_lock(&w->lock);
	while (w->told.len < strlen(all))
		pthread_cond_wait(&w->changed, &w->lock);
	if (strncmp(w->told.p, all, strlen(all)) != 0)
		fail_msg("%s", w->told.p);
	pthread_mutex_unlock(&w->lock);
}

static void a_collection_is_followed_through_expiry(void **state)
{
	static const struct fakekube_step steps[] = {
		{.request = "GET " PODS "?limit", .body = LIST("5", "", POD("a", "1"))},
		{.request = "GET " PODS
			    "?watch=1&allowWatchBookmarks=true&resourceVersion=5&",
		 .serve = serve_events},
		{.request = "GET " PODS
			    "?watch=1&allowWatchBookmarks=true&resourceVersion=907&",
		 .serve = serve_too_old},
		{.request = "GET " PODS "?limit", .body = LIST("999", "", POD("b", "2"))},
		{.request = "GET " PODS
			    "?watch=1&allowWatchBookmarks=true&resourceVersion=999&",
		 .serve = serve_quiet},
		{0}};
	struct kube_follow *f;
	struct world w;

	(void)state;
	world_open(&w, steps);
	f = follow(&w);
	await_told(&w, "begin object:a listed object:a object:a gone:a "
		       "begin object:b listed ");
	fakekube_await(&w.k, "GET " PODS "?watch", 3);
	kube_follow_stop(f);
	world_close(&w);
}

static void trouble_is_told_once_and_ends_with_a_list(void **state)
{
	static const struct fakekube_step steps[] = {
		{.request = "GET " PODS "?limit",
		 .status = 403,
		 .body = FAKEKUBE_STATUS(403, "Forbidden", "u cannot list"),
		 .times = 3},
		{.request = "GET " PODS "?limit", .body = LIST("5", "", ""), .times = 3},
		{.request = "GET " PODS "?watch", .drops = true},
		{.request = "GET " PODS "?watch", .drops = true},
		{.request = "GET " PODS "?watch", .serve = serve_quiet},
		{0}};
	struct kube_follow *f;
	struct world w;

	(void)state;
	world_open(&w, steps);
	f = follow(&w);
	await_told(&w, "begin trouble begin begin begin listed trouble begin listed "
		       "begin listed ");
	kube_follow_stop(f);
	world_close(&w);
}

/* In a pause of some seconds between its tries. */
static int64_t time_of_a_stop(void)
{
	static const struct fakekube_step steps[] = {{0}};
	struct kube_follow *f;
	struct world w;
	int64_t began;

	world_open(&w, steps);
	shutdown(w.k.listen_fd, SHUT_RDWR);
	f = follow(&w);
	await_told(&w, "begin trouble begin begin begin begin ");
	began = clock_mono_ms();
	kube_follow_stop(f);
	began = clock_mono_ms() - began;
	world_close(&w);
	return began;
}

static void a_server_that_is_away_does_not_hold_the_stop(void **state)
{
	int i = 0;

	(void)state;
	while (time_of_a_stop() >= AT_ONCE_MS)
		assert_true(++i < TIMES);
}

#define POD_OF_UID(version)                                                              \
	"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"uid\":\"u\","                  \
	"\"resourceVersion\":\"" version "\"},\"status\":{\"phase\":\"Pending\"}}"

static void serve_a_deletion(struct fakekube *k, int fd, const char *request)
{
	(void)k;
	(void)request;
	fakekube_write(fd, FAKEKUBE_CHUNKED, strlen(FAKEKUBE_CHUNKED));
	fakekube_chunk(fd, EVENT("DELETED", POD_OF_UID("6")));
	fakekube_wait_close(fd);
}

/* The answer that told of it is older than what the watch has told. */
static void a_pod_that_was_deleted_before_it_is_waited_for_is_gone(void **state)
{
	static const struct fakekube_step steps[] = {
		{.request = "GET " PODS "?limit", .body = LIST("5", "", POD_OF_UID("1"))},
		{.request = "GET " PODS "?watch", .serve = serve_a_deletion},
		{0}};
	struct podwait how = {
		.start_ms = 60000, .unschedulable_ms = 60000, .is_new = true};
	struct podwatch_args args = {
		.path = PODS,
		.reading = {.label_prefix = "mcp.", .container = "sandbox"}};
	AUTO_JSON *object = NULL;
	struct pod made = {0}, now = {0};
	struct podwatch *pods = NULL;
	struct err e = ERR_INIT;
	struct world w;

	(void)state;
	world_open(&w, steps);
	assert_int_equal(
		json_parse(POD_OF_UID("1"), strlen(POD_OF_UID("1")), &object, &e), 0);
	assert_int_equal(pod_parse(object, &args.reading, &made, &e), 0);
	args.api = w.api;
	assert_int_equal(podwatch_start(&args, &pods, &e), 0);
	assert_true(podwatch_await_gone(pods, "u", 60000));
	assert_int_equal(podwatch_await(pods, &made, &how, &now, &e), -1);
	assert_int_equal(e.kind, ERR_BACKEND);
	assert_non_null(strstr(e.msg, "was deleted while it was waited for"));
	pod_release(&made);
	podwatch_stop(pods);
	world_close(&w);
}

static void a_pause_between_tries_does_not_hold_the_stop(void **state)
{
	static const struct fakekube_step steps[] = {
		{.request = "GET ", .status = 429, .headers = "Retry-After: 3600\r\n"},
		{0}};
	int stop_fd = eventfd(0, EFD_CLOEXEC);
	struct world w;
	struct err e = ERR_INIT;
	struct kube_call c = {.method = "GET",
			      .path = "/x",
			      .stop_fd = &stop_fd,
			      .timeout_ms = 7200 * 1000};
	pthread_t thread;

	(void)state;
	world_open(&w, steps);
	w.k.arg = &stop_fd;
	assert_int_equal(pthread_create(&thread, NULL, ring, &w), 0);
	assert_int_equal(kube_call(w.api, &c, NULL, &e), -1);
	pthread_join(thread, NULL);
	close(stop_fd);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_are_found_wherever_they_are_cut),
		cmocka_unit_test(what_is_no_object_ends_the_stream),
		cmocka_unit_test(a_list_is_read_page_by_page),
		cmocka_unit_test(a_list_that_took_too_long_begins_anew),
		cmocka_unit_test(a_list_that_is_none_is_refused),
		cmocka_unit_test(a_page_that_is_too_large_is_asked_for_in_smaller_ones),
		cmocka_unit_test(a_list_without_an_end_is_refused),
		cmocka_unit_test(a_continue_token_that_is_too_long_is_no_end),
		cmocka_unit_test(a_watch_tells_events_and_keeps_its_version),
		cmocka_unit_test(the_end_of_a_watch_says_what_to_do),
		cmocka_unit_test(a_quiet_watch_is_stopped_at_once),
		cmocka_unit_test(a_collection_is_followed_through_expiry),
		cmocka_unit_test(trouble_is_told_once_and_ends_with_a_list),
		cmocka_unit_test(a_server_that_is_away_does_not_hold_the_stop),
		cmocka_unit_test(a_pod_that_was_deleted_before_it_is_waited_for_is_gone),
		cmocka_unit_test(a_pause_between_tries_does_not_hold_the_stop),
	};

	unsetenv("POD_NAMESPACE");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
