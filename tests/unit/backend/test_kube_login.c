/* SPDX-License-Identifier: MIT */
#include "fakekube.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "backend/kubernetes/api/api.h"
#include "backend/kubernetes/api/plugin.h"
#include "base/json.h"
#include "tests/unit/testdir.h"

/* A folder for files of a test. */
struct folder {
	char dir[64];
};

static void folder_make(struct folder *f)
{
	test_folder(f->dir, sizeof f->dir, "login");
}

static void folder_remove(struct folder *f)
{
	struct err e = ERR_INIT;

	assert_int_equal(io_rmtree(f->dir, &e), 0);
}

static void put(const struct folder *f, const char *name, const char *text, mode_t mode)
{
	AUTO_FREE char *path = xasprintf("%s/%s", f->dir, name);
	struct err e = ERR_INIT;

	assert_int_equal(io_write_file_atomic(path, text, strlen(text), mode, &e), 0);
}

static bool has_header(const struct kube_login *l, const char *line)
{
	size_t i;

	for (i = 0; l->headers[i]; i++)
		if (strcmp(l->headers[i], line) == 0)
			return true;
	return false;
}

/* A kubeconfig in the folder whose user is that text. a: the rest; conf is set here. */
static int open_with(const struct folder *f, const char *user,
		     struct kube_credentials_args a, struct kube_credentials **ret,
		     struct err *e)
{
	AUTO_FREE char *path = xasprintf("%s/config", f->dir);
	AUTO_FREE char *text = xasprintf(
		"{current-context: c, clusters: [{name: k, cluster: {server: "
		"'https://h:6443/pre/fix', certificate-authority: ca}}], users: [{name: "
		"u, user: {%s}}], contexts: [{name: c, context: {cluster: k, user: u, "
		"namespace: ctx}}]}",
		user);
	struct conf conf = {.kubeconfig = path};

	put(f, "config", text, 0600);
	a.conf = &conf;
	return kube_credentials_open(&a, ret, e);
}

static int open_user(const struct folder *f, const char *user,
		     struct kube_credentials **ret, struct err *e)
{
	return open_with(f, user, (struct kube_credentials_args){0}, ret, e);
}

/* ---- a pod's own */

static void a_pod_logs_in_with_its_service_account(void **state)
{
	struct conf conf = {0};
	struct kube_credentials_args a = {.conf = &conf};
	struct kube_credentials *c = NULL;
	const struct kube_login *l = NULL;
	struct err e = ERR_INIT;
	struct folder f;

	(void)state;
	folder_make(&f);
	a.service_account = f.dir;
	put(&f, "token", "tok1\n", 0600);
	put(&f, "ca.crt", "CA", 0600);
	put(&f, "namespace", "own", 0600);
	setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
	setenv("KUBERNETES_SERVICE_PORT", "443", 1);
	if (kube_credentials_open(&a, &c, &e) < 0)
		fail_msg("%s", e.msg);
	assert_string_equal(kube_credentials_host(c), "[fd00::1]:443");
	assert_string_equal(kube_credentials_path(c), "");
	assert_string_equal(kube_credentials_namespace(c), "own");
	assert_string_equal(kube_credentials_where(c),
			    "https://[fd00::1]:443 (service account)");
	assert_int_equal(kube_login_get(c, &l, &e), 0);
	assert_true(has_header(l, "Authorization: Bearer tok1"));
	kube_login_put(l);
	kube_credentials_free(c);
	unsetenv("KUBERNETES_SERVICE_HOST");
	folder_remove(&f);
}

static void neither_pod_nor_kubeconfig_is_said_with_what_was_looked_for(void **state)
{
	struct conf conf = {0};
	struct kube_credentials_args a = {.conf = &conf, .service_account = "/nowhere"};
	struct kube_credentials *c = NULL;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(kube_credentials_open(&a, &c, &e), -1);
	assert_non_null(strstr(e.msg, "KUBECONFIG is not set"));
	assert_non_null(strstr(e.msg, "KUBERNETES_SERVICE_HOST is not set"));
	e = (struct err)ERR_INIT;
	setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
	assert_int_equal(kube_credentials_open(&a, &c, &e), -1);
	assert_non_null(strstr(e.msg, "/nowhere/token"));
	unsetenv("KUBERNETES_SERVICE_HOST");
}

static void the_namespace_is_the_first_of_four(void **state)
{
	static const struct {
		const char *conf, *pod, *want;
	} cases[] = {{"named", "pod", "named"},
		     {"", "pod", "pod"},
		     {NULL, "", "ctx"},
		     {NULL, "Bad Name", NULL}};
	AUTO_FREE char *path = NULL;
	struct folder f;
	size_t i;

	(void)state;
	folder_make(&f);
	put(&f, "ca", "CA", 0600);
	path = xasprintf("%s/config", f.dir);
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct kube_credentials *c = NULL;
		struct err e = ERR_INIT;
		struct conf conf = {.kubeconfig = path,
				    .kube_namespace = (char *)(uintptr_t)cases[i].conf};

		assert_int_equal(open_user(&f, "token: t", &c, &e), 0); /* the file */
		kube_credentials_free(c);
		c = NULL;
		setenv("POD_NAMESPACE", cases[i].pod, 1);
		if (kube_credentials_open(&(struct kube_credentials_args){.conf = &conf},
					  &c, &e) < 0) {
			assert_null(cases[i].want);
			assert_non_null(strstr(e.msg, "not the name of a namespace"));
		} else {
			assert_string_equal(kube_credentials_namespace(c), cases[i].want);
		}
		kube_credentials_free(c);
		unsetenv("POD_NAMESPACE");
	}
	folder_remove(&f);
}

/* ---- a kubeconfig's user */

static void a_user_may_have_a_password_and_be_someone_else(void **state)
{
	struct kube_credentials *c = NULL;
	const struct kube_login *l = NULL;
	struct err e = ERR_INIT;
	struct folder f;

	(void)state;
	folder_make(&f);
	put(&f, "ca", "CA", 0600);
	if (open_user(&f,
		      "username: u, password: 'p:w', as: x, as-uid: i, as-groups: [g, h]",
		      &c, &e) < 0)
		fail_msg("%s", e.msg);
	assert_string_equal(kube_credentials_path(c), "/pre/fix");
	assert_int_equal(kube_login_get(c, &l, &e), 0);
	assert_true(has_header(l, "Authorization: Basic dTpwOnc="));
	assert_true(has_header(l, "Impersonate-User: x"));
	assert_true(has_header(l, "Impersonate-Uid: i"));
	assert_true(has_header(l, "Impersonate-Group: g"));
	assert_true(has_header(l, "Impersonate-Group: h"));
	kube_login_put(l);
	kube_credentials_free(c);
	folder_remove(&f);
}

static void files_are_read_again_after_a_refusal_and_only_then(void **state)
{
	struct kube_credentials *c = NULL;
	const struct kube_login *a, *b;
	struct err e = ERR_INIT;
	struct folder f;

	(void)state;
	folder_make(&f);
	put(&f, "ca", "CA", 0600);
	put(&f, "tok", "one", 0600);
	assert_int_equal(open_user(&f, "tokenFile: tok", &c, &e), 0);
	assert_int_equal(kube_login_get(c, &a, &e), 0);
	put(&f, "tok", "two", 0600);
	assert_int_equal(kube_login_get(c, &b, &e), 0);
	assert_ptr_equal(a, b);
	kube_login_put(b);
	kube_login_refused(c, a, true);
	assert_int_equal(kube_login_get(c, &b, &e), 0);
	assert_true(has_header(a, "Authorization: Bearer one")); /* still ours */
	assert_true(has_header(b, "Authorization: Bearer two"));
	assert_ptr_equal(a->http, b->http); /* its connections serve on */
	kube_login_put(a);
	/* The same again: nothing is new, and a repeat would be refused as well. */
	kube_login_refused(c, b, true);
	assert_int_equal(kube_login_get(c, &a, &e), 0);
	assert_ptr_equal(a, b);
	kube_login_put(a);
	/* Another CA is another client. */
	put(&f, "ca", "CB", 0600);
	kube_login_refused(c, b, false);
	assert_int_equal(kube_login_get(c, &a, &e), 0);
	assert_ptr_not_equal(a->http, b->http);
	kube_login_put(a);
	kube_login_put(b);
	kube_credentials_free(c);
	folder_remove(&f);
}

static void a_file_that_is_away_matters_only_when_the_server_refuses(void **state)
{
	AUTO_FREE char *path = NULL;
	struct kube_credentials *c = NULL;
	const struct kube_login *a, *b;
	struct err e = ERR_INIT;
	struct folder f;

	(void)state;
	folder_make(&f);
	put(&f, "ca", "CA", 0600);
	put(&f, "tok", "one", 0600);
	assert_int_equal(open_user(&f, "tokenFile: tok", &c, &e), 0);
	path = xasprintf("%s/tok", f.dir);
	unlink(path);
	assert_int_equal(kube_login_get(c, &a, &e), 0);
	kube_login_refused(c, a, true);
	assert_int_equal(kube_login_get(c, &b, &e), -1);
	assert_non_null(strstr(e.msg, "/tok"));
	e = (struct err)ERR_INIT;
	put(&f, "tok", " \n", 0600);
	assert_int_equal(kube_login_get(c, &b, &e), -1);
	assert_non_null(strstr(e.msg, "holds no token"));
	kube_login_put(a);
	kube_credentials_free(c);
	folder_remove(&f);
}

/* ---- plugins */

#define V1 "client.authentication.k8s.io/v1"
#define TICKET(status)                                                                   \
	"{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":{" status "}" \
	"}"

static int parse(const char *text, struct kube_ticket *t, struct err *e)
{
	return kube_plugin_parse(V1, str_of(text), t, e);
}

static void what_a_plugin_prints_is_read(void **state)
{
	static const struct {
		const char *expires;
		int64_t ms;
	} times[] = {
		{"\"2026-01-31T12:34:56Z\"", 1769862896000},
		{"\"2026-01-31T12:34:56.789Z\"", 1769862896000},
		{"\"2026-01-31T14:34:56+02:00\"", 1769862896000},
		{"\"2026-01-31T12:04:56-00:30\"", 1769862896000},
		{"null", INT64_MAX},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof times / sizeof *times; i++) {
		AUTO_FREE char *text =
			xasprintf(TICKET("\"token\":\"t\",\"expirationTimestamp\":%s"),
				  times[i].expires);
		struct kube_ticket t = {0};
		struct err e = ERR_INIT;

		if (parse(text, &t, &e) < 0)
			fail_msg("%s", e.msg);
		assert_string_equal(t.token, "t");
		assert_true(t.expires_ms == times[i].ms);
		kube_ticket_release(&t);
	}
}

static void what_a_plugin_may_not_print_is_refused(void **state)
{
	static const struct {
		const char *text, *words;
	} bad[] = {
		{"", "not JSON"},
		{"{\"kind\":\"Pod\"}", "no ExecCredential"},
		{"{\"kind\":\"ExecCredential\",\"apiVersion\":\"v2\"}",
		 "no ExecCredential"},
		{TICKET(""), "neither token nor certificate"},
		{TICKET("\"token\":\"a\\r\\nX: y\""), "a blank in it"},
		{TICKET("\"clientKeyData\":\"k\""), "alone"},
		{TICKET("\"token\":\"t\",\"expirationTimestamp\":\"soon\""), "no time"},
		{TICKET("\"token\":\"t\",\"expirationTimestamp\":"
			"\"2026-01-31T12:34:56+2:00\""),
		 "no time"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct kube_ticket t = {0};
		struct err e = ERR_INIT;

		assert_int_equal(parse(bad[i].text, &t, &e), -1);
		if (!strstr(e.msg, bad[i].words))
			fail_msg("%s: %s", bad[i].text, e.msg);
	}
}

#define EXEC(command)                                                                    \
	"exec: {apiVersion: " V1 ", command: " command                                   \
	", args: [a], env: [{name: WORD, value: w}], installHint: 'get it there', "      \
	"provideClusterInfo: true}"

static void a_plugin_is_run_without_a_terminal_and_told_of_the_cluster(void **state)
{
	struct kube_credentials *c = NULL;
	const struct kube_login *l = NULL;
	AUTO_FREE char *path = NULL;
	AUTO_BUF info = BUF_INIT(10000);
	AUTO_JSON *v = NULL;
	const json_t *spec;
	struct err e = ERR_INIT;
	struct folder f;

	(void)state;
	folder_make(&f);
	put(&f, "ca", "CA", 0600);
	put(&f, "plug",
	    "#!/bin/sh\nprintf %s \"$KUBERNETES_EXEC_INFO\" >\"${0%/*}/info\"\n"
	    "printf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
	    "\",\"status\":{\"token\":\"%s-%s\"}}' $1 $WORD\n",
	    0700);
	if (open_user(&f, EXEC("./plug"), &c, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(kube_login_get(c, &l, &e), 0);
	assert_true(has_header(l, "Authorization: Bearer a-w"));
	path = xasprintf("%s/info", f.dir);
	assert_int_equal(io_read_file(path, &info, &e), 0);
	assert_int_equal(json_parse(info.p, info.len, &v, &e), 0);
	assert_string_equal(json_get_string(v, "apiVersion"), V1);
	spec = json_object_get(v, "spec");
	assert_true(json_is_false(json_object_get(spec, "interactive")));
	assert_string_equal(json_get_string(json_object_get(spec, "cluster"), "server"),
			    "https://h:6443/pre/fix");
	assert_string_equal(json_get_string(json_object_get(spec, "cluster"),
					    "certificate-authority-data"),
			    "Q0E=");
	/* It does not expire, and was run a moment ago: a refusal changes nothing yet. */
	unlink(path);
	kube_login_refused(c, l, true);
	kube_login_put(l);
	assert_int_equal(kube_login_get(c, &l, &e), 0);
	assert_false(io_exists(path));
	kube_login_put(l);
	kube_credentials_free(c);
	folder_remove(&f);
}

static void a_plugin_that_fails_is_said_with_its_words_and_the_hint(void **state)
{
	struct kube_credentials *c = NULL;
	struct err e = ERR_INIT;
	struct folder f;

	(void)state;
	folder_make(&f);
	put(&f, "ca", "CA", 0600);
	put(&f, "plug", "#!/bin/sh\necho 'who are you?' >&2\nexit 4\n", 0700);
	assert_int_equal(open_user(&f, EXEC("./plug"), &c, &e), -1);
	assert_non_null(strstr(e.msg, "plugin of the kubeconfig's context c"));
	assert_non_null(strstr(e.msg, "(get it there)"));
	assert_non_null(strstr(e.msg, "exit code 4: who are you?"));
	e = (struct err)ERR_INIT;
	assert_int_equal(open_user(&f, EXEC("./absent"), &c, &e), -1);
	assert_non_null(strstr(e.msg, "(get it there)"));
	folder_remove(&f);
}

static void put_line(const char *fifo)
{
	AUTO_CLOSE int fd = open(fifo, O_WRONLY | O_CLOEXEC);

	assert_int_equal(write(fd, "\n", 1), 1);
}

static void *get_login(void *arg)
{
	const struct kube_login *l = NULL;
	struct err e = ERR_INIT;

	if (kube_login_get(arg, &l, &e) < 0)
		return NULL;
	return (void *)(uintptr_t)l;
}

/*
 * Prints first, and when it is run again second, but not before the test has written
 * to gate; that it waits is told through started. $1: when what it prints expires.
 */
static const char slow_plugin[] =
	"#!/bin/sh\nd=${0%/*} n=first\n"
	"[ -e $d/ran ] && { n=second; echo >$d/started; read go <$d/gate; }\n: >$d/ran\n"
	"printf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":{"
	"\"token\":\"%s\",\"expirationTimestamp\":\"%s\"}}' $n $1\n";

/* A login by that plugin, which is due at once, and a thread that waits for it. */
struct slow {
	struct folder f;
	struct kube_credentials *c;
	pthread_t thread;
	char *gate;
};

static void slow_begin(struct slow *s, const char *expires)
{
	AUTO_FREE char *user = xasprintf(
		"exec: {apiVersion: " V1 ", command: ./plug, args: ['%s']}", expires);
	AUTO_FREE char *started = NULL;
	const struct kube_credentials_args due = {.plugin_pause_ms = 1,
						  .expiry_early_ms = INT64_MAX / 2};
	struct err e = ERR_INIT;
	char line;
	int fd;

	folder_make(&s->f);
	s->c = NULL;
	s->gate = xasprintf("%s/gate", s->f.dir);
	started = xasprintf("%s/started", s->f.dir);
	put(&s->f, "ca", "CA", 0600);
	put(&s->f, "plug", slow_plugin, 0700);
	assert_int_equal(mkfifo(s->gate, 0600), 0);
	assert_int_equal(mkfifo(started, 0600), 0);
	if (open_with(&s->f, user, due, &s->c, &e) < 0)
		fail_msg("%s", e.msg);
	poll(NULL, 0, 2); /* longer than plugin_pause_ms */
	assert_int_equal(pthread_create(&s->thread, NULL, get_login, s->c), 0);
	fd = open(started, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, &line, 1), 1);
	close(fd);
}

static const struct kube_login *slow_end(struct slow *s)
{
	void *got = NULL;

	pthread_join(s->thread, &got);
	return got;
}

static void slow_release(struct slow *s)
{
	kube_credentials_free(s->c);
	free(s->gate);
	folder_remove(&s->f);
}

static void a_login_that_is_valid_goes_on_while_the_plugin_runs(void **state)
{
	const struct kube_login *l = NULL;
	struct err e = ERR_INIT;
	struct slow s;
	void *got;

	(void)state;
	slow_begin(&s, "2999-01-01T00:00:00Z");
	assert_int_equal(kube_login_get(s.c, &l, &e), 0);
	assert_int_equal(pthread_tryjoin_np(s.thread, &got), EBUSY); /* it runs */
	assert_true(has_header(l, "Authorization: Bearer first"));
	kube_login_put(l);
	put_line(s.gate);
	l = slow_end(&s);
	assert_non_null(l);
	assert_true(has_header(l, "Authorization: Bearer second"));
	kube_login_put(l);
	slow_release(&s);
}

static void a_stop_ends_the_plugin_and_a_login_that_is_valid_goes_on(void **state)
{
	const struct kube_login *l;
	struct slow s;

	(void)state;
	slow_begin(&s, "2999-01-01T00:00:00Z");
	kube_credentials_stop(s.c);
	l = slow_end(&s);
	assert_non_null(l);
	assert_true(has_header(l, "Authorization: Bearer first"));
	kube_login_put(l);
	slow_release(&s);
}

static void a_stop_ends_the_plugin_and_who_waits_for_it(void **state)
{
	const struct kube_login *l = NULL;
	struct err e = ERR_INIT;
	pthread_t other;
	struct slow s;
	void *got = &s;

	(void)state;
	slow_begin(&s, "1999-01-01T00:00:00Z");
	assert_int_equal(pthread_create(&other, NULL, get_login, s.c), 0);
	kube_credentials_stop(s.c);
	pthread_join(other, &got);
	assert_null(got);
	assert_null(slow_end(&s));
	assert_int_equal(kube_login_get(s.c, &l, &e), -1); /* and it runs no other */
	assert_int_equal(e.kind, ERR_BUSY);
	slow_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_logs_in_with_its_service_account),
		cmocka_unit_test(
			neither_pod_nor_kubeconfig_is_said_with_what_was_looked_for),
		cmocka_unit_test(the_namespace_is_the_first_of_four),
		cmocka_unit_test(a_user_may_have_a_password_and_be_someone_else),
		cmocka_unit_test(files_are_read_again_after_a_refusal_and_only_then),
		cmocka_unit_test(
			a_file_that_is_away_matters_only_when_the_server_refuses),
		cmocka_unit_test(what_a_plugin_prints_is_read),
		cmocka_unit_test(what_a_plugin_may_not_print_is_refused),
		cmocka_unit_test(
			a_plugin_is_run_without_a_terminal_and_told_of_the_cluster),
		cmocka_unit_test(a_plugin_that_fails_is_said_with_its_words_and_the_hint),
		cmocka_unit_test(a_login_that_is_valid_goes_on_while_the_plugin_runs),
		cmocka_unit_test(
			a_stop_ends_the_plugin_and_a_login_that_is_valid_goes_on),
		cmocka_unit_test(a_stop_ends_the_plugin_and_who_waits_for_it),
	};

	unsetenv("POD_NAMESPACE");
	unsetenv("KUBERNETES_SERVICE_HOST");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
