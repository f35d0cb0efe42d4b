/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "conf/conf.h"
#include "conf/table.h"
#include "tests/unit/testdir.h"

static char env_path[64];

static int clean_environment(void **state)
{
	const struct conf_row *row;
	size_t i;

	(void)state;
	for (i = 0; (row = conf_row_at(i)) != NULL; i++)
		unsetenv(row->name);
	snprintf(env_path, sizeof env_path, "%s/%d.env", test_tmp(), (int)getpid());
	return 0;
}

static int remove_file(void **state)
{
	(void)state;
	unlink(env_path);
	return 0;
}

static void write_env(const char *text)
{
	struct err e = ERR_INIT;

	assert_int_equal(io_write_file_atomic(env_path, text, strlen(text), 0600, &e), 0);
}

static void load(struct conf *c)
{
	struct err e = ERR_INIT;

	if (conf_load(env_path, c, &e) < 0)
		fail_msg("%s", e.msg);
}

static void the_defaults_are_the_documented_ones(void **state)
{
	struct conf c;
	char cwd[4096];

	(void)state;
	load(&c);
	assert_int_equal(c.port, 8080);
	assert_string_equal(c.mcp_path, "/mcp");
	assert_string_equal(c.network_mode, "bridge");
	assert_string_equal(c.cap_add, "SETUID,SETGID,CHOWN,FOWNER,DAC_OVERRIDE");
	assert_int_equal(c.default_ttl_s, 3600);
	assert_int_equal(c.max_ttl_s, 604800);
	assert_int_equal(c.default_command_timeout_ms, 120000);
	assert_int_equal(c.artifacts_max_bytes, 256 * 1024 * 1024);
	assert_true(c.no_new_privileges && c.caps_strict && c.denylist_enabled);
	assert_false(c.default_await_completion || c.log_http || c.debug_ui);
	assert_non_null(getcwd(cwd, sizeof cwd));
	assert_memory_equal(c.data_dir, cwd, strlen(cwd));
	assert_string_equal(c.data_dir + strlen(cwd), "/data");
	conf_release(&c);
}

static void the_environment_wins_over_the_file(void **state)
{
	struct conf c;

	(void)state;
	write_env("PORT=9000\nMAX_RUNS=5\n");
	setenv("PORT", "9001", 1);
	load(&c);
	assert_int_equal(c.port, 9001);
	assert_int_equal(c.max_runs, 5);
	conf_release(&c);
}

static void an_empty_value_means_the_default_where_it_is_no_value(void **state)
{
	struct conf c;

	(void)state;
	setenv("PORT", "", 1);
	setenv("DEBUG_UI_ENABLED", "", 1);
	setenv("DATA_DIR", "", 1);
	setenv("DENYLIST_PATTERNS", "", 1);
	setenv("SANDBOX_CAP_ADD", "", 1);
	load(&c);
	assert_int_equal(c.port, 8080);
	assert_string_equal(c.denylist_patterns, "");
	assert_string_equal(c.cap_add, "");
	conf_release(&c);
}

static void switches_have_many_words(void **state)
{
	static const struct {
		const char *word;
		bool value;
	} words[] = {{"true", true},   {"1", true},  {"YES", true}, {"on", true},
		     {"FALSE", false}, {"0", false}, {"no", false}, {"off", false}};
	struct conf c;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof words / sizeof *words; i++) {
		setenv("LOG_TOOLCALLS", words[i].word, 1);
		load(&c);
		assert_int_equal(c.log_toolcalls, words[i].value);
		conf_release(&c);
	}
}

/* Every bad value is refused with the variable, the value and the rule. */
static const struct {
	const char *name, *value, *rule;
} bad[] = {
	{"PORT", "0", "from 1 to 65535"},
	{"PORT", "80a", "whole number"},
	{"DEFAULT_CPU_CORES", "-1", "must be a number"},
	{"LOG_TOOLCALLS", "maybe", "true or false"},
	{"STORE_SYNCHRONOUS", "OFF", "NORMAL|FULL"},
	{"SANDBOX_NETWORK_MODE", "host", "reaches the host's own services"},
	{"SANDBOX_NETWORK_MODE", "vlan", "the local backend has bridge and none"},
	{"SANDBOX_NETWORK_MODE", "container:x", "name of a network"},
	{"SANDBOX_BACKEND", "podman", "local|docker|kubernetes"},
	{"SANDBOX_IMAGE", "registry:5000/x", "name of a folder"},
	{"SANDBOX_IMAGE", "a b", "name of an image"},
	{"DOCKER_HOST", "/var/run/docker.sock", "unix:///path"},
	{"SANDBOX_CAP_ADD", "SYS_ADMIN", "SYS_ADMIN is refused"},
	{"SANDBOX_CAP_ADD", "cap_sys_ptrace", "SYS_PTRACE is refused"},
	{"SANDBOX_CAP_ADD", "CHOWN,NET_ADMIN", "NET_ADMIN is refused"},
	{"SANDBOX_CAP_ADD", "ALL", "ALL is refused"},
	{"SANDBOX_CAP_ADD", "FLY", "FLY is no Linux capability"},
	{"SANDBOX_CAP_DROP", "FLY", "FLY is no Linux capability"},
	{"MCP_PATH", "mcp", "path like /mcp"},
	{"MCP_PATH", "/a/../b", "path like /mcp"},
	{"MCP_PATH", "/mcp/", "no / at its end"},
	{"MCP_PATH", "/a;b", "path like /mcp"},
	{"MCP_PATH", "/artifacts", "another use"},
	{"MCP_PATH", "/artifacts/mcp", "another use"},
	{"MCP_PATH", "/debug", "another use"},
	{"PUBLIC_URL", "ftp://x", "must be a url"},
	{"PUBLIC_URL", "https://x/", "no / at its end"},
	{"LISTEN_ADDRESS", "localhost", "IPv4 or IPv6"},
	{"EDGE_USER", "root", "must not be root"},
	{"EDGE_USER", "a b", "system user"},
	{"ALLOWED_HOSTS", "a b", "host names"},
	{"CORS_ALLOW_ORIGINS", "example.org", "comma list of origins"},
	{"CORS_ALLOW_ORIGINS", "https://a/b", "comma list of origins"},
	{"SANDBOX_IMAGE", "../x", "name of an image"},
	{"RUN_DIR", "run", "absolute path"},
	{"RUN_DIR", "/12345678901234567890123456789012345678901234567890123456789012345",
	 "at most 64 bytes"},
	{"OCI_RUNTIME", "bin/runc", "absolute path"},
	{"ROOTFS_MIRROR", "debian.org", "url of a Debian mirror"},
	{"ROOTFS_SUITE", "x y", "name of a release"},
	{"DENYLIST_PATTERNS", "ok,(", "regular expression"},
	{"DATA_DIR", "a\nb", "control characters"},
	{"DATA_DIR", "/", "folder of its own"},
	{"DEFAULT_TTL_SECONDS", "604801", "MAX_TTL_SECONDS"},
	{"KUBERNETES_SANDBOX_NAMESPACE", "Sandboxes", "lower-case"},
	{"KUBERNETES_SANDBOX_NAMESPACE", "a.b", "lower-case"},
	{"KUBERNETES_SANDBOX_CONTAINER_NAME", "-a", "letter or digit at both ends"},
	{"KUBERNETES_LABEL_PREFIX", "a b", "label's name"},
	{"KUBERNETES_LABEL_PREFIX", "Example.org/", "label's name"},
	{"KUBERNETES_LABEL_PREFIX", "a/b/", "label's name"},
	{"KUBERNETES_LABEL_PREFIX", ".a", "label's name"},
	{"KUBERNETES_NODE_SELECTOR", "a", "label=value"},
	{"KUBERNETES_NODE_SELECTOR", "a=b,c d=e", "label=value"},
	{"KUBERNETES_TOLERATIONS", "a=b", "key:effect"},
	{"KUBERNETES_TOLERATIONS", "a:Never", "key:effect"},
	{"KUBERNETES_ARCHITECTURES", "amd64,riscv", "amd64, arm64"},
	{"KUBERNETES_VOLUME_SIZE", "10GB", "such as 10Gi"},
	{"KUBERNETES_VOLUME_SIZE", "Gi", "such as 10Gi"},
	{"KUBERNETES_IMAGE_PULL_SECRETS", "a,,b", "names of Kubernetes objects"},
	{"KUBERNETES_PRIORITY_CLASS", "A", "name of a Kubernetes object"},
};

static void what_a_cluster_takes_is_taken(void **state)
{
	static const char *const good[][2] = {
		{"KUBERNETES_SANDBOX_NAMESPACE", "a-1"},
		{"KUBERNETES_LABEL_PREFIX", "example.org/"},
		{"KUBERNETES_LABEL_PREFIX", "example.org/x."},
		{"KUBERNETES_NODE_SELECTOR", "a.b/c=d, e="},
		{"KUBERNETES_TOLERATIONS", "a.b/c=d:NoSchedule,e:NoExecute"},
		{"KUBERNETES_ARCHITECTURES", "arm64, amd64"},
		{"KUBERNETES_VOLUME_SIZE", "500Mi"},
		{"KUBERNETES_IMAGE_PULL_SECRETS", "a, b.c"},
	};
	struct conf c;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof good / sizeof *good; i++) {
		clean_environment(NULL);
		setenv(good[i][0], good[i][1], 1);
		load(&c);
		conf_release(&c);
	}
}

static void bad_values_are_refused_in_words(void **state)
{
	struct conf c;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct err e = ERR_INIT;

		clean_environment(NULL);
		setenv(bad[i].name, bad[i].value, 1);
		if (conf_load(NULL, &c, &e) == 0)
			fail_msg("%s=%s passed", bad[i].name, bad[i].value);
		if (!strstr(e.msg, bad[i].name) || !strstr(e.msg, bad[i].rule) ||
		    !strstr(e.msg, bad[i].value))
			fail_msg("%s=%s: %s", bad[i].name, bad[i].value, e.msg);
	}
}

static void a_dangerous_capability_needs_a_word_of_consent(void **state)
{
	struct conf c;

	(void)state;
	setenv("SANDBOX_CAP_ADD", " sys_admin, CAP_CHOWN,chown", 1);
	setenv("SANDBOX_CAPS_BYPASS_CHECK", "true", 1);
	load(&c);
	assert_string_equal(c.cap_add, "SYS_ADMIN,CHOWN");
	conf_release(&c);
	unsetenv("SANDBOX_CAPS_BYPASS_CHECK");
	setenv("SANDBOX_CAPS_STRICT", "false", 1);
	load(&c);
	assert_string_equal(c.cap_add, "SYS_ADMIN,CHOWN");
	conf_release(&c);
}

static void a_slip_in_the_file_is_refused_and_a_stranger_is_not(void **state)
{
	struct err e = ERR_INIT;
	struct conf c;

	(void)state;
	write_env("DOCKER_HOST=unix:///x\nKUBERNETES_SANDBOX_NAMESPACE=n\nHOME=/x\n");
	load(&c);
	conf_release(&c);
	write_env("\nMAX_RUN=5\n");
	assert_int_equal(conf_load(env_path, &c, &e), -1);
	assert_non_null(strstr(e.msg, "line 2"));
	assert_non_null(strstr(e.msg, "is MAX_RUNS meant?"));
	assert_non_null(strstr(e.msg, env_path));
}

static void a_bad_value_in_the_file_names_the_file(void **state)
{
	struct err e = ERR_INIT;
	struct conf c;

	(void)state;
	write_env("PORT=x\n");
	assert_int_equal(conf_load(env_path, &c, &e), -1);
	assert_non_null(strstr(e.msg, env_path));
}

/* What is printed as in force loads as the same again. */
static void the_smallest_share_of_a_processor_loads_again(void **state)
{
	static const char *const shares[] = {"0.00001", "0.1", "10", "1024"};
	struct conf c;
	char *text = NULL, line[64];
	size_t i, n;

	(void)state;
	for (i = 0; i < sizeof shares / sizeof *shares; i++) {
		FILE *f = open_memstream(&text, &n);

		setenv("DEFAULT_CPU_CORES", shares[i], 1);
		load(&c);
		conf_print_effective(&c, f);
		fclose(f);
		conf_release(&c);
		snprintf(line, sizeof line, "DEFAULT_CPU_CORES='%s'\n", shares[i]);
		assert_non_null(strstr(text, line));
		free(text);
	}
}

static void every_folder_is_absolute_and_an_empty_one_stays_empty(void **state)
{
	struct conf c;

	(void)state;
	load(&c);
	assert_string_equal(c.artifacts_dir, "");
	conf_release(&c);
	setenv("ARTIFACTS_DIR", "files", 1);
	load(&c);
	assert_int_equal(c.artifacts_dir[0], '/');
	conf_release(&c);
}

static void the_effective_configuration_loads_again(void **state)
{
	char *first = NULL, *second = NULL;
	size_t n = 0;
	struct conf c;
	FILE *f;

	(void)state;
	setenv("TOOL_DESC_RUN_SANDBOX_APPEND", "it's \"quoted\" $x `y` \\ \n#z", 1);
	setenv("DEFAULT_CPU_CORES", "0.25", 1);
	load(&c);
	f = open_memstream(&first, &n);
	conf_print_effective(&c, f);
	fclose(f);
	conf_release(&c);
	clean_environment(NULL);
	write_env(first);
	load(&c);
	f = open_memstream(&second, &n);
	conf_print_effective(&c, f);
	fclose(f);
	conf_release(&c);
	assert_string_equal(first, second);
	assert_non_null(strstr(first, "DEFAULT_CPU_CORES='0.25'"));
	free(first);
	free(second);
}

static void the_printed_docs_name_every_variable(void **state)
{
	char *md = NULL, *env = NULL;
	const struct conf_row *row;
	size_t n = 0, i;
	FILE *f;

	(void)state;
	f = open_memstream(&md, &n);
	conf_print_markdown(f);
	fclose(f);
	f = open_memstream(&env, &n);
	conf_print_env_example(f);
	fclose(f);
	for (i = 0; (row = conf_row_at(i)) != NULL; i++) {
		assert_non_null(strstr(md, row->name));
		assert_non_null(strstr(env, row->name));
	}
	assert_true(i > 40);
	free(md);
	free(env);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, clean_environment, remove_file)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_defaults_are_the_documented_ones),
		TEST(the_environment_wins_over_the_file),
		TEST(an_empty_value_means_the_default_where_it_is_no_value),
		TEST(switches_have_many_words),
		TEST(what_a_cluster_takes_is_taken),
		TEST(bad_values_are_refused_in_words),
		TEST(a_dangerous_capability_needs_a_word_of_consent),
		TEST(a_slip_in_the_file_is_refused_and_a_stranger_is_not),
		TEST(a_bad_value_in_the_file_names_the_file),
		TEST(the_effective_configuration_loads_again),
		TEST(the_smallest_share_of_a_processor_loads_again),
		TEST(every_folder_is_absolute_and_an_empty_one_stays_empty),
		TEST(the_printed_docs_name_every_variable),
	};
	return cmocka_run_group_tests_name("conf", tests, NULL, NULL);
}
