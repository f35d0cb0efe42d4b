/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "backend/docker/container.h"
#include "backend/docker/endpoint.h"
#include "backend/docker/image.h"
#include "backend/docker/joblines.h"
#include "backend/docker/muxframe.h"
#include "backend/docker/network.h"
#include "backend/docker/oomfiles.h"
#include "backend/docker/registryauth.h"
#include "backend/docker/tarball.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/proc.h"
#include "tests/unit/testdir.h"

/* ---- the framing of streams */

static const char frames[] = "\1\0\0\0\0\0\0\5hello\2\0\0\0\0\0\0\4oops\1\0\0\0\0\0\0\0"
			     "\1\0\0\0\0\0\0\1!";

static void frames_are_unpacked_wherever_they_are_cut(void **state)
{
	size_t cut;

	(void)state;
	for (cut = 0; cut < sizeof frames; cut++) {
		AUTO_BUF out = BUF_INIT(100);
		struct muxframe m = {0};

		assert_int_equal(muxframe_feed(&m, frames, cut, &out), 0);
		assert_int_equal(
			muxframe_feed(&m, frames + cut, sizeof frames - 1 - cut, &out),
			0);
		assert_string_equal(out.p, "hello!");
		assert_string_equal(m.words, "oops");
	}
}

static void bytes_that_are_no_frames_end_the_stream(void **state)
{
	static const char *const bad[] = {"\0\0\0\0\0\0\0\1", "\4\0\0\0\0\0\0\1",
					  "\1\1\0\0\0\0\0\1", "\1\0\0\1\0\0\0\1",
					  "HTTP/1.1"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		AUTO_BUF out = BUF_INIT(100);
		struct muxframe m = {0};

		assert_int_equal(muxframe_feed(&m, bad[i], 8, &out), -1);
	}
}

static void words_of_standard_error_are_cut_not_overrun(void **state)
{
	AUTO_BUF out = BUF_INIT(100);
	char frame[8 + 4096] = {2, 0, 0, 0, 0, 0, 16, 0};
	struct muxframe m = {0};

	(void)state;
	memset(frame + 8, 'w', 4096);
	assert_int_equal(muxframe_feed(&m, frame, sizeof frame, &out), 0);
	assert_int_equal(strlen(m.words), MUXFRAME_WORDS);
	assert_int_equal(out.len, 0);
}

/* ---- where the engine is */

static const struct {
	const char *docker_host;
	bool verify;
	const char *certs, *where, *base;
	bool no_verify;
} hosts[] = {
	{"unix:///run/x.sock", false, "", "unix:///run/x.sock", "http://docker", false},
	{"unix:///run/x.sock", true, "/c", "unix:///run/x.sock", "http://docker", false},
	{"tcp://engine", false, "", "tcp://engine:2375", "http://engine:2375", false},
	{"tcp://engine:99/", false, "", "tcp://engine:99", "http://engine:99", false},
	{"tcp://[::1]", false, "", "tcp://[::1]:2375", "http://[::1]:2375", false},
	{"tcp://[::1]:7", true, "/c", "tcp://[::1]:7 (TLS)", "https://[::1]:7", false},
	{"tcp://engine", true, "/c", "tcp://engine:2376 (TLS)", "https://engine:2376",
	 false},
	{"tcp://engine", false, "/c", "tcp://engine:2376 (TLS)", "https://engine:2376",
	 true},
	{"https://engine:1", true, "", "tcp://engine:1 (TLS)", "https://engine:1", false},
	{"http://engine:1", true, "/c", "tcp://engine:1", "http://engine:1", false},
};

static void every_form_of_docker_host_is_read(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof hosts / sizeof *hosts; i++) {
		AUTO_ENDPOINT ep = {0};
		struct err e = ERR_INIT;

		if (endpoint_parse(hosts[i].docker_host, hosts[i].verify, hosts[i].certs,
				   &ep, &e) < 0)
			fail_msg("%s: %s", hosts[i].docker_host, e.msg);
		assert_string_equal(ep.where, hosts[i].where);
		assert_string_equal(ep.base, hosts[i].base);
		assert_int_equal(ep.no_verify, hosts[i].no_verify);
		assert_int_equal(ep.cert != NULL,
				 strstr(ep.base, "https") && *hosts[i].certs);
	}
}

static void what_is_no_docker_host_is_refused_with_the_forms_that_are(void **state)
{
	static const char *const bad[] = {"engine:2375",     "unix://run/x",
					  "tcp://",          "tcp://a b",
					  "tcp://a/b",       "tcp://user@host",
					  "ssh://host",      "npipe:////./pipe/docker",
					  "tcp://a\r\nX: y", "fd://"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		AUTO_ENDPOINT ep = {0};
		struct err e = ERR_INIT;

		if (endpoint_parse(bad[i], false, "", &ep, &e) == 0)
			fail_msg("passed: %s", bad[i]);
		assert_non_null(strstr(e.msg, "unix:///path"));
	}
}

static void a_refused_socket_is_said_with_who_and_whose(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	endpoint_refused("unix:///dev/null", "/dev/null", EACCES, &e);
	assert_non_null(strstr(e.msg, "may not open /dev/null"));
	assert_non_null(strstr(e.msg, "root"));
	assert_non_null(strstr(e.msg, "0666"));
	e = (struct err)ERR_INIT;
	endpoint_refused("unix:///x", "/x", ECONNREFUSED, &e);
	assert_non_null(strstr(e.msg, "not running"));
	e = (struct err)ERR_INIT;
	endpoint_refused("tcp://h:1", NULL, ECONNREFUSED, &e);
	assert_non_null(strstr(e.msg, "tcp://h:1"));
}

/* ---- versions and refusals */

static void the_api_version_is_agreed_upon(void **state)
{
	static const struct {
		const char *most, *least, *use;
	} cases[] = {
		{"1.41", "1.12", "1.41"}, {"1.52", "1.44", "1.44"},
		{"1.40", NULL, "1.40"},   {"1.60", "1.50", "1.50"},
		{"1.39", "1.12", NULL},   {"2.0", "1.0", NULL},
		{"1.x", "1.12", NULL},    {NULL, "1.12", NULL},
		{"1.41", "one", NULL},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct err e = ERR_INIT;
		char use[16] = "";
		int rc = engine_agree(cases[i].most, cases[i].least, use, &e);

		assert_int_equal(rc, cases[i].use ? 0 : -1);
		if (cases[i].use)
			assert_string_equal(use, cases[i].use);
	}
}

static void a_refusal_keeps_the_engines_words(void **state)
{
	static const char body[] = "{\"message\":\"No such image: x\"}";
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(engine_refusal(404, body, sizeof body - 1, &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_string_equal(e.msg, "No such image: x");
	e = (struct err)ERR_INIT;
	engine_refusal(500, "<html>", 6, &e);
	assert_int_equal(e.kind, ERR_BACKEND);
	assert_string_equal(e.msg, "the engine answered 500");
}

/* ---- containers */

static json_t *parsed(const char *text)
{
	struct err e = ERR_INIT;
	json_t *v = NULL;

	if (json_parse(text, strlen(text), &v, &e) < 0)
		fail_msg("%s", e.msg);
	return v;
}

static void a_description_of_a_container_is_read(void **state)
{
	AUTO_JSON *v = parsed(
		"{\"Id\":\"abc\",\"State\":{\"Running\":true,\"Paused\":false,\"Pid\":7,"
		"\"ExitCode\":0,\"Error\":\"\"},\"Config\":{\"Labels\":{\"mcp.instance\":"
		"\"i\",\"mcp.policy_fingerprint\":\"f\",\"mcp.image\":\"x:1\"}}}");
	AUTO_CONTAINER c = {0};
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(container_parse(v, &c, &e), 0);
	assert_string_equal(c.id, "abc");
	assert_string_equal(c.instance, "i");
	assert_string_equal(c.fingerprint, "f");
	assert_true(c.running);
	assert_int_equal(c.pid, 7);
}

/* Looked at before its process began, or after the engine lost it. */
static void no_exit_code_is_not_the_exit_code_0(void **state)
{
	static const char *const states[] = {"{\"Running\":false,\"ExitCode\":null}",
					     "{\"Running\":null}", "{}",
					     "{\"Running\":false,\"ExitCode\":\"0\"}"};

	(void)state;
	for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
		AUTO_FREE char *text =
			xasprintf("{\"Id\":\"a\",\"State\":%s}", states[i]);
		AUTO_JSON *v = parsed(text);
		AUTO_CONTAINER c = {0};
		struct err e = ERR_INIT;

		assert_int_equal(container_parse(v, &c, &e), 0);
		assert_false(c.running);
		assert_int_equal(c.exit_code, -1);
	}
}

static void a_description_that_is_none_is_refused_not_believed(void **state)
{
	static const char *const bad[] = {"[]",
					  "{}",
					  "{\"Id\":\"\",\"State\":{}}",
					  "{\"Id\":1,\"State\":{}}",
					  "{\"Id\":\"a\",\"State\":[]}",
					  "{\"Id\":\"a\"}"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		AUTO_JSON *v = parsed(bad[i]);
		AUTO_CONTAINER c = {0};
		struct err e = ERR_INIT;

		if (container_parse(v, &c, &e) == 0)
			fail_msg("passed: %s", bad[i]);
	}
}

static void a_list_has_only_what_can_be_ours(void **state)
{
	AUTO_JSON *v = parsed(
		"[{\"Id\":\"a\",\"Names\":[\"/mcp-sbx-a-1\"],\"State\":\"running\","
		"\"Labels\":{\"mcp.image\":\"i\"}},"
		"{\"Id\":\"b\",\"Names\":[\"/other/alias\",\"/mcp-sbx-b-1\"],\"State\":"
		"\"exited\"},{\"Id\":\"c\",\"Names\":[\"/web\"]},{\"Names\":null},3,"
		"{\"Id\":\"d\",\"Names\":[\"/mcp-sbx-d/../x\"]}]");
	struct sandbox_list l = {0};
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(container_parse_list(v, NULL, &l, &e), 0);
	assert_int_equal(l.n, 2);
	assert_string_equal(l.v[0].name, "mcp-sbx-a-1");
	assert_true(l.v[0].running);
	assert_string_equal(l.v[1].name, "mcp-sbx-b-1");
	assert_false(l.v[1].running);
	sandbox_list_release(&l);
}

static void a_limit_that_is_taken_away_becomes_all_there_is(void **state)
{
	AUTO_JSON *info = parsed("{\"NCPU\":2,\"MemTotal\":25276510208}");
	AUTO_JSON *lie = parsed("{\"NCPU\":99999999999,\"MemTotal\":-1}");
	const struct limits host = limits_host(info), none = {0};
	const struct limits has = limits_make(1, 1024, 0);
	json_t *body = limits_change(&has, &none, &host);

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(body, "NanoCpus")),
			 2000000000);
	assert_int_equal(json_integer_value(json_object_get(body, "Memory")),
			 25276510208);
	json_decref(body);
	assert_null(limits_change(&host, &none, &host)); /* the next time */
	assert_null(limits_change(&none, &none, &host));
	assert_int_equal(limits_host(lie).nano_cpus, 0);
	assert_int_equal(limits_host(lie).memory, 0);
}

static void limits_that_an_engine_keeps_not_are_named(void **state)
{
	static const struct {
		const char *info, *words;
	} cases[] = {
		{"{\"MemoryLimit\":true,\"PidsLimit\":true,\"CpuCfsQuota\":true}", ""},
		{"{\"MemoryLimit\":false,\"PidsLimit\":false,\"CpuCfsQuota\":false}",
		 "processors, memory, processes"},
		{"{\"MemoryLimit\":false,\"PidsLimit\":\"no\"}", "memory"},
		{"{\"MemoryLimit\":true,\"Rootless\":true,\"CgroupVersion\":\"1\"}",
		 "processors, memory, processes"},
		{"{\"MemoryLimit\":true,\"Rootless\":true,\"CgroupVersion\":\"2\"}", ""},
		{"{\"MemoryLimit\":true,\"Rootless\":false,\"CgroupVersion\":\"1\"}", ""},
		{"{}", ""},
		{"[]", ""},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		AUTO_JSON *info = json_loads(cases[i].info, 0, NULL);
		AUTO_BUF words = BUF_INIT(256);

		limits_unkept(info, &words);
		assert_string_equal(words.p, cases[i].words);
	}
}

static void only_other_limits_are_changed(void **state)
{
	AUTO_JSON *host = parsed("{\"NanoCpus\":1000000000,\"Memory\":1073741824,"
				 "\"MemorySwap\":1073741824,\"PidsLimit\":256}");
	AUTO_JSON *none_host = parsed("{\"NanoCpus\":0,\"PidsLimit\":null}");
	const struct limits has = limits_parse(host), none = limits_parse(none_host);
	const struct limits same = limits_make(1, 1024, 256),
			    more = limits_make(1.5, 2048, 0);
	const struct limits unknown = {0};
	json_t *body = limits_change(&has, &more, &unknown);

	(void)state;
	assert_null(limits_change(&has, &same, &unknown));
	assert_int_equal(json_object_size(body), 4);
	assert_int_equal(json_integer_value(json_object_get(body, "NanoCpus")),
			 1500000000);
	assert_int_equal(json_integer_value(json_object_get(body, "Memory")), 2147483648);
	assert_int_equal(json_integer_value(json_object_get(body, "MemorySwap")),
			 2147483648);
	assert_int_equal(json_integer_value(json_object_get(body, "PidsLimit")), -1);
	json_decref(body);
	assert_int_equal(none.nano_cpus + none.memory + none.pids, 0);
	body = limits_change(&none, &has, &unknown);
	assert_int_equal(json_object_size(body), 4);
	json_decref(body);
	/* Where it is not known what there is, they stay. */
	body = limits_change(&has, &none, &unknown);
	assert_int_equal(json_object_size(body), 1);
	json_decref(body);
}

/* A tag may have been moved on since. */
static void a_list_says_what_was_made_from_another_image(void **state)
{
	AUTO_JSON *v = parsed(
		"[{\"Id\":\"a\",\"Names\":[\"/mcp-sbx-a-1\"],\"ImageID\":\"sha256:1\"},"
		"{\"Id\":\"b\",\"Names\":[\"/mcp-sbx-b-1\"],\"ImageID\":\"2\"},"
		"{\"Id\":\"c\",\"Names\":[\"/mcp-sbx-c-1\"]}]");
	struct sandbox_list l = {0}, unknown = {0};
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(container_parse_list(v, "sha256:2", &l, &e), 0);
	assert_true(l.v[0].old_image);
	assert_false(l.v[1].old_image);
	assert_false(l.v[2].old_image);
	assert_int_equal(container_parse_list(v, NULL, &unknown, &e), 0);
	assert_false(unknown.v[0].old_image);
	sandbox_list_release(&l);
	sandbox_list_release(&unknown);
}

static void no_limit_asks_for_none_and_options_are_asked_for(void **state)
{
	char runtime[] = "runsc", network[] = "own", image[] = "i:1", print[] = "f";
	struct conf c = {.sandbox_runtime = runtime, .read_only = true, .disk_mb = 5};
	struct docker d = {.conf = &c,
			   .instance = "i",
			   .image = image,
			   .network = network,
			   .fingerprint = print,
			   .caps = json_array()};
	struct sandbox_spec spec = {
		.name = "mcp-sbx-a-1", .identifier = "\xc3\xbc", .tenant = "t"};
	AUTO_JSON *body = container_body(&d, &spec);
	const json_t *host = json_object_get(body, "HostConfig");

	(void)state;
	assert_null(json_object_get(host, "Memory"));
	assert_null(json_object_get(host, "NanoCpus"));
	assert_null(json_object_get(host, "PidsLimit"));
	assert_null(json_object_get(host, "SecurityOpt"));
	assert_string_equal(json_get_string(host, "Runtime"), "runsc");
	assert_string_equal(json_get_string(host, "NetworkMode"), "own");
	assert_true(json_is_true(json_object_get(host, "ReadonlyRootfs")));
	assert_non_null(json_object_get(json_object_get(body, "Volumes"), "/workspace"));
	assert_string_equal(json_get_string(json_object_get(host, "StorageOpt"), "size"),
			    "5m");
	json_decref(d.caps);
}

static void a_sandbox_kept_apart_has_a_network_of_its_own(void **state)
{
	char shared[] = "mcp-sandboxd-i";
	struct docker d = {.network = shared};

	(void)state;
	assert_string_equal(network_of(&d, "mcp-sbx-a-1"), "mcp-sandboxd-i");
	d.is_apart = true;
	assert_string_equal(network_of(&d, "mcp-sbx-a-1"), "mcp-sbx-a-1");
}

static void only_networks_with_a_sandboxs_name_are_tidied_up(void **state)
{
	AUTO_JSON *list = json_loads("[{\"Name\":\"mcp-sbx-a-1\"},{\"Name\":\"bridge\"},"
				     "{\"Name\":\"mcp-sbx-a/../../x\"},{\"Name\":7},{},3,"
				     "{\"Name\":\"mcp-sandboxd-i\"}]",
				     0, NULL);
	size_t i;

	(void)state;
	assert_string_equal(network_listed(list, 0), "mcp-sbx-a-1");
	for (i = 1; i < 8; i++)
		assert_null(network_listed(list, i));
	assert_null(network_listed(NULL, 0));
}

/* ---- words while something is made */

static void collect(void *arg, const char *line)
{
	buf_printf(arg, "%s|", line);
}

static void lines_of_a_build_become_words_and_its_error_an_error(void **state)
{
	static const char text[] =
		"{\"stream\":\"Step 1/2 : FROM x\\n\"}\r\n{\"stream\":\"\\n\"}\n"
		"not "
		"json\n{\"status\":\"Downloading\",\"id\":\"a\",\"progress\":\"[>]\"}\n"
		"{\"status\":\"Pull complete\",\"id\":\"a\"}\n"
		"{\"errorDetail\":{},\"error\":\"it failed\"}";
	AUTO_BUF words = BUF_INIT(1000);
	struct joblines j = JOBLINES_INIT(collect, &words);
	struct err e = ERR_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof text - 1; i++)
		joblines_feed(&j, text + i, 1);
	assert_int_equal(joblines_end(&j, &e), -1);
	assert_string_equal(e.msg, "it failed");
	assert_string_equal(words.p, "Step 1/2 : FROM x|a: Pull complete|");
	joblines_release(&j);
}

static void a_line_without_end_costs_a_bounded_amount(void **state)
{
	static char much[JOBLINES_LINE_MAX];
	AUTO_BUF words = BUF_INIT(1000);
	struct joblines j = JOBLINES_INIT(collect, &words);
	struct err e = ERR_INIT;
	int i;

	(void)state;
	memset(much, 'x', sizeof much);
	for (i = 0; i < 64; i++)
		joblines_feed(&j, much, sizeof much);
	assert_true(j.line.cap <= 2 * JOBLINES_LINE_MAX);
	joblines_feed(&j, "\n{\"status\":\"on\"}\n", 17);
	assert_int_equal(joblines_end(&j, &e), 0);
	assert_string_equal(words.p, "on|");
	joblines_release(&j);
}

/* ---- names, credentials, files */

static void a_name_gets_its_tag(void **state)
{
	static const char *const names[][2] = {
		{"default", "mcp-sandbox:latest"},
		{"x", "x:latest"},
		{"x:1", "x:1"},
		{"host:5000/x", "host:5000/x:latest"},
		{"host:5000/x:2", "host:5000/x:2"},
		{"x@sha256:00", "x@sha256:00"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof names / sizeof *names; i++) {
		AUTO_FREE char *got = image_reference(names[i][0]);

		assert_string_equal(got, names[i][1]);
	}
}

static void credentials_are_those_of_the_registry(void **state)
{
	/* "user:pa:ss", "hub:key" */
	AUTO_JSON *config =
		parsed("{\"auths\":{\"https://index.docker.io/v1/\":{\"auth\":"
		       "\"aHViOmtleQ==\"},\"reg:5000\":{\"auth\":\"dXNlcjpwYTpzcw==\"},"
		       "\"bad\":{\"auth\":\"***\"},\"none\":{}}}");
	AUTO_FREE char *hub = registryauth_registry("debian:12");
	AUTO_FREE char *own = registryauth_registry("reg:5000/x:1");
	AUTO_FREE char *a = registryauth_of(config, hub);
	AUTO_FREE char *b = registryauth_of(config, own);

	(void)state;
	assert_string_equal(hub, "https://index.docker.io/v1/");
	assert_string_equal(own, "reg:5000");
	/* {"username":"hub","password":"key","serveraddress":"https://index.docker.io/v1/"}
	 */
	assert_string_equal(a, "X-Registry-Auth: "
			       "eyJ1c2VybmFtZSI6Imh1YiIsInBhc3N3b3JkIjoia2V5Iiwic2VydmVyY"
			       "WRkcmVzcyI6Imh0dHBzOi8vaW5kZXguZG9ja2VyLmlvL3YxLyJ9");
	assert_non_null(b);
	assert_null(registryauth_of(config, "bad"));
	assert_null(registryauth_of(config, "none"));
	assert_null(registryauth_of(config, "elsewhere"));
}

static void tokens_go_before_passwords_and_helpers_are_named(void **state)
{
	AUTO_JSON *config =
		parsed("{\"auths\":{\"reg\":{\"auth\":\"dTpw\",\"identitytoken\":\"t\"},"
		       "\"helped\":{}},\"credHelpers\":{\"helped\":\"ecr\"}}");
	AUTO_JSON *store = parsed("{\"credsStore\":\"desktop\",\"auths\":{\"reg\":{}}}");
	AUTO_FREE char *one = registryauth_of(config, "reg");
	AUTO_FREE char *all = registryauth_all_of(config);

	(void)state;
	/* {"identitytoken":"t","serveraddress":"reg"} */
	assert_string_equal(one,
			    "X-Registry-Auth: eyJpZGVudGl0eXRva2VuIjoidCIsInNlcnZlcmF"
			    "kZHJlc3MiOiJyZWcifQ==");
	/* {"reg":{"identitytoken":"t","serveraddress":"reg"}} */
	assert_string_equal(all,
			    "X-Registry-Config: eyJyZWciOnsiaWRlbnRpdHl0b2tlbiI6InQiL"
			    "CJzZXJ2ZXJhZGRyZXNzIjoicmVnIn19");
	assert_true(registryauth_has_helper(config, "helped"));
	assert_false(registryauth_has_helper(config, "reg"));
	assert_true(registryauth_has_helper(store, "reg"));
	assert_null(registryauth_all_of(store));
	assert_null(registryauth_all_of(NULL));
}

static void the_oom_count_is_where_the_container_is_and_nowhere_else(void **state)
{
	static const char v1[] = "11:pids:/docker/abc\n5:cpu,memory:/docker/abc\n0::/x\n";
	static const char v2[] = "0::/system.slice/docker-abc.scope\n";
	AUTO_FREE char *a = oomfiles_path(v1, "abc");
	AUTO_FREE char *b = oomfiles_path(v2, "abc");

	(void)state;
	assert_string_equal(a, "/sys/fs/cgroup/memory/docker/abc/memory.oom_control");
	assert_string_equal(b,
			    "/sys/fs/cgroup/system.slice/docker-abc.scope/memory.events");
	assert_null(oomfiles_path(v1, "def"));
	assert_null(oomfiles_path("0::/../../abc\n", "abc"));
	assert_null(oomfiles_path("memory:/abc\n", "abc"));
	assert_null(oomfiles_path("", "abc"));
}

static void an_archive_is_one_that_tar_reads(void **state)
{
	char path[64];
	const char *argv[] = {"tar", "-tvf", path, "--numeric-owner", "--utc", NULL};
	struct proc p = {.argv = argv};
	AUTO_BUF b = BUF_INIT(100000), out = BUF_INIT(0);
	struct err e = ERR_INIT;
	int fd;

	(void)state;
	test_file(path, sizeof path, "tar");
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	tarball_dir(&b, "d/", 0700);
	tarball_file(&b, "d/f", 0755, "content", 7);
	tarball_end(&b);
	assert_int_equal(b.len % 512, 0);
	assert_int_equal(write(fd, b.p, b.len), (ssize_t)b.len);
	close(fd);
	if (proc_run_ok(&p, &out, &e) < 0)
		fail_msg("%s", e.msg);
	unlink(path);
	assert_string_equal(out.p,
			    "drwx------ 0/0               0 1970-01-01 00:00 d/\n"
			    "-rwxr-xr-x 0/0               7 1970-01-01 00:00 d/f\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_unpacked_wherever_they_are_cut),
		cmocka_unit_test(bytes_that_are_no_frames_end_the_stream),
		cmocka_unit_test(words_of_standard_error_are_cut_not_overrun),
		cmocka_unit_test(every_form_of_docker_host_is_read),
		cmocka_unit_test(
			what_is_no_docker_host_is_refused_with_the_forms_that_are),
		cmocka_unit_test(a_refused_socket_is_said_with_who_and_whose),
		cmocka_unit_test(the_api_version_is_agreed_upon),
		cmocka_unit_test(a_refusal_keeps_the_engines_words),
		cmocka_unit_test(a_description_of_a_container_is_read),
		cmocka_unit_test(no_exit_code_is_not_the_exit_code_0),
		cmocka_unit_test(a_description_that_is_none_is_refused_not_believed),
		cmocka_unit_test(a_list_has_only_what_can_be_ours),
		cmocka_unit_test(only_other_limits_are_changed),
		cmocka_unit_test(a_limit_that_is_taken_away_becomes_all_there_is),
		cmocka_unit_test(limits_that_an_engine_keeps_not_are_named),
		cmocka_unit_test(a_sandbox_kept_apart_has_a_network_of_its_own),
		cmocka_unit_test(only_networks_with_a_sandboxs_name_are_tidied_up),
		cmocka_unit_test(a_list_says_what_was_made_from_another_image),
		cmocka_unit_test(no_limit_asks_for_none_and_options_are_asked_for),
		cmocka_unit_test(lines_of_a_build_become_words_and_its_error_an_error),
		cmocka_unit_test(a_line_without_end_costs_a_bounded_amount),
		cmocka_unit_test(a_name_gets_its_tag),
		cmocka_unit_test(credentials_are_those_of_the_registry),
		cmocka_unit_test(tokens_go_before_passwords_and_helpers_are_named),
		cmocka_unit_test(
			the_oom_count_is_where_the_container_is_and_nowhere_else),
		cmocka_unit_test(an_archive_is_one_that_tar_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
