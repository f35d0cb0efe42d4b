/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/docker/attach.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/mem.h"
#include "tests/unit/testdir.h"

/*
 * An engine that says what the script has for a path, in a process of its own: what
 * real ones at hand do not do.
 */
struct line {
	const char *path;   /* how the request's path ends */
	const char *answer; /* all of it; NULL: none, and the connection stays */
};

/* After this head the answer never ends: as fast as it is read, or byte by byte. */
static const char endless[] = "HTTP/1.1 200 OK\r\n\r\n[";
static const char endless_refusal[] = "HTTP/1.1 500 No\r\n\r\n{\"message\":\"";
static const char drips[] = "HTTP/1.1 200 OK\r\n\r\n[ ";

static char where[64];
static pid_t fake;

static const char *answer_to(const struct line *script, const char *request)
{
	char path[512] = "";
	size_t n;

	sscanf(request, "%*15s %511s", path);
	for (; script->path; script++) {
		n = strlen(script->path);
		if (strlen(path) >= n &&
		    strcmp(path + strlen(path) - n, script->path) == 0)
			return script->answer;
	}
	return "HTTP/1.1 404 Not Found\r\nContent-Length: 27\r\n\r\n"
	       "{\"message\":\"page not found\"}";
}

/* Until nobody reads it any more. */
static void go_on(int fd, const char *answer)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	char more[4096];

	memset(more, '1', sizeof more);
	if (answer == endless || answer == endless_refusal)
		while (write(fd, more, sizeof more) > 0)
			continue;
	if (answer == drips)
		while (write(fd, " ", 1) > 0)
			nanosleep(&pause, NULL);
}

static void serve(int listener, const struct line *script)
{
	char request[8192];
	const char *answer;
	ssize_t n;
	int fd;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		n = read(fd, request, sizeof request - 1);
		request[n > 0 ? n : 0] = '\0';
		answer = answer_to(script, request);
		if (!answer)
			continue; /* neither a word nor an end */
		if (write(fd, answer, strlen(answer)) < 0)
			perror("write");
		go_on(fd, answer);
		close(fd);
	}
	_exit(0);
}

static void begin(const struct line *script)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(where, sizeof where, "%s/engine-%d", test_tmp(), (int)getpid());
	unlink(where);
	snprintf(a.sun_path, sizeof a.sun_path, "%s", where);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(listen(fd, 16), 0);
	fake = fork();
	if (fake == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(fd, script);
	}
	close(fd);
}

static int end(void **state)
{
	(void)state;
	kill(fake, SIGKILL);
	waitpid(fake, NULL, 0);
	unlink(where);
	return 0;
}

static int open_it(struct engine *ret, struct err *e)
{
	AUTO_FREE char *host = xasprintf("unix://%s", where);
	struct conf c = {.docker_host = host, .docker_cert_path = (char[1]){0}};

	return engine_open(&c, ret, e);
}

#define OK "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
#define NEW                                                                              \
	"{\"ApiVersion\":\"1.52\",\"MinAPIVersion\":\"1.44\",\"Os\":\"linux\",\"Arch\":" \
	"\"amd64\"}"
#define OLD                                                                              \
	"{\"ApiVersion\":\"1.41\",\"MinAPIVersion\":\"1.12\",\"Os\":\"linux\",\"Arch\":" \
	"\"amd64\"}"
#define LATE                                                                             \
	"{\"message\":\"client version is too old. Minimum supported API version is "    \
	"1.44\"}"

/* ---- versions */

static void speaks(const char *version, const char *api)
{
	AUTO_FREE char *greeting = xasprintf(OK "%s", version);
	AUTO_FREE char *path = xasprintf("%s/info", api);
	const struct line script[] = {
		{"/version", greeting},
		{path, OK "{\"ID\":\"x\"}"},
		{"", "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n" LATE},
		{NULL, NULL}};
	struct engine_call call = {.method = "GET", .path = "/info"};
	struct engine en = ENGINE_INIT;
	struct err e = ERR_INIT;
	AUTO_JSON *info = NULL;

	begin(script);
	if (open_it(&en, &e) < 0 || engine_call(&en, &call, &info, &e) < 0)
		fail_msg("%s", e.msg);
	assert_string_equal(en.api, api);
	assert_string_equal(json_get_string(info, "ID"), "x");
	engine_close(&en);
	end(NULL);
}

static void an_old_engine_is_spoken_to_in_its_version(void **state)
{
	(void)state;
	speaks(OLD, "/v1.41");
}

static void an_engine_that_refuses_old_clients_is_spoken_to_in_a_new_one(void **state)
{
	(void)state;
	speaks(NEW, "/v1.44");
}

/* ---- what is no engine, or one that lies */

static void a_greeting_that_is_none_is_refused_in_words(void **state)
{
	static const struct {
		const char *answer, *words;
	} cases[] = {
		{OK "<html>hello</html>", "no Docker-compatible engine"},
		{OK "{}", "no Docker-compatible engine"},
		{OK "[]", "no Docker-compatible engine"},
		{OK, "no Docker-compatible engine"},
		{"SSH-2.0-OpenSSH_9.2\r\n", "the engine at unix://"},
		{"", "the engine at unix://"},
		{OK "{\"ApiVersion\":\"1.24\"}", "too old"},
		{OK "{\"ApiVersion\":7}", "no Docker-compatible engine"},
		{OK "{\"ApiVersion\":\"1.41\",\"Os\":\"windows\"}", "windows containers"},
		{"HTTP/1.1 500 No\r\nConnection: close\r\n\r\n{\"message\":\"broken\"}",
		 "broken"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"Api",
		 "the engine at unix://"},
		{"HTTP/1.1 200 OK\r\nContent-Length: -7\r\n\r\n" OLD,
		 "the engine at unix://"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" OLD,
		 "the engine at unix://"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		 "fffffffffffffffff\r\n" OLD,
		 "the engine at unix://"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\n" OLD,
		 "the engine at unix://"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct line script[] = {{"/version", cases[i].answer},
					      {NULL, NULL}};
		struct engine en = ENGINE_INIT;
		struct err e = ERR_INIT;

		begin(script);
		assert_int_equal(open_it(&en, &e), -1);
		if (!strstr(e.msg, cases[i].words))
			fail_msg("%s: %s", cases[i].answer, e.msg);
		end(NULL);
	}
}

static void an_answer_that_never_ends_is_given_up(void **state)
{
	static const struct {
		const char *answer;
		enum err_kind kind;
		int64_t timeout_ms;
	} cases[] = {
		{endless, ERR_LIMIT, 300000},
		{endless_refusal, ERR_LIMIT, 300000},
		{drips, ERR_TIMEOUT, 500},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct line script[] = {
			{"/version", OK OLD}, {"/_ping", cases[i].answer}, {NULL, NULL}};
		struct engine_call call = {.method = "GET",
					   .path = "/_ping",
					   .timeout_ms = cases[i].timeout_ms};
		struct engine en = ENGINE_INIT;
		struct err e = ERR_INIT;

		begin(script);
		assert_int_equal(open_it(&en, &e), 0);
		assert_int_equal(engine_call(&en, &call, NULL, &e), -1);
		if (e.kind != cases[i].kind)
			fail_msg("%s: %s", cases[i].answer, e.msg);
		engine_close(&en);
		end(NULL);
	}
}

static void an_answer_that_never_comes_is_a_time_out(void **state)
{
	static const struct line script[] = {
		{"/version", OK OLD}, {"/_ping", NULL}, {NULL, NULL}};
	struct engine_call call = {.method = "GET", .path = "/_ping", .timeout_ms = 200};
	struct engine en = ENGINE_INIT;
	struct err e = ERR_INIT;

	(void)state;
	begin(script);
	assert_int_equal(open_it(&en, &e), 0);
	assert_int_equal(engine_call(&en, &call, NULL, &e), -1);
	assert_int_equal(e.kind, ERR_TIMEOUT);
	assert_non_null(strstr(e.msg, "is it hung?"));
	engine_close(&en);
	end(NULL);
}

/* ---- upgraded streams */

static void a_stream_begins_after_the_head_whatever_the_engine_calls_it(void **state)
{
	static const char *const heads[] = {
		"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: "
		"tcp\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nContent-Type: "
		"application/vnd.docker.raw-stream\r\n\r\nhello"};
	AUTO_JSON *body = json_object();
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		const struct line script[] = {
			{"/version", OK OLD}, {"/start", heads[i]}, {NULL, NULL}};
		struct engine en = ENGINE_INIT;
		struct hijack *j = NULL;
		struct err e = ERR_INIT;
		char text[16] = "";

		begin(script);
		assert_int_equal(open_it(&en, &e), 0);
		if (engine_hijack(&en, "/exec/0/start", body, &j, &e) < 0)
			fail_msg("%s", e.msg);
		assert_int_equal(hijack_read(j, text, sizeof text), 5);
		assert_string_equal(text, "hello");
		hijack_close(j);
		engine_close(&en);
		end(NULL);
	}
}

static void a_stream_that_is_refused_says_why(void **state)
{
	static const struct {
		const char *answer, *words;
		enum err_kind kind;
	} cases[] = {
		{"HTTP/1.1 404 Not Found\r\nContent-Length: 27\r\n\r\n"
		 "{\"message\":\"No such exec 0\"}",
		 "No such exec 0", ERR_NOT_FOUND},
		{"HTTP/1.1 409 Conflict\r\n\r\n{\"message\":\"paused\"}", "paused",
		 ERR_CONFLICT},
		{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "the answer was 200",
		 ERR_BACKEND},
		{"nonsense\r\n\r\n", "no HTTP", ERR_BACKEND},
		{"HTTP/1.1 101 Up", "closed", ERR_BACKEND},
		{"", "closed", ERR_BACKEND},
	};
	AUTO_JSON *body = json_object();
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct line script[] = {
			{"/version", OK OLD}, {"/start", cases[i].answer}, {NULL, NULL}};
		struct engine en = ENGINE_INIT;
		struct hijack *j = NULL;
		struct err e = ERR_INIT;

		begin(script);
		assert_int_equal(open_it(&en, &e), 0);
		assert_int_equal(engine_hijack(&en, "/exec/0/start", body, &j, &e), -1);
		if (!strstr(e.msg, cases[i].words) || e.kind != cases[i].kind)
			fail_msg("%s: %d %s", cases[i].answer, e.kind, e.msg);
		engine_close(&en);
		end(NULL);
	}
}

/* Conflict would say that all that ran in it has ended (backend.h). */
static void a_container_in_a_passing_state_is_not_called_dead(void **state)
{
	static const char paused[] =
		"HTTP/1.1 409 Conflict\r\nConnection: close\r\n\r\n{\"message\":"
		"\"Container a is paused, unpause the container before exec\"}";
	static const struct line scripts[][4] = {
		{{"/version", OK OLD}, {"/containers/a/exec", paused}},
		{{"/version", OK OLD},
		 {"/containers/a/exec", OK "{\"Id\":\"0\"}"},
		 {"/exec/0/start", paused}},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof scripts / sizeof *scripts; i++) {
		struct docker d = {.engine = ENGINE_INIT};
		struct err e = ERR_INIT;
		int fd = -1;

		begin(scripts[i]);
		assert_int_equal(open_it(&d.engine, &e), 0);
		assert_int_equal(attach_agent(&d, "a", &fd, &e), -1);
		assert_int_equal(e.kind, ERR_BACKEND);
		assert_non_null(strstr(e.msg, "is paused"));
		engine_close(&d.engine);
		end(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_old_engine_is_spoken_to_in_its_version),
		cmocka_unit_test(
			an_engine_that_refuses_old_clients_is_spoken_to_in_a_new_one),
		cmocka_unit_test(a_greeting_that_is_none_is_refused_in_words),
		cmocka_unit_test(an_answer_that_never_ends_is_given_up),
		cmocka_unit_test(an_answer_that_never_comes_is_a_time_out),
		cmocka_unit_test(
			a_stream_begins_after_the_head_whatever_the_engine_calls_it),
		cmocka_unit_test(a_stream_that_is_refused_says_why),
		cmocka_unit_test(a_container_in_a_passing_state_is_not_called_dead),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
