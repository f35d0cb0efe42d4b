/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/kubernetes/api/kubeconfig.h"
#include "base/auto.h"
#include "base/io.h"
#include "base/mem.h"
#include "tests/unit/testdir.h"

static int parse(const char *text, const char *context, struct kubeconfig *k,
		 struct err *e)
{
	return kubeconfig_parse(str_of(text), "/etc/kube", context, k, e);
}

static const char both[] =
	"apiVersion: v1\n"
	"kind: Config\n"
	"current-context: one\n"
	"contexts:\n"
	"- {name: one, context: {cluster: a, user: cert, namespace: sbx}}\n"
	"- {name: two, context: {cluster: b, user: plug}}\n"
	"- {name: anonymous, context: {cluster: a}}\n"
	"clusters:\n"
	"- name: a\n"
	"  cluster:\n"
	"    server: https://10.0.0.1:6443/\n"
	"    certificate-authority-data: Q0EK\n"
	"    certificate-authority: not-this\n"
	"- name: b\n"
	"  cluster:\n"
	"    server: https://rancher.example/k8s/clusters/c-1\n"
	"    tls-server-name: kubernetes\n"
	"    proxy-url: http://proxy:3128\n"
	"    certificate-authority: pki/ca.crt\n"
	"users:\n"
	"- name: cert\n"
	"  user:\n"
	"    client-certificate: /abs/c.crt\n"
	"    client-key-data: |\n"
	"      S0\n"
	"      VZCg==\n"
	"    token: plain\n"
	"    tokenFile: tok\n"
	"    as: someone\n"
	"    as-groups: [g1, g2]\n"
	"- name: plug\n"
	"  user:\n"
	"    exec:\n"
	"      apiVersion: client.authentication.k8s.io/v1\n"
	"      command: bin/login\n"
	"      args: [get-token, --x]\n"
	"      env: [{name: A, value: 'b c'}]\n"
	"      installHint: install it\n"
	"      interactiveMode: IfAvailable\n"
	"      provideClusterInfo: true\n";

static void the_current_context_is_read_with_its_cluster_and_user(void **state)
{
	AUTO_KUBECONFIG k = {0};
	struct err e = ERR_INIT;

	(void)state;
	if (parse(both, NULL, &k, &e) < 0)
		fail_msg("%s", e.msg);
	assert_string_equal(k.context, "one");
	assert_string_equal(k.server, "https://10.0.0.1:6443");
	assert_string_equal(k.ns, "sbx");
	assert_string_equal(k.ca_pem, "CA\n");
	assert_null(k.ca_file);
	assert_string_equal(k.cert_file, "/abs/c.crt");
	assert_string_equal(k.key_pem, "KEY\n");
	assert_string_equal(k.token_file, "/etc/kube/tok");
	assert_string_equal(k.as, "someone");
	assert_string_equal(k.as_groups[1], "g2");
	assert_null(k.plugin.argv);
}

static void a_named_context_may_have_a_plugin_a_proxy_and_a_path(void **state)
{
	AUTO_KUBECONFIG k = {0};
	struct err e = ERR_INIT;

	(void)state;
	if (parse(both, "two", &k, &e) < 0)
		fail_msg("%s", e.msg);
	assert_string_equal(k.server, "https://rancher.example/k8s/clusters/c-1");
	assert_string_equal(k.tls_name, "kubernetes");
	assert_string_equal(k.proxy, "http://proxy:3128");
	assert_string_equal(k.ca_file, "/etc/kube/pki/ca.crt");
	assert_null(k.ns);
	assert_string_equal(k.plugin.argv[0], "/etc/kube/bin/login");
	assert_string_equal(k.plugin.argv[2], "--x");
	assert_null(k.plugin.argv[3]);
	assert_string_equal(k.plugin.env[0], "A=b c");
	assert_true(k.plugin.wants_cluster);
}

static void a_context_without_user_is_anonymous(void **state)
{
	AUTO_KUBECONFIG k = {0};
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(parse(both, "anonymous", &k, &e), 0);
	assert_null(k.token);
	assert_null(k.cert_pem);
}

#define CONTEXT                                                                          \
	"current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
#define CLUSTER(x) "clusters: [{name: k, cluster: {" x "}}]\n"
#define SERVER     CLUSTER("server: 'https://s'")
#define USER(x)    "users: [{name: u, user: {" x "}}]\n"
#define EXEC(x)                                                                          \
	CONTEXT SERVER USER(                                                             \
		"exec: {apiVersion: client.authentication.k8s.io/v1, command: c, " x     \
		"}")

static void what_is_wrong_is_said_with_its_member(void **state)
{
	static const struct {
		const char *text, *words;
	} bad[] = {
		{"", "empty"},
		{"[1]", "empty"},
		{"a: [", "line 2"},
		{"a: 1\n", "current-context"},
		{"current-context: c\n", "no context c"},
		{CONTEXT, "no cluster k"},
		{CONTEXT SERVER, "no user u"},
		{CONTEXT "clusters: [{name: k}]\n", "cluster k is empty"},
		{CONTEXT CLUSTER(""), "cluster k: server is not"},
		{CONTEXT CLUSTER("server: 'ftp://s'"), "server is not"},
		{CONTEXT CLUSTER("server: 'https://'"), "server is not"},
		{CONTEXT CLUSTER("server: 'https://u@h'"), "server is not"},
		{CONTEXT CLUSTER("server: 7"), "server is no string"},
		{CONTEXT CLUSTER("server: \"https://s\\r\\nX: y\""), "control character"},
		{CONTEXT CLUSTER("server: 'https://s', insecure-skip-tls-verify: 1"),
		 "neither true nor false"},
		{CONTEXT CLUSTER("server: 'https://s', insecure-skip-tls-verify: true, "
				 "certificate-authority: x"),
		 "although there is"},
		{CONTEXT CLUSTER("server: 'https://s', certificate-authority-data: '%'"),
		 "certificate-authority-data is no base64"},
		{CONTEXT SERVER USER("auth-provider: {name: gcp}"),
		 "auth-provider is not"},
		{CONTEXT SERVER USER("as-user-extra: {a: [b]}, as: x"), "as-user-extra"},
		{CONTEXT SERVER USER("client-certificate: x"), "client-key is missing"},
		{CONTEXT SERVER USER("client-key: x"), "client-certificate is missing"},
		{CONTEXT SERVER USER("as-groups: [g]"), "as is missing"},
		{CONTEXT SERVER USER("as: x, as-groups: g"), "as-groups is no list"},
		{CONTEXT SERVER USER("token: \"a\\nb\""), "control character"},
		{CONTEXT SERVER USER("exec: {command: c}"), "apiVersion is not"},
		{CONTEXT SERVER USER(
			 "exec: {apiVersion: client.authentication.k8s.io/v1}"),
		 "command is missing"},
		{EXEC("interactiveMode: Always"), "nobody to ask"},
		{EXEC("args: [[x]]"), "args has an item"},
		{EXEC("env: [{name: a}]"), "env has an item"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		AUTO_KUBECONFIG k = {0};
		struct err e = ERR_INIT;

		if (parse(bad[i].text, NULL, &k, &e) == 0)
			fail_msg("passed: %s", bad[i].text);
		if (!strstr(e.msg, bad[i].words))
			fail_msg("%s: %s", bad[i].text, e.msg);
		assert_null(k.server);
	}
}

static void a_file_is_read_and_a_list_of_files_refused(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/kc-%d", test_tmp(), (int)getpid());
	AUTO_FREE char *ca = NULL;
	AUTO_KUBECONFIG k = {0}, none = {0};
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(io_write_file_atomic(path, both, sizeof both - 1, 0600, &e), 0);
	assert_int_equal(kubeconfig_load(path, "two", &k, &e), 0);
	ca = xasprintf("%s/pki/ca.crt", test_tmp());
	assert_string_equal(k.ca_file, ca);
	assert_int_equal(kubeconfig_load("/a:/b", NULL, &none, &e), -1);
	assert_non_null(strstr(e.msg, "a list of files"));
	e = (struct err)ERR_INIT;
	unlink(path);
	assert_int_equal(kubeconfig_load(path, NULL, &none, &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(e.msg, "KUBECONFIG: "));
	assert_non_null(strstr(e.msg, path));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_current_context_is_read_with_its_cluster_and_user),
		cmocka_unit_test(a_named_context_may_have_a_plugin_a_proxy_and_a_path),
		cmocka_unit_test(a_context_without_user_is_anonymous),
		cmocka_unit_test(what_is_wrong_is_said_with_its_member),
		cmocka_unit_test(a_file_is_read_and_a_list_of_files_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
